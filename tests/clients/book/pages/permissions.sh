#: here PASSWORD = $PASSWORD
create py python private
pkgrepo user create ada --password-file ../password
pkgrepo user create bob --password-file ../password
pkgrepo project create acme
#: block
pkgrepo user rights ada | grep main/py
#: block
pkgrepo group show crew | grep bob
#: block
#: block
#: block
