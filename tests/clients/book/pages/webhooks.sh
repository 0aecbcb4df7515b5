#: settings
[webhooks]
allow_private = ["127.0.0.1"]
#: beside receiver
#: here ada = "admin:$PASSWORD"
#: here https://ci.example/hooks/pkgrepo = $RECEIVER
#: here pkgrepo events --follow = for_a_moment pkgrepo events --follow
#: here curl -u "admin:$PASSWORD" -N = for_a_moment curl -f -u "admin:$PASSWORD" -N
#: here wait=30 = wait=1
#: here evt_1204_19c2ab4f3d0 = $EVENT
#: here after=1204 = after=0
#: here ID = $ID
create app npm
#: next 1
ID=$(pkgrepo webhook list --json | jq -r '.[0].id // .webhooks[0].id')
#: block
make_package tarball left-pad 1.0.0
pkgrepo upload main/app left-pad-1.0.0.tgz
EVENT=$(admin "$R/api/events?repository=main/app" | head -1 | jq -r .id)
#: block
