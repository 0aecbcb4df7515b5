"""bin/setup.sh, which the other scripts source, with programs of the system that the test writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each call is a line of the file ``calls``; ``update`` fails as often as the variable HELD says.
APT_GET = """#!/bin/bash
echo "$@" >>calls
if [[ "$*" = *update* && $(grep -c update calls) -le $HELD ]]; then
    echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)" >&2
    exit 100
fi
if [[ "$*" = *unknown* ]]; then echo "E: Unable to locate package unknown" >&2; exit 100; fi
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command of bash after the script was sourced, with apt-get and sleep of the test."""
    for name, text in {"apt-get": APT_GET, "sleep": "#!/bin/bash\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        script = f'set -euo pipefail; source "{ROOT}/bin/setup.sh"; {command}'
        environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
        return subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    return run


def test_packages_are_installed_when_another_apt_has_ended(run: Run, tmp_path: Path) -> None:
    ended = run("install_debian one two", HELD="2")
    assert (ended.returncode, ended.stderr) == (0, "")
    update, install = "-o DPkg::Lock::Timeout=600 update -qq", "install -y -qq --no-install-recommends one two"
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [update, update, update, f"-o DPkg::Lock::Timeout=600 {install}"]


def test_a_package_that_does_not_exist_is_not_waited_for(run: Run, tmp_path: Path) -> None:
    ended = run("install_debian unknown", HELD="0")
    assert (ended.returncode, ended.stderr) == (100, "E: Unable to locate package unknown\n")
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


RACY = """
import pathlib

import pytest


@pytest.mark.parametrize("number", range(6))
def test_first(number):
    place = pathlib.Path(__file__).with_name(str(number))
    ran, _ = place.exists(), place.touch()
    assert ran or number >= {racy}


def test_second():
    assert {passes}
"""


RENAMED = """
import pathlib

import pytest

ran = pathlib.Path("ran").exists()
pathlib.Path("ran").touch()


def test_first():
    assert ran


@pytest.mark.parametrize("ran", [ran])
def test_second(ran):
    assert ran
"""
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.mark.parametrize(
    ("racy", "passes", "options", "status", "named", "runs"),
    [
        (0, True, "", 0, [], 1),
        (2, True, "", 0, [0, 1], 2),
        (2, False, "", 1, [0, 1], 2),
        (6, True, "", 1, [], 1),
        (1, True, "-x", 1, [], 1),
    ],
    ids=["all pass", "racy", "one fails twice", "many fail", "ends at the first failure"],
)
def test_a_test_that_fails_once_is_named_as_racy(
    run: Run, tmp_path: Path, racy: int, passes: bool, options: str, status: int, named: list[int], runs: int
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(RACY.format(racy=racy, passes=passes))
    ended = run(
        f"run_tests -m pytest -- test_it.py {options}", PKGREPO_VENV=sys.prefix, TMPDIR=str(tmp_path), **PLUGINS
    )
    assert ended.returncode == status, ended
    said = [line for line in ended.stderr.splitlines() if line.startswith("racy: ")]
    assert said == [f"racy: test_it.py::test_first[{n}] failed at first, and passed alone" for n in named]
    assert ended.stdout.count(" seconds ") + ended.stdout.count(" in ") == runs
    assert not [each for each in tmp_path.iterdir() if each.name.startswith("tmp")], "the cache is removed"


def test_a_failed_test_that_does_not_run_again_fails_the_run(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(RENAMED)
    ended = run("run_tests -m pytest -- test_it.py", PKGREPO_VENV=sys.prefix, TMPDIR=str(tmp_path), **PLUGINS)
    assert ended.returncode == 1, ended
    assert ended.stderr.splitlines()[-1] == "racy: test_it.py::test_first failed at first, and passed alone"
