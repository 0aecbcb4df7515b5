#: beside artifactory
#: here https://corp.example = $ARTIFACTORY
#: here --username admin = --username admin --password-file ../password
#: block
pkgrepo package show main/libs-release-local com.example:app | grep 1.0
