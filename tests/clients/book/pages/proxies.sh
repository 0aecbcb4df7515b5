#: clients npm-11
#: here https://registry.example/ = $R/repositories/main/origin/
create origin npm
make_package tarball left-pad 1.3.1
pkgrepo upload main/origin left-pad-1.3.1.tgz
#: block
npm install left-pad
