#: here PASSWORD = $PASSWORD
#: here ID = $ID
create origin npm
create mirror npm public --upstream "$R/repositories/main/origin/"
make_package tarball left-pad 1.3.1
pkgrepo upload main/origin left-pad-1.3.1.tgz
for version in 1.0.0 1.1.0; do
    make_package tarball right-pad $version
    pkgrepo upload main/origin right-pad-$version.tgz
done
#: block
#: block
#: next 1
ID=$(pkgrepo freezes --json | jq -r '[.. | .id? // empty][0]')
#: block
echo '[{"name": "wait", "match": {"packages": ["right-pad"]}, "action": "quarantine"}]' >wait.json
pkgrepo rules set main/mirror wait.json
refused curl "$R/repositories/main/mirror/right-pad"
waits() { pkgrepo quarantine list | grep right-pad; }
soon waits
#: next 1
ID=$(pkgrepo quarantine list --json | jq -r '[.. | .id? // empty][0]')
#: next 2
ID=$(pkgrepo quarantine list --json | jq -r '[.. | .id? // empty][0]')
#: block
