#: not run: the tests of releases do it, with a release
#: not run: the tests of releases do it
