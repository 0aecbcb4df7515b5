#: settings
[auth.issuers.github]
issuer = "$ISSUER"
audience = "$AUDIENCE"
kind = "github"
#: beside issuer
#: clients npm-11 twine cargo
#: here https://packages.example = $R
#: here --allow-publish = --allow-publish --yes
#: here curl -u admin = admin
#: here repository/ID/ = repository/main%2Fpy/
create py python
create npm npm
create rb ruby
create crates cargo
create images docker
pkgrepo project create core
#: block
echo "registry=$R/repositories/main/npm/" >.npmrc
echo "//$HOST/repositories/main/npm/:_authToken=$(pkgrepo token create node --repository 'main/*=read,write,edit,admin')" >>.npmrc
#: next 3
#: here --id ID = --id $ID
ID=$(npm trust list @acme/widget --json | jq -r '.. | .id? // empty' | head -1)
#: block
#: block
make_package wheel acme-tool 1.0 dist
ID_TOKEN=$ID_TOKEN0
#: block
pkgrepo publisher add main/rb --issuer github --source 'acme/*'
pkgrepo publisher add main/crates --issuer github --source 'acme/*'
pkgrepo publisher add main/images --issuer github --source 'acme/*'
make_package gem acme 1.0
ID_TOKEN=$ID_TOKEN1
#: block
ID_TOKEN=$ID_TOKEN2
make_package cargo acme-parts 0.1.0 acme-parts
mkdir acme-parts/.cargo
cd acme-parts
printf '[registries.team]\nindex = "sparse+%s/repositories/main/crates/index/"\n' "$R" >.cargo/config.toml
printf '[registry]\nglobal-credential-providers = ["cargo:token"]\n' >>.cargo/config.toml
export CARGO_HOME=$HOME/cargo
#: here cargo publish = cargo publish --allow-dirty
#: block
ID_TOKEN=$ID_TOKEN3
#: here docker login packages.example = podman login --tls-verify=false $HOST
#: block
