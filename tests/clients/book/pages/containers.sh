#: clients crane cosign
#: here 127.0.0.1:8081 = $HOST
#: here PASSWORD = $PASSWORD
#: here podman login --tls-verify=false -u admin $HOST = podman login --tls-verify=false -u admin -p "$PASSWORD" $HOST
#: here podman build = podman build --isolation=chroot
#: here docker save = podman save
#: here skopeo copy = skopeo --policy policy.json copy
#: here cosign generate-key-pair = COSIGN_PASSWORD= cosign generate-key-pair
#: here cosign sign = COSIGN_PASSWORD= cosign sign --yes --allow-http-registry
#: here DIGEST = $DIGEST
export STORAGE_DRIVER=vfs XDG_RUNTIME_DIR=$PWD/run REGISTRY_AUTH_FILE=$HOME/.docker/config.json
mkdir --parents run "$HOME/.config/containers" "$HOME/.docker" "$HOME/config/containers"
echo '{"default": [{"type": "insecureAcceptAnything"}]}' >policy.json
cp policy.json "$HOME/config/containers/"
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrunroot = "%s/run"\n' "$PWD" "$PWD" >"$HOME/config/containers/storage.conf"
echo hello >hello
printf 'FROM scratch\nCOPY hello /\n' >Containerfile
#: block
#: block
#: next 1
#: next 1
TOKEN=$(pkgrepo token create images --repository 'main/*=read,write,delete,admin')
podman login --tls-verify=false -u admin -p "$TOKEN" "$HOST"
DIGEST=$(crane digest --insecure "$HOST/main/images/app:1")
#: block
crane digest --insecure "$HOST/main/images/app:1"
#: block
