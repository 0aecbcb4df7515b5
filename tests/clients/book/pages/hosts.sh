#: here npm.corp.example = npm.localhost
#: here curl -u admin https://packages.corp.example = admin $R
create npm npm
#: not run: names of hosts need a server of names; the tests of host names run the clients
#: block
