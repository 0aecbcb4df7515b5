#: here NAME = demo
#: here RUBYGEMS_HOST=$R/repositories/main/gems gem signin = RUBYGEMS_HOST=$R/repositories/main/gems typed "gem signin" admin "$PASSWORD" book y y n n n n n n
#: here TOKEN = $TOKEN
export GEM_HOME=$PWD/gems GEM_PATH=$PWD/gems
TOKEN=$(pkgrepo token create gems --repository 'main/*=read')
make_package gem demo 1.0.0
#: block
gem list --local | grep demo
