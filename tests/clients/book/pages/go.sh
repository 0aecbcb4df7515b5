#: clients go
#: here TOKEN = $TOKEN
#: here go get corp.example/tools@latest = go get corp.example/tools@v1.0.0
#: here https://proxy.example = $R/repositories/main/go
export GOPATH=$HOME/gopath GOCACHE=$HOME/gocache GOFLAGS=-modcacherw GOTOOLCHAIN=local
TOKEN=$(pkgrepo token create go --repository 'main/*=read,write')
#: next 3
make_package module corp.example/tools v1.0.0
pkgrepo upload main/go module.zip
make_package go corp.example/user v1 user
cd user
#: block
grep 'corp.example/tools v1.0.0' go.mod
cd ..
make_package go corp.example/tools x tools
make_package go corp.example/tools/lib x tools/tools/lib
make_package go corp.example/tools/build/lib x tools/build/lib
cd tools
echo build >.gitignore
git init --quiet .
git add .
git -c user.name=x -c user.email=x@example.com commit --quiet --message one
git tag v1.2.0
git tag tools/lib/v1.2.0
make_package module corp.example/tools v1.3.0
#: next 5
make_package module corp.example/tools v1.2.0
refused curl --output answer -fu "token:$TOKEN" -T module.zip "$R/repositories/main/go/corp.example/tools/@v/v1.2.0.zip"
curl "$R/repositories/main/go/corp.example/tools/@v/list" | grep v1.3.0
#: here v1.2.0 = v1.4.0
make_package module corp.example/tools v1.4.0
#: block
#: block
curl "$R/repositories/main/mirror/corp.example/tools/@v/list" | grep v1.4.0
