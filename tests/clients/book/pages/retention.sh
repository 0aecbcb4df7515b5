#: here trash purge = trash purge --yes
create npm npm
create npm-proxy npm public --upstream "$R/repositories/main/npm/"
create py python
pkgrepo project create acme
make_package wheel demo 1.2
pkgrepo upload main/py demo-1.2-py3-none-any.whl
make_package tarball left-pad 1.0.0
make_package tarball left-pad 1.1.0
pkgrepo upload main/npm left-pad-1.0.0.tgz
pkgrepo upload main/npm left-pad-1.1.0.tgz
#: next 2
#: here retention run main/npm = retention run main/npm --yes
#: here retention set main/npm-proxy --last 5 --downloaded-within 90 = retention set main/npm-proxy --last 5 --downloaded-within 90 --yes
echo '{"enabled": true, "max_delete_percent": 60, "rules": [{"name": "few", "keep": {"last": 1}, "action": "trash"}]}' >rules.json
#: block
pkgrepo trash list main/npm | grep left-pad
#: block
#: block
#: here ID = $ID
ID=$(pkgrepo trash list main/npm --json | jq -r '.. | .id? // empty' | head -1)
#: next 2
pkgrepo retention run main/npm --yes
ID=$(pkgrepo trash list main/npm --json | jq -r '.. | .id? // empty' | head -1)
#: block
