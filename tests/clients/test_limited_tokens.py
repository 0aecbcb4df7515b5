"""A token that is for some packages reads all that is public, as clients send it for every package of a registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ContainerClients, host_of, push_image
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.clients
ADMIN = (USER, PASSWORD)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    lines = f'bootstrap.admin.password = "{PASSWORD}"\n'
    lines += "".join(hosted(each, f"{each}-own") for each in ("npm", "python", "docker"))
    with running(tmp_path_factory.mktemp("limited"), lines) as started:
        yield started


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    """A token for the package ``mine`` of each repository."""
    reach = [{"repository": "main/*", "actions": ["read", "write"], "packages": ["mine"]}]
    made = HttpClient(f"{server.url}/api", ADMIN).post_json("/user/token", {"name": "ci", "repositories": reach})
    assert made.status == 201, made.text
    return str(made.json["token"])


@pytest.mark.parametrize("client", ["npm-9", "npm-11", "pnpm"])
def test_npm_ci_installs_other_packages(server: ServerProcess, token: str, tmp_path: Path, client: str) -> None:
    registry = Registry(server.url, "main/npm-own")
    publisher = NodeBench(tmp_path / "admin", registry, registry.token())
    name = f"other-{client}"
    publisher.publish("npm-11", publisher.package(name))
    bench = NodeBench(tmp_path / "ci", registry, token)
    project = bench.project("app")
    bench.install(client, project, name)
    if client != "pnpm":
        bench.run(client, "ci", cwd=project)
    assert bench.required(project, name) == f"{name}@1.0.0"
    assert "403" in bench.publish("npm-11", bench.package(f"theirs-{client}"), status=1)


def test_pip_downloads_other_packages(server: ServerProcess, token: str, tmp_path: Path) -> None:
    index, bench = PythonIndex(server.url, "main/python-own"), PythonBench(tmp_path)
    index.publish("other", "1.0")
    url = index.with_credentials("ci", token)
    bench.pip(bench.venv(), "install", "--no-deps", "--index-url", url, "other==1.0")


def test_crane_pulls_other_images(server: ServerProcess, token: str, tmp_path: Path) -> None:
    push_image(HttpClient(server.url, ADMIN), "main/docker-own/other", make_image("one"), "1.0")
    clients, host = ContainerClients(tmp_path, host_of(server)), host_of(server)
    clients.log_in("ci", token)
    clients.run("crane", "pull", "--insecure", f"{host}/main/docker-own/other:1.0", tmp_path / "image.tar")
    copied = ("crane", "copy", "--insecure", f"{host}/main/docker-own/other:1.0")
    clients.run(*copied, f"{host}/main/docker-own/mine:1.0")
    assert "DENIED" in clients.run(*copied, f"{host}/main/docker-own/theirs:1.0", status=1)
