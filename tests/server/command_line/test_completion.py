"""The completion scripts work in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import PROGRAM
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

# Completes the line "$1", whose last word is the one under the cursor, and prints the candidates.
BASH = """
source "$SCRIPT"
COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_pkgrepo_completion pkgrepo
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A folder with the scripts of all shells."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        result = subprocess.run([PROGRAM, "completion", shell], capture_output=True, check=True, timeout=TIMEOUT_S)
        (folder / shell).write_bytes(result.stdout)
    return folder


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("pkgrepo p", ["package", "profile", "project"]),
        ("pkgrepo repo de", ["delete"]),
        ("pkgrepo package y", ["yank"]),
        ("pkgrepo whoami --profile d", ["default"]),
        ("pkgrepo whoami --token-", ["--token-file"]),
    ],
    ids=["command", "group", "package", "profile", "option"],
)
def test_bash_gets_exactly_the_candidates_that_fit(admin, scripts, line, candidates):
    environ = admin.environ(SCRIPT=str(scripts / "bash"))
    environ["PATH"] = f"{Path(PROGRAM).parent}:{environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", BASH, "bash", line],
        env=environ,
        cwd=admin.folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert (sorted(result.stdout.split()), result.stderr) == (candidates, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(scripts, shell):
    assert "pkgrepo" in (scripts / shell).read_text()
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([found, "-n", scripts / shell], check=True, timeout=TIMEOUT_S)


def test_an_unknown_shell_is_refused(admin):
    assert admin.run("completion", "tcsh").returncode == 2
