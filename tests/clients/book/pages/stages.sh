#: clients twine pip npm-11
#: here http://127.0.0.1:8081 = $R
#: here http://ada@127.0.0.1:8081 = http://admin:$PASSWORD@$HOST
#: here twine upload = TWINE_USERNAME=admin TWINE_PASSWORD=$PASSWORD twine upload
#: here pip install = pip install --target here
#: here stage reject ID = stage reject ID --yes
#: here ID = $ID
create python python
create node npm
#: next 1
ID=$(pkgrepo stage list --json | jq -r '.[0].id // .stages[0].id')
make_package wheel demo 1.0 dist
#: next 4
pkgrepo stage open main/python
ID=$(pkgrepo stage list --json | jq -r '[.. | objects | select(.state? == "open")][0].id')
#: block
#: not run: there is no docker daemon
make_package npm widget 1.0.0 widget
cd widget
echo "registry=$R/repositories/main/node/" >.npmrc
echo "//$HOST/repositories/main/node/:_authToken=$(pkgrepo token create node --repository 'main/*=read,write,admin')" >>.npmrc
#: next 2
ID=$(npm stage list --json | jq -r '[.. | .id? // empty][0]')
#: next 2
sed -i s/1.0.0/1.1.0/ package.json
npm stage publish --tag next
ID=$(npm stage list --json | jq -r '[.. | .id? // empty][0]')
#: block
