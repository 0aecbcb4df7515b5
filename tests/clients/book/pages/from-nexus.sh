#: beside nexus
#: here https://nexus.corp.example = $NEXUS
#: here --username admin = --username admin --password-file ../password
#: block
#: block
pkgrepo package show main/maven-releases com.example:app | grep 1.0
