#: here PASSWORD = $PASSWORD
create py python private
pkgrepo user create ada --password-file ../password
pkgrepo user create bob --password-file ../password
pkgrepo project create acme
#: block
pkgrepo user rights ada | grep main/py
pkgrepo group create crew
create npm-a npm private
create secret-a python private
#: block
pkgrepo user rights ada | grep 'main/npm-a .*for main/\*'
refused curl -u "ada:$PASSWORD" "$R/repositories/main/secret-a/simple/"
pkgrepo group delete crew --yes
#: block
pkgrepo group show crew | grep bob
#: block
#: block
#: block
