# What scripts of pages have: a login at the server, and functions that do what readers do by hand.
# R, HOST, PASSWORD and DATA are the address, the host and port, the admin's password and the data folder of the server.

curl() { # an error of the server ends the script
    case " $*" in
        *" -f"*) command curl --silent --show-error "$@" ;;
        *) command curl --silent --show-error --fail-with-body "$@" ;;
    esac
}
make_package() { "$PYTHON" -m tests.clients.book.packages "$@"; } # see packages.py
admin() { curl -u "admin:$PASSWORD" "$@"; }
create() { pkgrepo repo create "main/$1" --format "$2" --visibility "${3:-public}" "${@:4}"; } # NAME FORMAT [VISIBILITY]
typed() { "$PYTHON" -m tests.clients.book.typed "$@"; } # COMMAND ANSWER... at a terminal
soon() { for _ in $(seq 300); do "$@" && return; sleep 0.1; done; return 1; } # a command that succeeds after a while
for_a_moment() { timeout 3 "$@" || [ $? = 124 ]; } # a command that does not end by itself
refused() { ! "$@"; }
# conda's own program comes with an installer, and not from an index of packages: py-rattler takes its place.
conda() { # install --override-channels -c CHANNEL NAME
    "$CLIENTS/rattler/bin/python" "$ROOT/tests/clients/conda/rattler_client.py" \
        "{\"channel\": \"$4\", \"specs\": [\"$5\"], \"prefix\": \"$PWD/conda\", \"cache\": \"$PWD/conda-cache\"}"
}

printf '%s' "$PASSWORD" >../password
chmod 600 ../password
pkgrepo login "$R" --username admin --password-file ../password
