#: here PASSWORD = $PASSWORD
create npm npm
#: block
