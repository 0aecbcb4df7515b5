#: here npm=https://registry.example/ = npm=http://127.0.0.1:9/
#: block
#: not run: the tests of releases install the wheel
#: not run: the tests of releases install units on a machine that boots
#: not run: the tests of releases install the Debian package
#: not run: the tests of releases run the image
#: not run: the tests of releases check what the chart makes; there is no Kubernetes
#: not run: as above
