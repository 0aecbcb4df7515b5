"""The programs of each format install from a view of the past as from any repository, and take what was there then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import dated
from tests.support.cargo_clients import NAME as REGISTRY
from tests.support.cargo_clients import CargoBench
from tests.support.client_programs import client, client_environment, program, run_client
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.dated import KINDS, now_between
from tests.support.format_cases import CASES
from tests.support.go_clients import GoBench
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MavenBench
from tests.support.npm_clients import NodeBench, Registry
from tests.support.proxied import PRIVATE
from tests.support.python_index import PythonBench
from tests.support.ruby_clients import TOOLS, RubyBench
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.clients

FORMATS = ("npm", "python", "ruby", "maven", "conda", "cargo", "go", "helm", "raw")
RATTLER = Path(__file__).parent / "conda" / "rattler_client.py"
CONFIG = PRIVATE + "".join(hosted(each, f"{each}-own") for each in FORMATS)
SEEN = {
    "maven": [f"/com/example/{each}/maven-metadata.xml" for each in ("demo", "helper")],
    "conda": ["/noarch/repodata.json"],
    "raw": [f"/{each}/" for each in ("demo", "helper")],
}


@pytest.fixture(scope="module")
def then(server: ServerProcess) -> str:
    """A time before the second versions of ``demo`` and ``helper``, in each format, were published."""
    found = ""
    for each in FORMATS:
        dated.add_repositories(HttpClient(f"{server.url}/api", ADMIN), server.url, each)
    for version in ("1.0.0", "1.1.0"):
        found = found or now_between() if version == "1.1.0" else ""
        for each in FORMATS:
            for name in ("demo", "helper"):
                CASES[each].put_by(HttpClient(f"{server.url}/repositories/main/{each}-own", ADMIN), name, version)
            for document in SEEN.get(each, ()):  # of which an upstream tells no dates
                HttpClient(f"{server.url}/repositories/main/{each}-both", ADMIN).get(document)
    return found


def locked(project: Path) -> Mapping[str, str]:
    packages = json.loads((project / "package-lock.json").read_text())["packages"]
    return {place.rpartition("/")[2]: each["version"] for place, each in packages.items() if place}


@pytest.mark.shows("view")
@pytest.mark.parametrize(("program", "kind"), [("npm-9", "own"), *(("npm-11", each) for each in KINDS)])
def test_npm_installs_the_tree_of_then(
    server: ServerProcess, then: str, tmp_path: Path, program: str, kind: str
) -> None:
    here = NodeBench(tmp_path, Registry(server.url, f"main/npm-{kind}@{then}"), None)
    wanted = {"demo": "^1.0.0", "helper": "*"}
    project = here.project("app", dependencies=wanted)
    here.run(program, "install", cwd=project)
    assert locked(project) == {"demo": "1.0.0", "helper": "1.0.0"}
    again = here.project("again", dependencies=wanted)
    (again / "package-lock.json").write_text((project / "package-lock.json").read_text())
    here.run(program, "ci", cwd=again)
    assert locked(again) == {"demo": "1.0.0", "helper": "1.0.0"}
    assert "1.1.0" in here.install(program, project, "demo@1.1.0", status=1)
    present = NodeBench(tmp_path / "present", Registry(server.url, f"main/npm-{kind}"), None)
    newer = present.project("app", dependencies=wanted)
    present.run(program, "install", cwd=newer)
    assert locked(newer) == {"demo": "1.1.0", "helper": "1.1.0"}


@pytest.mark.shows("view")
@pytest.mark.parametrize("program", ["npm-11", "pnpm", "yarn-4", "bun"])
def test_clients_of_node_with_a_token_take_the_version_of_then(
    server: ServerProcess, then: str, tmp_path: Path, program: str
) -> None:
    token = Registry(server.url, "main/npm-own").token()
    here = NodeBench(tmp_path, Registry(server.url, f"main/npm-own@{then}"), token)
    project = here.project("app")
    here.install(program, project, "demo")
    installed = json.loads((project / "node_modules" / "demo" / "package.json").read_text())
    assert installed["version"] == "1.0.0"
    printed = here.publish(program, here.package("more"), status=1)
    assert "405" in printed or "use the address of main/npm-own" in printed


@pytest.mark.shows("view")
@pytest.mark.parametrize(("program", "kind"), [("uv", "own"), *(("pip", each) for each in KINDS)])
def test_python_programs_take_the_version_of_then(
    server: ServerProcess, then: str, tmp_path: Path, program: str, kind: str
) -> None:
    bench = PythonBench(tmp_path)
    python, index = bench.venv(), f"{server.url}/repositories/main/python-{kind}@{then}/simple/"

    def install(*arguments: str, status: int = 0) -> str:
        if program == "pip":
            return bench.pip(python, "install", "--index-url", index, *arguments, status=status)
        command = [client("uv"), "pip", "install", "--python", python, "--index-url", index, *arguments]
        return bench.run(*command, status=status)

    install("demo", "helper>=1")
    for name in ("demo", "helper"):
        printed = bench.run(python, "-c", f"from importlib.metadata import version; print(version({name!r}))")
        assert printed.strip().endswith("1.0.0")
    assert "demo==1.1.0" in install("demo==1.1.0", status=1)


@pytest.mark.shows("view")
@pytest.mark.parametrize(("tools", "kind"), [(TOOLS[0], "own"), *((TOOLS[-1], each) for each in KINDS)])
def test_gem_and_bundle_take_the_version_of_then(
    server: ServerProcess, then: str, tmp_path: Path, tools: str, kind: str
) -> None:
    bench = RubyBench(tmp_path, tools, f"{server.url}/repositories/main/ruby-{kind}@{then}", None)
    bench.write_gemfile("demo", "helper")
    bench.bundle("install")
    assert "demo (1.0.0)" in bench.locked()
    assert "helper (1.0.0)" in bench.locked()
    printed = bench.gem("install", "demo", "--clear-sources", "-s", f"{bench.url}/")
    assert "demo-1.0.0" in printed


@pytest.mark.shows("view")
@pytest.mark.parametrize(("maven", "kind"), [("maven-3.9", "own"), *(("maven-4", each) for each in KINDS)])
def test_maven_takes_the_version_of_then(
    server: ServerProcess, then: str, tmp_path: Path, maven: str, kind: str
) -> None:
    bench = MavenBench(tmp_path, f"{server.url}/repositories/main/maven-{kind}@{then}", None)
    found = bench.dependencies(maven, "com.example:demo:[1.0.0,2)", "com.example:helper:LATEST")
    assert found == {"demo-1.0.0.jar": b"PK1.0.0", "helper-1.0.0.jar": b"PK1.0.0"}


@pytest.mark.shows("view", by=("rattler",))
@pytest.mark.parametrize("kind", KINDS)
def test_rattler_takes_the_version_of_then(server: ServerProcess, then: str, tmp_path: Path, kind: str) -> None:
    arguments = {"channel": f"{server.url}/repositories/main/conda-{kind}@{then}", "specs": ["demo", "helper"]}
    arguments |= {"prefix": str(tmp_path / "env"), "cache": str(tmp_path / "cache")}
    command = [client("rattler", "python"), RATTLER, json.dumps(arguments)]
    printed = run_client(command, environ=client_environment(tmp_path / "home"), folder=tmp_path).stdout
    assert printed.count("-1.0.0-py_0.conda") == 2


@pytest.mark.shows("view", by=("cargo",))
@pytest.mark.parametrize("kind", KINDS)
def test_cargo_resolves_and_builds_what_was_there_then(
    server: ServerProcess, then: str, tmp_path: Path, kind: str
) -> None:
    needs = "\n[dependencies]\n"
    needs += "".join(f'{each} = {{ version = ">=1", registry = "{REGISTRY}" }}\n' for each in ("demo", "helper"))
    found = []
    for folder, at in (("then", f"@{then}"), ("now", "")):
        bench = CargoBench(tmp_path / folder, f"{server.url}/repositories/main/cargo-{kind}{at}")
        place = bench.package("app", more=needs)
        bench.run(place, "build")
        found.append((place / "Cargo.lock").read_text().count('version = "1.0.0"'))
    assert found == [2, 0]


@pytest.mark.shows("view", by=("go",))
@pytest.mark.parametrize("kind", KINDS)
def test_go_builds_what_was_there_then(server: ServerProcess, then: str, tmp_path: Path, kind: str) -> None:
    bench = GoBench(tmp_path, f"{server.url}/repositories/main/go-{kind}@{then}", {"GOFLAGS": "-modcacherw -mod=mod"})
    (bench.place / "main.go").write_text(
        'package main\n\nimport (\n"example.com/Acme/demo"\n"example.com/Acme/helper"\n)\n\n'
        "func main() { println(demo.Hello(), helper.Hello()) }\n"
    )
    bench.go("mod", "tidy")
    bench.go("build", ".")
    listed = bench.go("list", "-m", "all").splitlines()
    assert listed[1:] == ["example.com/Acme/demo v1.0.0", "example.com/Acme/helper v1.0.0"]
    assert bench.go("list", "-m", "-versions", "example.com/Acme/demo").split() == ["example.com/Acme/demo", "v1.0.0"]


@pytest.mark.shows("view", by=("helm",))
@pytest.mark.parametrize("kind", KINDS)
def test_helm_pulls_what_was_there_then(server: ServerProcess, then: str, tmp_path: Path, kind: str) -> None:
    url = f"{server.url}/repositories/main/helm-{kind}@{then}"
    command = [client("helm-4", "helm"), "pull", "--repo", url, "demo"]
    run_client(command, environ=client_environment(tmp_path / "home"), folder=tmp_path)
    assert [each.name for each in tmp_path.glob("*.tgz")] == ["demo-1.0.0.tgz"]


@pytest.mark.shows("view", by=("curl",))
@pytest.mark.parametrize("kind", KINDS)
def test_curl_lists_what_was_there_then(server: ServerProcess, then: str, tmp_path: Path, kind: str) -> None:
    url = f"{server.url}/repositories/main/raw-{kind}@{then}"
    listed = run_client(
        [program("curl"), "-fsS", f"{url}/demo/"], environ=client_environment(tmp_path), folder=tmp_path
    )
    assert ('"1.0.0/"' in listed.stdout, '"1.1.0/"' in listed.stdout) == (True, False)
