"""Clients of a server without a network build from what a bundle has carried there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import client, client_environment, make_venv, pip_into, run_client
from tests.support.container_tools import Tools
from tests.support.first_publishes import NAME
from tests.support.maven_clients import MavenBench
from tests.support.mirrored_sites import FORMATS, TOOL, Sites, mirrored_sites
from tests.support.npm_clients import NodeBench, Registry
from tests.support.ruby_clients import DEBIAN, RubyBench
from tests.support.single_clients import BUILDS

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """The servers after a bundle of what lock files name was carried from the second to the third."""
    with mirrored_sites(tmp_path_factory.mktemp("sites")) as found:
        bundle = found.folder / "bundles" / "all.tar"
        locks = []
        for name in FORMATS:
            file, text = found.lock(name)
            (found.folder / name).mkdir()
            (found.folder / name / file).write_text(text)
            locks += ["--lock", f"main/{name}={found.folder / name / file}"]
        found.pkgrepo(found.site.url, "bundle", "write", str(bundle), *(f"main/{name}" for name in FORMATS), *locks)
        found.upstream.stop()
        for name in FORMATS:
            assert found.take(bundle, name)["left_out"] == []
        yield found


@pytest.fixture(params=["bundle", "proxy"])
def url(request: pytest.FixtureRequest, sites: Sites) -> str:
    """The repositories that took the bundle, and the proxies whose upstream is off."""
    server = sites.far if request.param == "bundle" else sites.site
    return f"{server.url}/repositories/main"


@pytest.mark.shows("mirror")
@pytest.mark.parametrize("name", ["pip", "uv"])
def test_requirements_with_hashes(sites: Sites, url: str, tmp_path: Path, name: str) -> None:
    environ = client_environment(tmp_path / "home")
    python = make_venv(tmp_path / "venv", environ=environ)
    (tmp_path / "requirements.txt").write_text(sites.lock("py")[1])
    install = [*pip_into(python), "install"] if name == "pip" else [client("uv"), "pip", "install", "--python", python]
    index = ["--require-hashes", "--index-url", f"{url}/py/simple/", "-r", "requirements.txt"]
    run_client([*install, *index], environ=environ, folder=tmp_path)


@pytest.mark.shows("mirror", by=("npm-11",))
def test_npm_ci(sites: Sites, url: str, tmp_path: Path) -> None:
    registry = Registry(url, "")
    registry.url = f"{url}/node/"
    bench = NodeBench(tmp_path / "bench", registry, None)
    place = bench.project("app")
    bench.install("npm-11", place, NAME)
    lock = json.loads((place / "package-lock.json").read_text())["packages"][f"node_modules/{NAME}"]
    mirrored = json.loads(sites.lock("node")[1])["packages"][f"node_modules/{NAME}"]
    assert lock["integrity"] == mirrored["integrity"]


@pytest.mark.shows("mirror", by=("maven-3.9",))
def test_maven(url: str, tmp_path: Path) -> None:
    bench = MavenBench(tmp_path / "bench", f"{url}/java", None)
    bench.fetch("maven-3.9", f"com.example:{NAME}:1.0:pom")
    assert b"com.example" in bench.fetched("com.example", NAME, "1.0", f"{NAME}-1.0.pom")


@pytest.mark.shows("mirror", by=("debian",))
def test_bundle(url: str, tmp_path: Path) -> None:
    bench = RubyBench(tmp_path, DEBIAN, f"{url}/gems", None)
    bench.write_gemfile(NAME)
    bench.bundle("lock")
    assert f"{NAME} (1.0.0)" in bench.locked()
    bench.bundle("install")


@pytest.mark.shows("mirror", by=("rattler",))
def test_conda(url: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("conda") / "rattler_client.py"
    arguments = {
        "channel": f"{url}/channel",
        "specs": [TOOL],
        "prefix": str(tmp_path / "env"),
        "cache": str(tmp_path / "cache"),
    }
    command = [client("rattler", "python"), script, json.dumps(arguments)]
    run_client(command, environ=client_environment(tmp_path / "home"), folder=tmp_path)
    assert (tmp_path / "env" / "share" / "tool.txt").read_bytes() == b"x"


@pytest.mark.parametrize("name", BUILDS)
def test_crates_modules_charts_and_files(url: str, tmp_path: Path, name: str) -> None:
    BUILDS[name](f"{url}/{name}", tmp_path)


@pytest.mark.shows("mirror", by=("skopeo",))
def test_images(url: str, tmp_path: Path) -> None:
    tools = Tools(tmp_path, tmp_path / "runroot")
    host = url.partition("//")[2].partition("/")[0]
    tools.skopeo("copy", "--src-tls-verify=false", f"docker://{host}/main/images/{NAME}:v1", f"dir:{tmp_path}/copied")
