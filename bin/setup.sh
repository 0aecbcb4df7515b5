# Sourced by the scripts in this folder: finds a Python, makes the virtual environment, installs dependencies, runs tests.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${PKGREPO_VENV:-$root/.venv}

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# may_install: whether this runs as root on Debian or Ubuntu.
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# run_apt ARGUMENT...: apt-get, which waits for up to ten minutes while another one holds its locks. apt has a time limit
# of its own for the locks of dpkg only, and not for that of the package lists.
run_apt() {
    local output status ends=$((SECONDS + 600))
    while true; do
        status=0
        output=$(LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" 2>&1 >/dev/null) || status=$?
        [[ $status != 0 && $output = *"Could not get lock"* ]] && ((SECONDS < ends)) || break
        sleep 2
    done
    [ -z "$output" ] || say "$output"
    return "$status"
}

# install_debian PACKAGE...: quietly; the package lists are updated at most once per run.
install_debian() {
    if [ -z "${lists_are_fresh:-}" ]; then
        run_apt update -qq || return
        lists_are_fresh=1
    fi
    run_apt install -y -qq --no-install-recommends "$@"
}

# find_go: the path of Go, from PATH or /usr/local/go.
find_go() { command -v go || { [ -x /usr/local/go/bin/go ] && echo /usr/local/go/bin/go; }; }

# find_cargo: the path of Cargo, from PATH or where rustup installs it.
find_cargo() { command -v cargo || { [ -x ~/.cargo/bin/cargo ] && echo ~/.cargo/bin/cargo; }; }

# find_python: the first Python of version 3.11 or newer; PKGREPO_PYTHON is tried first.
find_python() {
    local candidate
    for candidate in ${PKGREPO_PYTHON:+"$PKGREPO_PYTHON"} python3.14 python3.13 python3.12 python3.11 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    die "Python 3.11 or newer is needed (Debian and Ubuntu: apt-get install python3; or set PKGREPO_PYTHON)"
}

# make_venv FOLDER: a virtual environment with pip. On Debian `python -m venv` needs the package python3-venv.
make_venv() {
    local python version
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "making a virtual environment with Python $version in $1"
    "$python" -m venv --clear "$1" >/dev/null 2>&1 && return
    if may_install; then
        say "installing python$version-venv"
        install_debian "python$version-venv" || install_debian python3-venv || true
        "$python" -m venv --clear "$1" >/dev/null 2>&1 && return
    fi
    rm -rf "$1"
    if command -v virtualenv >/dev/null; then
        virtualenv --quiet --python "$python" "$1" && return
    fi
    die "$python cannot make virtual environments; install python$version-venv (Debian, Ubuntu) or virtualenv"
}

# install_project [EXTRAS]: the project from this checkout with its dependencies, unless they are installed.
install_project() {
    local extras=${1:-} stamp want
    stamp=$venv/.installed${extras:+-${extras//,/-}}
    want="$root $(sha256sum <"$root/pyproject.toml")"
    [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(<"$stamp")" = "$want" ] && return
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || make_venv "$venv"
    say "installing pkgrepo${extras:+ with [$extras]}"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root${extras:+[$extras]}" ||
        die "pip could not install the dependencies"
    # twistd looks for plugins in sys.path, which an editable install does not extend.
    echo "$root" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/pkgrepo-checkout.pth"
    "$venv/bin/python" -c 'from twisted.plugin import IPlugin, getPlugins; list(getPlugins(IPlugin))'
    printf '%s' "$want" | tee "$stamp" >"$venv/.installed" # with extras or without
}

# run_tests COMMAND... -- ARGUMENT...: run pytest, by a command such as `-m pytest`, with these arguments. If from 1 to 5
# tests fail, they run once more, alone and in one process. Those that pass then are named as racy; those that fail again
# fail the run, and so do more than 5 at once. A run that ends at its first failures (-x) is not repeated.
run_tests() {
    local command=() cache status=0 failed=() again=() name
    while [ "$1" != -- ]; do command+=("$1") && shift; done
    shift
    cache=$(mktemp -d)
    "$venv/bin/python" "${command[@]}" -o cache_dir="$cache" "$@" || status=$?
    mapfile -t failed < <(failed_tests "$cache")
    if [ $status = 1 ] && [ ${#failed[@]} -ge 1 ] && [ ${#failed[@]} -le 5 ] && ! [[ " $* " =~ \ (-x|--exitfirst|--maxfail) ]]; then
        say "tests that failed run once more, alone: ${failed[*]}"
        status=0
        "$venv/bin/python" -m pytest -o cache_dir="$cache" "$@" -n 0 --last-failed || status=$?
        mapfile -t again < <(failed_tests "$cache")
        [ ${#again[@]} = 0 ] || status=1 # also those of another name now, which did not run
        for name in "${failed[@]}"; do
            [[ $'\n'$(printf '%s\n' "${again[@]}")$'\n' = *$'\n'"$name"$'\n'* ]] || say "racy: $name failed at first, and passed alone"
        done
    fi
    rm -rf "$cache"
    return $status
}

# failed_tests CACHE: the names of those that failed in the last run, one a line.
failed_tests() {
    [ ! -f "$1/v/cache/lastfailed" ] ||
        "$venv/bin/python" -c 'import json, sys; [print(name) for name in json.load(open(sys.argv[1]))]' "$1/v/cache/lastfailed"
}
