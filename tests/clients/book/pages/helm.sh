#: clients helm
#: here TOKEN = $TOKEN
#: here helm install app team/app = helm template app team/app
TOKEN=$(pkgrepo token create helm --repository 'main/*=read,write')
make_package chart app 1.0.0
tar xzf app-1.0.0.tgz
rm app-1.0.0.tgz
#: block
test -f app-1.0.0.tgz
