#: clients cargo
#: here http://127.0.0.1:8081 = $R
#: here cargo login --registry team = echo "$TOKEN" | cargo login --registry team
#: here cargo publish = cargo publish --allow-dirty
#: here cargo add --registry team NAME = (cd ../user && cargo add --registry team parts)
export CARGO_HOME=$HOME/cargo
make_package cargo parts 0.1.0 parts
make_package cargo user 0.1.0 user
mkdir parts/.cargo
TOKEN=$(pkgrepo token create cargo --repository 'main/*=read,write')
cd parts
#: next 2
sed -i "s#\$R#$R#" .cargo/config.toml
cp -r .cargo ../user/
#: block
grep -A1 parts ../user/Cargo.toml | grep team
