#: clients rattler anaconda
#: here TOKEN = $TOKEN
#: here NAME = demo
#: here anaconda login --username admin = anaconda login --username admin --password "$PASSWORD"
TOKEN=$(pkgrepo token create conda --repository 'main/*=read,write')
make_package conda demo 1.0
#: next 2
curl "$R/repositories/main/channel/noarch/repodata.json" | grep demo-1.0-py_0.conda
#: next 3
make_package conda other 1.0
#: here NAME = other
#: block
