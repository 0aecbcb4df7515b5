#: here main/staging @acme = main/node @acme
#: here @acme/demo@1.2.0 --to main/release = @acme/demo@1.2.0 --to main/node-release
#: here main/staging com.example:demo:1.2 --to main/release = main/java com.example:demo:1.2 --to main/java-release
#: here -u ada = -u "admin:$PASSWORD"
create staging python
create release python
create node npm
create node-release npm
create java maven
create java-release maven
create images docker
create production docker
make_package wheel demo 1.2
make_package tarball @acme/demo 1.2.0
make_package maven com.example:demo 1.2 project
make_package image app v1 layout
pkgrepo upload main/staging demo-1.2-py3-none-any.whl
pkgrepo upload main/node demo-1.2.0.tgz
admin -T project/pom.xml "$R/repositories/main/java/com/example/demo/1.2/demo-1.2.pom"
pkgrepo upload main/images layout --as app:v1
#: block
curl "$R/repositories/main/release/simple/demo/" | grep demo-1.2
