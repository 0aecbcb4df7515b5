"""The completion scripts work in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import PROGRAM
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

# Each completes the line "$1", whose last word is the one under the cursor, and prints the candidates.
COMPLETIONS = {
    "bash": """
        source "$SCRIPT"
        COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _pkgrepo_completion pkgrepo
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    # outside its line editor zsh has no compadd and no _describe; the last argument names the candidates
    "zsh": """
        compdef() { }
        _describe() { print -rl -- "${(@)${(P@)3}%%:*}" }
        compadd() { print -rl -- "${(P@)5}" }
        words=(${(z)1}); CURRENT=${#words}
        source "$SCRIPT"
        _pkgrepo_completion
    """,
    "fish": """
        source $SCRIPT
        complete -C "$argv[2]" | string replace -r '\\t.*' ''; or true
    """,
}
OPTIONS = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A folder with the scripts of all shells."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in COMPLETIONS:
        result = subprocess.run([PROGRAM, "completion", shell], capture_output=True, check=True, timeout=TIMEOUT_S)
        (folder / shell).write_bytes(result.stdout)
    return folder


@pytest.mark.parametrize("shell", COMPLETIONS)
@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("pkgrepo p", ["package", "profile", "project", "publisher"]),
        ("pkgrepo repo de", ["delete"]),
        ("pkgrepo package y", ["yank"]),
        ("pkgrepo whoami --profile d", ["default"]),
        ("pkgrepo whoami --token-", ["--token-file"]),
    ],
    ids=["command", "group", "package", "profile", "option"],
)
def test_a_shell_gets_exactly_the_candidates_that_fit(admin, scripts, shell, line, candidates):
    environ = admin.environ(SCRIPT=str(scripts / shell))
    environ["PATH"] = f"{Path(PROGRAM).parent}:{environ['PATH']}"
    result = subprocess.run(
        [_installed(shell), *OPTIONS[shell], "-c", COMPLETIONS[shell], shell, line],
        env=environ,
        cwd=admin.folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert (sorted(result.stdout.split()), result.stderr) == (candidates, "")


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_the_script_is_one_of_its_shell(scripts, shell):
    assert "pkgrepo" in (scripts / shell).read_text()
    subprocess.run([_installed(shell), "-n", scripts / shell], check=True, timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    ("words", "current", "candidates"),
    [
        ("pkgrepo\np", "p", ["package", "profile", "project", "publisher"]),
        ("pkgrepo\nrepo\nde", "de", ["delete"]),
        ("pkgrepo\nwhoami\n--profile", "", ["default"]),
        ("pkgrepo\nwhoami\n--profile\nd", "'d'", ["default"]),
        ("pkgrepo\nwhoami\n--token-", "--token-", ["--token-file"]),
        ("pkgrepo\nupload\nmain/py\nx", "x", []),
    ],
)
def test_powershell_gets_the_candidates_that_fit(admin, words, current, candidates):
    told = {"COMP_WORDS": words, "COMP_CWORD": current, "_PKGREPO_COMPLETE": "powershell_complete"}
    lines = [line for line in admin(**told).splitlines() if line]
    assert sorted(line.partition("\t")[0] for line in lines) == candidates


def test_the_script_of_powershell_hands_over_the_words_and_cleans_up():
    result = subprocess.run(
        [PROGRAM, "completion", "powershell"], capture_output=True, check=True, timeout=TIMEOUT_S, text=True
    )
    script = result.stdout
    assert "Register-ArgumentCompleter -Native -CommandName pkgrepo -ScriptBlock {" in script
    for name in ("COMP_WORDS", "COMP_CWORD", "_PKGREPO_COMPLETE"):
        assert f"$env:{name} = " in script
        assert f"Env:{name}" in script.partition("finally")[2]
    assert "%" not in script
    assert [script.count(each) for each in "{(["] == [script.count(each) for each in "})]"]


def test_an_unknown_shell_is_refused(admin):
    assert admin.run("completion", "tcsh").returncode == 2


def _installed(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found
