#: here PASSWORD = $PASSWORD
create npm npm public --upstream "$R/repositories/main/origin/"
pkgrepo rules suggest --write rules.json
#: block
rm rules.json
#: block
