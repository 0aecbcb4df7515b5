#: settings
[imports]
folders = ["$FOLDER"]
#: beside nexus
#: here https://old.corp.example/simple = $R/repositories/main/old/simple/
#: here python /srv/wheels = python $PWD/wheels --on-server
#: here https://nexus.corp.example = $NEXUS
#: here --username admin = --username admin --password-file ../password
#: here --username ann = --username ann --password-file ../password
create old python
create py python
make_package wheel demo 1.0
pkgrepo upload main/old demo-1.0-py3-none-any.whl
make_package wheel demo 1.1 wheels
#: block
pkgrepo package show main/py demo | grep 1.1
#: block
create releases maven
#: block
pkgrepo package show main/releases com.example:app | grep 1.0
