"""The completion scripts work in real shells."""

import subprocess
from pathlib import Path

import pytest

from tests.support.client_programs import program
from tests.support.command_line import PROGRAM
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

# Complete the line "$1": the word under the cursor is its last one. Each prints the candidates.
BASH = """
source "$SCRIPT"
COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
if [ "${1% }" != "$1" ]; then COMP_WORDS+=(""); COMP_CWORD=$((COMP_CWORD + 1)); fi
_pkgrepo_completion pkgrepo
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
autoload -Uz compinit; compinit -u -D
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PATH=$PATH; autoload -Uz compinit; compinit -u -D; source $SCRIPT; PROMPT='' ; LISTMAX=0"
zpty -w z "echo READY"
zpty -r z out '*READY*READY*'
zpty -n -w z "$1"$'\\t\\t'
sleep 3
zpty -r -t z out '*'
print -r -- "$out"
"""
FISH = """
source $SCRIPT
complete -C $argv[1]
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A folder with the scripts of all shells."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        result = subprocess.run([PROGRAM, "completion", shell], capture_output=True, check=True, timeout=TIMEOUT_S)
        (folder / shell).write_bytes(result.stdout)
    return folder


def complete(admin, scripts, shell, line):
    commands = {"bash": ["-c", BASH, "bash"], "zsh": ["-f", "-c", ZSH, "zsh"], "fish": ["-N", "-c", FISH]}
    variables = {"SCRIPT": str(scripts / shell), "TERM": "dumb"}
    environ = {**admin.environ(), **variables}
    environ["PATH"] = f"{Path(PROGRAM).parent}:{environ['PATH']}"
    result = subprocess.run(
        [program(shell), *commands[shell], line],
        env=environ,
        cwd=admin.folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return result.stdout.split(), result


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed(admin, scripts, shell):
    words, result = complete(admin, scripts, shell, "pkgrepo repo de")
    assert "delete" in " ".join(words), result
    words, result = complete(admin, scripts, shell, "pkgrepo package y")
    assert "yank" in " ".join(words), result


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_candidates_are_exactly_those_that_fit(admin, scripts, shell):
    words, result = complete(admin, scripts, shell, "pkgrepo p")
    assert sorted(words) == ["package", "profile", "project"], result
    words, _ = complete(admin, scripts, shell, "pkgrepo whoami --profile d")
    assert words == ["default"]
    words, _ = complete(admin, scripts, shell, "pkgrepo whoami --token-")
    assert [word for word in words if word.startswith("--")] == ["--token-file"]


def test_an_unknown_shell_is_refused(admin):
    assert admin.run("completion", "tcsh").returncode == 2
