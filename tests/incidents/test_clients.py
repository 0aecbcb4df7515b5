"""
Published incidents from end to end: an upstream with harmless packages of their shape, a proxy with suggested rules,
and client programs, which print why they get nothing of what did harm, and take the version before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PythonBench, PythonIndex
from tests.support.ruby_clients import NEWER, RubyBench
from tests.support.server_process import ServerProcess
from tests.support.upstreams.incidents import IncidentUpstream

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@frozen
class Case:
    """
    A version of an incident; ``before`` is the version that clients take instead.

    ``rule`` is what is printed of the one that holds it however old it is; clients take ``later`` then, which no such
    rule holds, or else ``before``.
    """

    incident: str
    format: str
    package: str
    version: str
    before: str
    rule: str = ""
    later: str = ""

    def __str__(self) -> str:
        return self.incident


CASES = [
    Case("axios", "npm", "axios", "1.14.1", "1.14.0", "trust fell"),
    Case("nx-s1ngularity", "npm", "nx", "21.5.0", "21.4.1", "trust fell"),
    Case("chalk-debug", "npm", "debug", "4.4.2", "4.4.1", "new obfuscated or minified code in index.js since 4.4.1"),
    Case(
        "phantom-gyp", "npm", "@vapi-ai/server-sdk", "1.2.1", "1.2.0", "first install_script, first native_build, new"
    ),
    Case("event-stream", "npm", "event-stream", "3.3.6", "3.3.4", "new young_dependency flatmap-stream since 3.3.4"),
    Case("tanstack", "npm", "@tanstack/react-router", "1.169.5", "1.169.2", "new git_dependency @tanstack/setup"),
    Case("litellm", "python", "litellm", "1.82.8", "1.80.0", "first pth since", "1.82.7"),
    Case("ultralytics", "python", "ultralytics", "8.3.46", "8.3.0", "trust fell", "8.3.43"),
    Case("rest-client", "ruby", "rest-client", "1.6.13", "2.0.2"),
]


@pytest.fixture(scope="module", autouse=True)
def happened(upstreams: dict[str, IncidentUpstream]) -> None:
    for each in CASES:
        upstreams[each.format].happen(each.incident, each.package, each.version)


def npm(server: ServerProcess, folder: Path, repository: str, case: Case) -> tuple[str, str]:
    bench = NodeBench(folder, Registry(server.url, f"main/{repository}"), None)
    file = f"{case.package.rpartition('/')[2]}-{case.version}.tgz"
    address = f"{bench.registry.url}{case.package}/-/{file}"
    printed = bench.install("npm-11", bench.project("asked"), address, status=1)
    place = bench.project("free")
    bench.install("npm-11", place, case.package)
    installed = json.loads((place / "node_modules" / case.package / "package.json").read_text())
    return printed, str(installed["version"])


def pip(server: ServerProcess, folder: Path, repository: str, case: Case) -> tuple[str, str]:
    bench, index = PythonBench(folder), PythonIndex(server.url, f"main/{repository}")
    name = f"{case.package}-{case.version}-py3-none-any.whl"
    address = f"{index.url}/packages/{case.package}/{case.version}/{name}"
    python = bench.venv()
    printed = bench.pip(python, "download", "--no-deps", "-d", folder / "asked", address, status=1)
    bench.pip(python, "download", "--no-deps", "-d", folder / "free", "-i", index.simple, case.package)
    (got,) = (folder / "free").iterdir()
    return printed, got.name.split("-")[1]


def gem(server: ServerProcess, folder: Path, repository: str, case: Case) -> tuple[str, str]:
    bench = RubyBench(folder, NEWER, f"{server.url}/repositories/main/{repository}", None)
    sources = ("--clear-sources", "-s", f"{bench.url}/")
    printed = bench.gem("fetch", case.package, "-v", case.version, *sources, status=None)
    bench.write_gemfile(case.package)
    bench.bundle("lock")
    (line,) = [each for each in bench.locked().splitlines() if each.startswith(f"    {case.package} (")]
    return printed, line.rpartition("(")[2].rstrip(")")


PROGRAMS: dict[str, Callable[[ServerProcess, Path, str, Case], tuple[str, str]]] = {
    "npm": npm,
    "python": pip,
    "ruby": gem,
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_program_prints_why_and_takes_the_version_before(server: ServerProcess, tmp_path: Path, case: Case) -> None:
    printed, taken = PROGRAMS[case.format](server, tmp_path, f"{case.format}-suggested", case)
    assert "young" in printed
    assert taken == case.before


@pytest.mark.parametrize("case", [each for each in CASES if each.rule], ids=str)
def test_what_a_rule_holds_that_asks_for_no_age_is_held_later_too(
    server: ServerProcess, tmp_path: Path, case: Case
) -> None:
    printed, taken = PROGRAMS[case.format](server, tmp_path, f"{case.format}-later", case)
    assert case.rule in printed
    assert taken == (case.later or case.before)
