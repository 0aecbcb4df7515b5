# Sourced by scripts in this folder after setup.sh: installs programs that are no dependencies of the project, from
# Debian's packages, and those that Go builds.
# shellcheck shell=bash

clients=$root/.cache/clients # each client program has its own folder

# missing SENTENCE: report that something is skipped; fail if clients are required.
missing() {
    if [ "${PKGREPO_REQUIRE_CLIENTS:-}" = 1 ]; then die "$*"; fi
    say "skipping: $*"
}

# install_programs PROGRAM PACKAGE...
install_programs() {
    local wanted=()
    while [ $# != 0 ]; do
        command -v "$1" >/dev/null || wanted+=("$2")
        shift 2
    done
    [ ${#wanted[@]} = 0 ] && return
    # RUNLEVEL=1: invoke-rc.d starts no daemons of the installed packages. Tests start their own.
    if may_install && RUNLEVEL=1 install_debian "${wanted[@]}"; then return; fi
    missing "what needs ${wanted[*]} (as root this installs them)"
}

# machine_has GO PACKAGE: the path of this package's program in the pinned version, from PATH, GOBIN or GOPATH/bin.
machine_has() {
    local go=$1 package=$2 name=${2##*/} module version file built
    read -r module version < <(awk -v package="$package" 'index(package, $1 "/") == 1 { print $1, $2 }' "$root/tests/clients/go/go.mod")
    while read -r file; do
        built=$([ -x "$file" ] && "$go" version -m "$file" 2>/dev/null) || continue
        [[ "$built" = *$'\tpath\t'"$package"$'\n'* && "$built" = *$'\tmod\t'"$module"$'\t'"$version"[$'\t\n']* ]] || continue
        echo "$file"
        return
    done < <(type -ap "$name" || true; echo "$("$go" env GOBIN)/$name"; echo "$("$go" env GOPATH)/bin/$name")
    return 1
}

# build_go_clients GO STAMP PACKAGE...: programs of the module in tests/clients/go; its go.sum pins all dependencies.
# One command builds all of them, so that linking and compiling overlap. Without debug information and inlining the
# compiler takes 0.7 of its time. Go's caches (GOCACHE, GOMODCACHE) are used.
build_go_clients() {
    local go=$1 want=$2 package place built
    built=$(mktemp -d)
    say "building the clients ${*:3}"
    (cd "$root/tests/clients/go" &&
        CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off "$go" build -trimpath -gcflags='all=-dwarf=false -l' \
            -ldflags='-s -w' -o "$built/" "${@:3}" 2>"$built/log") || tail -n 20 "$built/log" >&2
    for package in "${@:3}"; do
        place=$clients/${package##*/}
        [ -f "$built/${package##*/}" ] || continue
        rm -rf "$place" && mkdir -p "$place/bin" && mv "$built/${package##*/}" "$place/bin" &&
            printf '%s' "$want" >"$place/.installed"
    done
    rm -rf "$built"
}

# wanted_go_clients STAMP PACKAGE...: the packages that are not installed with this stamp.
wanted_go_clients() {
    local package stamp
    for package in "${@:2}"; do
        stamp=$clients/${package##*/}/.installed
        [ -f "$stamp" ] && [ "$(<"$stamp")" = "$1" ] || echo "$package"
    done
}

# install_go_clients [NAME...]: these or all. Each import of tests/clients/go/tools.go is a client; its name is the last
# part of the path.
install_go_clients() {
    local go package packages=() wanted want found place
    for package in $(sed -n 's/^\t_ "\(.*\)".*/\1/p' "$root/tests/clients/go/tools.go"); do
        [[ $# = 0 || " $* " = *" ${package##*/} "* ]] && packages+=("$package")
    done
    if ! go=$(find_go); then
        missing "what needs the clients ${packages[*]##*/}, which Go builds and there is no Go here"
        return
    fi
    want="$("$go" env GOVERSION) $(sha256sum <"$root/tests/clients/go/go.sum")"
    for package in $(wanted_go_clients "$want" "${packages[@]}"); do
        found=$(machine_has "$go" "$package") || continue
        say "using $found for the client ${package##*/}"
        place=$clients/${package##*/}
        rm -rf "$place" && mkdir -p "$place/bin" && cp "$found" "$place/bin" && printf '%s' "$want" >"$place/.installed"
    done
    for _ in 1 2; do # two attempts, because go does not retry downloads
        mapfile -t wanted < <(wanted_go_clients "$want" "${packages[@]}")
        [ ${#wanted[@]} = 0 ] || build_go_clients "$go" "$want" "${wanted[@]}"
    done
    mapfile -t wanted < <(wanted_go_clients "$want" "${packages[@]}")
    [ ${#wanted[@]} = 0 ] || missing "what needs the clients ${wanted[*]##*/}, which Go could not build"
}
