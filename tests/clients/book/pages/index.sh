#: clients twine pip
#: here R=http://127.0.0.1:8081 = R=$R
#: here bin/pkgrepo login $R -u admin = pkgrepo login $R -u admin --password-file ../password
#: here bin/pkgrepo = pkgrepo
#: here PASSWORD = $PASSWORD
#: here pip install = pip install --target here
#: here YOUR-PACKAGE = demo
#: not run: the server runs
make_package wheel demo 1.0 dist
#: block
test -f here/demo/__init__.py
