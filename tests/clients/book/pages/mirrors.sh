#: settings
[imports]
folders = ["$FOLDER"]
#: clients npm-11
#: here /tmp/m2 = $PWD/m2
#: here mvn -Dmaven.repo.local=$PWD/m2 package = built
create npm-origin npm
create npm npm public --upstream "$R/repositories/main/npm-origin/"
create py-origin python
create py python public --upstream "$R/repositories/main/py-origin/simple/"
create java-origin maven
create java maven public --upstream "$R/repositories/main/java-origin/"
create images-origin docker
create hub docker public --upstream "$R/v2/main/images-origin"
TOKEN=$(pkgrepo token create mirror --repository 'main/*=read,edit,admin')

make_package tarball left-pad 1.0.0
make_package wheel demo 1.0
make_package maven com.example:app 1.0 project
make_package image app v1 layout
pkgrepo upload main/npm-origin left-pad-1.0.0.tgz
pkgrepo upload main/py-origin demo-1.0-py3-none-any.whl
admin -T project/pom.xml "$R/repositories/main/java-origin/com/example/app/1.0/app-1.0.pom"
pkgrepo upload main/images-origin layout --as app:v1
npm install --package-lock-only --registry "$R/repositories/main/npm-origin/" left-pad
mkdir tools
echo "demo==1.0" >tools/requirements.txt
cat >uv.lock <<'END'
version = 1
requires-python = ">=3.11"
END
echo app:v1 >images.txt
built() { # what Maven leaves in its repository
    mkdir --parents m2/com/example/app/1.0
    cp project/pom.xml m2/com/example/app/1.0/app-1.0.pom
}
#: block
#: block
#: block
#: block
#: next 1
make_package tarball left-pad 1.1.0
pkgrepo upload main/npm-origin left-pad-1.1.0.tgz
#: block
#: block
#: here --into main/npm = --into main/npm-below
#: here --into main/java = --into main/java-below
#: here pkgrepo bundle read = pkgrepo --set "data.dir=$DATA" bundle read
create npm-below npm
create java-below maven
#: block
pkgrepo package show main/npm-below left-pad | grep 1.0.0
