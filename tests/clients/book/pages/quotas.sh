create py python
pkgrepo project create acme
pkgrepo user create ada --password-file ../password
#: block
