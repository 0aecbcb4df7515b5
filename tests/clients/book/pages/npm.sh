#: clients npm-11
#: here YOUR-PACKAGE = widget
#: here npm login --auth-type=legacy --registry $R/repositories/main/node/ = typed "npm login --auth-type=legacy --registry $R/repositories/main/node/" admin "$PASSWORD"
mkdir other
make_package npm widget 1.0.0 widget
cd widget
#: next 3
cd ../other
#: block
test -f node_modules/widget/index.js
#: not run: there is no other server; a test of host names runs npm 12 with a lock file of one
