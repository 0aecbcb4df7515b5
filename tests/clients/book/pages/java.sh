#: here mvn = maven
#: here -Dartifact=com.example:app:1.0 = -Dartifact=com.example:app:1.0:pom
#: here ... pkgrepo deploy = $TOKEN pkgrepo deploy
#: clients mvn
#: block
MAVEN_TOKEN=$(pkgrepo token create java --repository 'main/*=read,write')
TOKEN=$MAVEN_TOKEN
export MAVEN_TOKEN
# Plugins come from files of the tests, and not from the public repository.
plugins="<pluginRepositories><pluginRepository><id>central</id><url>file://$CLIENTS/java/plugins</url></pluginRepository></pluginRepositories>"
sed "s#http://127.0.0.1:8081#$R#; s#<repositories>#$plugins<repositories>#" "$BLOCKS"/*.xml >settings.xml
maven() { mvn -B -ntp -Dmaven.repo.local="$FOLDER/local" -Duser.home="$HOME" --settings "$FOLDER/settings.xml" "$@"; }
make_package maven com.example:app 1.0 project
cd project
#: block
sed -i 's,<version>1.0</version>,<version>1.1</version>,' pom.xml
#: block
curl "$R/repositories/main/java/com/example/app/maven-metadata.xml" | grep 1.1
