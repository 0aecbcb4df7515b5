#: block
make_package wheel demo 1.0
pkgrepo upload main/py demo-1.0-py3-none-any.whl
curl "$R/repositories/main/py/simple/demo/" | grep demo-1.0
