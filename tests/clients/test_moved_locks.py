"""
Lock files that clients wrote at another server install from here without a change, once its packages were taken in.

The other server has ended then; its address leads here: this server is the HTTP proxy of the clients, and the address
stands for a repository.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.client_programs import client, program
from tests.support.configurations import hosted
from tests.support.container_clients import ContainerClients, host_of, ok, push_image
from tests.support.distribution import distribution
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.imports import counts, static, take
from tests.support.npm_clients import NodeBench, Registry
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER, PythonBench, pip_into
from tests.support.python_packages import make_wheel
from tests.support.python_peers import devpi
from tests.support.ruby_clients import DEBIAN, RubyBench
from tests.support.server_process import ServerProcess, running
from tests.support.tcp_proxy import TcpProxy
from tests.support.verdaccio import verdaccio

pytestmark = pytest.mark.clients

REPOSITORIES = {"py": "python", "npm": "npm", "images": "docker", "gems": "ruby"}
LIBRARY = [("leaf-lib", "1.0", ()), ("leaf-lib", "1.1", ()), ("root-lib", "1.0", ("leaf-lib>=1.0",))]
PROJECT = """
[project]
name = "user"
version = "1"
requires-python = ">=3.11"
dependencies = ["root-lib", "leaf-lib==1.0"]
[[tool.poetry.source]]
name = "old"
url = "{index}"
priority = "primary"
[tool.poetry]
package-mode = false
"""
IMAGES = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = 'proxy.allow_private = ["127.0.0.1"]\n' + f'bootstrap.admin.password = "{PASSWORD}"\n'
    lines = dict.fromkeys(REPOSITORIES, 'visibility = "public"')
    settings += "".join(hosted(kind, **{name: lines[name]}) for name, kind in REPOSITORIES.items())
    with running(tmp_path_factory.mktemp("server"), settings) as started:
        yield started


@pytest.fixture
def wire(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


def through(server: ServerProcess) -> dict[str, str]:
    """The variables by which clients reach every address here."""
    return {
        "HTTP_PROXY": server.url,
        "http_proxy": server.url,
        "NO_PROXY": "",
        "no_proxy": "",
        "NPM_CONFIG_NOPROXY": "",
    }


def test_locks_of_devpi(server: ServerProcess, wire: HttpClient, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    for project, version, requires in LIBRARY:
        name, data = make_wheel(project, version, fields=[("Requires-Dist", each) for each in requires])
        (tmp_path / "wheels" / name).write_bytes(data)
    bench = PythonBench(tmp_path / "bench")
    place = tmp_path / "project"
    place.mkdir()
    uv, poetry = client("uv"), client("poetry")
    (tmp_path / "peer").mkdir()
    with devpi(tmp_path / "peer", tmp_path / "wheels") as index:
        (place / "pyproject.toml").write_text(PROJECT.format(index=f"{index}/"))
        bench.run(uv, "lock", "--default-index", f"{index}/", cwd=place)
        bench.run(poetry, "lock", cwd=place)
        hashes = ("--generate-hashes", "--emit-index-url", "--default-index", f"{index}/", "-o", "requirements.txt")
        bench.run(uv, "pip", "compile", "pyproject.toml", *hashes, cwd=place)
        assert counts(take(wire, "devpi", index, "main/py")) == (3, 0, 0)
    assert "/+f/" in (place / "uv.lock").read_text()
    assert "--hash" in (place / "requirements.txt").read_text()
    path = urlsplit(index).path.removesuffix("+simple")
    ok(wire.post_json("/api/system/hosts", {"aliases": {path: "main/py"}}, "PATCH"))
    locks = {each: (place / each).read_text() for each in ("uv.lock", "poetry.lock", "requirements.txt")}
    bench = PythonBench(tmp_path / "after")  # with empty caches
    bench.environ |= through(server)
    bench.run(uv, "sync", "--frozen", cwd=place)
    shown = "import leaf_lib, root_lib; print(root_lib.__version__, leaf_lib.__version__)"
    assert bench.run(place / ".venv/bin/python", "-c", shown).split() == ["1.0", "1.0"]
    shutil.rmtree(place / ".venv")
    bench.run(poetry, "sync", cwd=place, POETRY_VIRTUALENVS_IN_PROJECT="true")
    assert bench.run(place / ".venv/bin/python", "-c", shown).split() == ["1.0", "1.0"]
    python = bench.venv()
    bench.run(*pip_into(python), "install", "--require-hashes", "-r", place / "requirements.txt")
    assert bench.run(python, "-c", shown).split() == ["1.0", "1.0"]
    assert locks == {each: (place / each).read_text() for each in locks}


def test_a_lock_of_verdaccio(server: ServerProcess, wire: HttpClient, tmp_path: Path) -> None:
    (tmp_path / "verdaccio").mkdir()
    with verdaccio(tmp_path / "verdaccio") as url:
        old = HttpClient(url)
        for name in ("@team/util", "left"):
            body = make_publish(name, "1.0.0", registry=url)
            reply = old.ask("PUT", f"/{name.replace('/', '%2f')}", body, {"Content-Type": "application/json"})
            assert reply.status in (200, 201), reply.text
        registry = Registry(server.url, "main/npm")
        registry.url = f"{url}/"
        bench = NodeBench(tmp_path / "before", registry, None)
        project = bench.project("app")
        bench.install("npm-11", project, "left", "@team/util")
        assert counts(take(wire, "verdaccio", url, "main/npm")) == (2, 0, 0)
    lock = (project / "package-lock.json").read_text()
    assert f'"resolved": "{url}/left/-/left-1.0.0.tgz"' in lock
    ok(wire.post_json("/api/system/hosts", {"hosts": {urlsplit(url).netloc: "main/npm"}}, "PATCH"))
    shutil.rmtree(project / "node_modules")
    bench = NodeBench(tmp_path / "after", registry, None)
    bench.environ |= through(server)
    bench.run("npm-11", "ci", cwd=project)
    assert (project / "node_modules" / "@team" / "util" / "package.json").exists()
    assert (project / "package-lock.json").read_text() == lock


def test_a_lock_of_a_gem_server(server: ServerProcess, wire: HttpClient, tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    bench = RubyBench(tmp_path / "bench", DEBIAN, "", None)
    gems = tmp_path / "old" / "gems"
    gems.mkdir(parents=True)
    for name, version, lines in (("leaf", "1.0", ()), ("root", "1.0", ('s.add_dependency "leaf"',))):
        shutil.copy(bench.build(name, version, lines=lines), gems)
    bench.gem("generate_index", "-d", tmp_path / "old")
    with static(tmp_path / "old") as url:
        address = TcpProxy(target_of(url))
        with address.running():
            bench.url = f"http://{address.host}"
            bench.write_gemfile("root")
            bench.bundle("lock")
            lock = bench.locked()
            assert f"remote: {bench.url}/" in lock
            assert counts(take(wire, "ruby", url, "main/gems")) == (2, 0, 0)
            ok(wire.post_json("/api/system/hosts", {"hosts": {address.host: "main/gems"}}, "PATCH"))
            address.lead_to(target_of(server.url))
            bench.bundle("config", "set", "--local", "frozen", "true")
            bench.bundle("install")
            assert "leaf (1.0)" in bench.bundle("list").replace("* ", "")
            assert bench.locked() == lock
            assert address.requests("/gems/root-1.0.gem")


def target_of(url: str) -> tuple[str, int]:
    """The host and the port of an address."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def test_fifty_images_by_their_digests(server: ServerProcess, wire: HttpClient, tmp_path: Path) -> None:
    program("docker-registry")
    images = {f"team/app{n:02}": make_image(f"app {n}") for n in range(IMAGES)}
    with distribution(tmp_path) as url:
        old = HttpClient(url)
        for name, image in images.items():
            push_image(old, name, image, "v1")
        first = take(wire, "container", url, "main/images")
        assert (first["files"], first["left_out_count"]) == (IMAGES, 0)
        assert counts(take(wire, "container", url, "main/images")) == (0, 0, 0)
    # a name that leads here, beside the address of the server itself
    host = host_of(server).replace("127.0.0.1", "localhost")
    ok(wire.post_json("/api/system/hosts", {"hosts": {host: "main/images"}}, "PATCH"))
    crane = ContainerClients(tmp_path, host)
    lines = [f"{host}/{name}@{image.digest}" for name, image in images.items()]
    for line in lines[:3]:
        assert "PASS" in crane.run("crane", "validate", "--remote", line).upper()
    crane.run("crane", "pull", "--format=oci", *lines, tmp_path / "pulled")
    index = json.loads((tmp_path / "pulled" / "index.json").read_text())
    assert {each["digest"] for each in index["manifests"]} == {image.digest for image in images.values()}
