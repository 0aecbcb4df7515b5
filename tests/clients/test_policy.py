"""What the programs of each format print when a rule refuses something, and which version they take instead."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.client_programs import client, client_environment, run_client
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, host_of, push_image
from tests.support.format_cases import CASES
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.maven_clients import MavenBench
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PythonBench
from tests.support.ruby_clients import TOOLS, RubyBench
from tests.support.server_process import ServerProcess
from tests.support.timeouts import polled

pytestmark = pytest.mark.clients

CONFIG = "".join(hosted(each, f"{each}-own") for each in (*CASES, "docker"))
ENVIRONMENT = {"PKGREPO_SERVER__WORKERS": "2"}
WHY = "steals keys"
RATTLER = Path(__file__).parent / "conda" / "rattler_client.py"


@pytest.fixture(scope="module")
def api(server: ServerProcess) -> HttpClient:
    """The API of a server with two versions of ``demo`` in each format."""
    for name, case in CASES.items():
        case.publish_by(HttpClient(f"{server.url}/repositories/main/{name}-own", ADMIN))
    wire = HttpClient(server.url, ADMIN)
    push_image(wire, "main/docker-own/demo", make_image("one"), "1.0")
    push_image(wire, "main/docker-own/demo", make_image("two"), "1.1")
    return HttpClient(f"{server.url}/api", ADMIN)


@contextmanager
def refusing(api: HttpClient, name: str, kind: str, versions: str) -> Iterator[None]:
    """Refuse versions of all packages of a repository by a block, a rule, or a quarantine."""
    if kind == "block":
        body = {"repository": f"main/{name}", "package": "*", "versions": versions, "reason": WHY}
        made = api.post_json("/policy/blocks", body)
        assert made.status == 201, made.text
        yield
        assert api.delete(f"/policy/blocks/{made.json['id']}").status == 204
        return
    rule = {"name": "no thieves", "match": {"versions": versions}, "action": kind.replace("rule", "block")}
    path = f"/repository/main%2F{name}/config/policy"
    assert api.post_json(path, {"rules": [{**rule, "reason": WHY}]}, "PATCH").status == 200
    yield
    assert api.post_json(path, {"rules": []}, "PATCH").status == 200


KINDS = ["block", "rule", "quarantine"]


@pytest.mark.shows("held")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", ["pip", "uv"])
def test_python_programs(server: ServerProcess, api: HttpClient, tmp_path: Path, program: str, kind: str) -> None:
    bench = PythonBench(tmp_path)
    python, url = bench.venv(), f"{server.url}/repositories/main/python-own"

    def install(*arguments: str, status: int | None = 0) -> str:
        if program == "pip":
            return bench.pip(python, "install", *arguments, status=status)
        return bench.run(client("uv"), "pip", "install", "--python", python, *arguments, status=status)

    with refusing(api, "python-own", kind, "1.1"):
        install("--index-url", f"{url}/simple/", "demo")
        assert "1.0" in bench.run(python, "-c", "from importlib.metadata import version; print(version('demo'))")
        printed = " ".join(install("--index-url", f"{url}/simple/", "demo==1.1", status=None).split())
        assert ("demo==1.1" in printed or "demo-1.1" in printed, WHY in printed) == (True, program == "uv"), printed
        if program == "uv":
            printed = " ".join(install("--index-url", f"{url}/simple/", "demo>1.0", status=1).split())
            assert ("was yanked (reason: demo 1.1" in printed, WHY in printed) == (True, True), printed
        address = f"demo @ {url}/packages/demo/1.1/demo-1.1-py3-none-any.whl"
        printed = " ".join(install(address, status=1 if program == "pip" else 2).split())
        assert ("403" in printed, WHY in printed) == (True, True), printed


@pytest.mark.shows("held")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", ["npm-10", "npm-12"])
def test_npm(server: ServerProcess, api: HttpClient, tmp_path: Path, program: str, kind: str) -> None:
    here = NodeBench(tmp_path, Registry(server.url, "main/npm-own"), None)
    project = here.project("app")
    with refusing(api, "npm-own", kind, "1.1.0"):
        here.install(program, project, "demo")
        assert json.loads((project / "package-lock.json").read_text())["packages"]["node_modules/demo"]["version"] == (
            "1.0.0"
        )
        assert "1.1.0" in here.install(program, project, "demo@1.1.0", status=1)
        allowed = ["--allow-remote=all"] if program == "npm-12" else []  # what an address names
        printed = here.install(program, project, f"{here.registry.url}demo/-/demo-1.1.0.tgz", *allowed, status=1)
        assert ("403" in printed, WHY in printed) == (True, True), printed


@pytest.mark.shows("held")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tools", TOOLS)
def test_gem_and_bundle(server: ServerProcess, api: HttpClient, tmp_path: Path, tools: str, kind: str) -> None:
    bench = RubyBench(tmp_path, tools, f"{server.url}/repositories/main/ruby-own", None)
    with refusing(api, "ruby-own", kind, "1.1.0"):
        bench.write_gemfile("demo")
        bench.bundle("install")
        assert "demo (1.0.0)" in bench.locked()
        (bench.project / "Gemfile.lock").write_text(bench.locked().replace("1.0.0", "1.1.0"))
        printed = bench.bundle("install", status=None)
        assert "1.1.0" in printed
        printed = bench.gem("install", "demo", "--clear-sources", "-s", f"{bench.url}/")
        assert "demo-1.0.0" in printed
        printed = bench.gem("install", "demo", "-v", "1.1.0", "--clear-sources", "-s", f"{bench.url}/", status=None)
        assert "1.1.0" in printed or WHY in printed


@pytest.mark.shows("held")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maven", ["maven-3.9"])
def test_maven(server: ServerProcess, api: HttpClient, tmp_path: Path, maven: str, kind: str) -> None:
    bench = MavenBench(tmp_path, f"{server.url}/repositories/main/maven-own", None)
    with refusing(api, "maven-own", kind, "1.1"):
        bench.fetch(maven, "com.example:demo:1.0")
        printed = bench.fetch(maven, "com.example:demo:1.1", status=1)
        assert ("403" in printed, WHY in printed) == (True, True), printed


@pytest.mark.shows("held", by=("rattler",))
@pytest.mark.parametrize("kind", KINDS)
def test_rattler(server: ServerProcess, api: HttpClient, tmp_path: Path, kind: str) -> None:
    environ = client_environment(tmp_path / "home")

    def install(spec: str, status: int) -> str:
        arguments: dict[str, Any] = {"channel": f"{server.url}/repositories/main/conda-own", "specs": [spec]}
        arguments |= {"prefix": str(tmp_path / "env"), "cache": str(tmp_path / "cache")}
        command = [client("rattler", "python"), RATTLER, json.dumps(arguments)]
        return run_client(command, environ=environ, folder=tmp_path, status=status).stdout

    with refusing(api, "conda-own", kind, "1.1"):
        assert "demo-1.0-py_0.conda" in install("demo", 0)
        assert "demo ==1.1" in install("demo==1.1", 1)


@pytest.mark.shows("held", by=("crane",))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("program", ["crane"])
def test_images(server: ServerProcess, api: HttpClient, tmp_path: Path, program: str, kind: str) -> None:
    here = ContainerClients(tmp_path, host_of(server))
    name = f"{here.host}/main/docker-own/demo"
    with refusing(api, "docker-own", kind, "1.1"):
        here.run(program, "pull", f"{name}:1.0", tmp_path / "one.tar")
        digest = make_image("two").digest
        for reference in (f"{name}:1.1", f"{name}@{digest}"):
            printed = here.run(program, "pull", reference, tmp_path / "two.tar", status=1)
            assert ("DENIED" in printed, WHY in printed) == (True, True), printed


def test_a_running_loop_of_pip_sees_a_block_on_all_workers(
    server: ServerProcess, api: HttpClient, tmp_path: Path
) -> None:
    bench = PythonBench(tmp_path)
    python, index = bench.venv(), f"{server.url}/repositories/main/python-own/simple/"
    blocked, outcomes = threading.Event(), list[tuple[bool, bool]]()  # whether it was blocked before, and the result

    def download(number: int) -> None:
        while not outcomes or not all(outcomes[-1]):
            was_blocked = blocked.is_set()
            command = ("download", "--no-deps", "--no-cache-dir", "-d", tmp_path / f"got{number}", "-i", index)
            printed = bench.pip(python, *command, "demo==1.1", status=None)
            outcomes.append((was_blocked, "No matching distribution" in printed))
            if was_blocked:
                return

    threads = [threading.Thread(target=download, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    polled(lambda: outcomes)
    with refusing(api, "python-own", "block", "1.1"):
        blocked.set()
        for each in threads:
            each.join()
        assert [refused for was_blocked, refused in outcomes if was_blocked] == [True] * 3
    assert any(not refused for _, refused in outcomes)
