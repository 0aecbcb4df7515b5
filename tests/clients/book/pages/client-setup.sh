#: clients npm-11
#: here pkgrepo login https://packages.example = pkgrepo login $R --username admin --password-file ../../password
#: here --write = --write --yes
#: here --undo = --undo --yes
#: here YOUR-PACKAGE = left-pad
create node npm
make_package tarball left-pad 1.0.0
pkgrepo upload main/node left-pad-1.0.0.tgz
mkdir project
cd project
#: next 3
test -f node_modules/left-pad/package.json
#: block
