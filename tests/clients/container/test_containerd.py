"""containerd through ctr: push, fetch and pull, also with the server as a mirror of another host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import program
from tests.support.configurations import PRIVATE, hosted
from tests.support.container_clients import ADMIN, BOB, ContainerClients, add_bob, host_of, push_image
from tests.support.container_daemons import containerd
from tests.support.http_client import HttpClient
from tests.support.images import make_image, make_index
from tests.support.server_process import ServerProcess
from tests.support.tcp_proxy import TcpProxy

CONFIG = hosted("docker", "images", private=PRIVATE)
MIRROR = """
server = "https://images.example"

[host."http://{host}/v2/main/images"]
capabilities = ["pull", "resolve"]
override_path = true
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Path]:
    with containerd() as socket:
        yield socket


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> ServerProcess:
    """The server with the user bob, who may write."""
    add_bob(HttpClient(server.url, ADMIN), "main/images")
    return server


class Ctr(ContainerClients):
    """ctr at one containerd."""

    def __init__(self, folder: Path, host: str, socket: Path) -> None:
        super().__init__(folder, host)
        self.socket = socket

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.call(program("ctr"), "--address", self.socket, *arguments, status=status)

    def images(self) -> dict[str, str]:
        """Return the names and digests of containerd's images."""
        rows = [line.split() for line in self("image", "list").splitlines()[1:]]
        return {row[0]: row[2] for row in rows}

    def content(self) -> set[str]:
        """Return the digests of containerd's content."""
        return set(self("content", "list", "-q").split())


@pytest.fixture
def ctr(tmp_path: Path, server: ServerProcess, daemon: Path) -> Ctr:
    return Ctr(tmp_path, host_of(server), daemon)


def fetch(ctr: Ctr, image: str, *options: str | Path, status: int | None = 0) -> str:
    return ctr("content", "fetch", "--plain-http", *options, f"{ctr.host}/{image}", status=status)


@pytest.mark.shows("publish", "install", by=("containerd",))
def test_ctr_fetches_an_image_and_pushes_it_under_another_name(
    ctr: Ctr, wire: HttpClient, server: ServerProcess
) -> None:
    image = make_image("moved by ctr")
    push_image(wire, "main/images/seed", image, "v1")
    fetch(ctr, "main/images/seed:v1", "--platform=linux/amd64")
    assert ctr.images()[f"{ctr.host}/main/images/seed:v1"] == image.digest
    target = f"{ctr.host}/main/images/pushed:v1"
    push = ("image", "push", "--plain-http", "-u", ":".join(BOB), target, f"{ctr.host}/main/images/seed:v1")
    ctr(*push)
    assert wire.as_user().get("/v2/main/images/pushed/manifests/v1").body == image.manifest
    ctr(*push)
    assert len(server.lines("HEAD /v2/main/images/pushed/manifests/v1", 2)) >= 2
    assert server.output.count("PUT /v2/main/images/pushed/manifests/") == 1, "the second push finds it there"


@pytest.mark.shows("refusal", by=("containerd",))
def test_ctr_prints_why_a_push_is_refused(ctr: Ctr, wire: HttpClient) -> None:
    for content, tag in (("first", "v1"), ("second", "v2")):
        push_image(wire, "main/images/refused", make_image(content), tag)
        fetch(ctr, f"main/images/refused:{tag}")
    name = f"{ctr.host}/main/images/refused"
    push = ("image", "push", "--plain-http")
    shown = ctr(*push, "-u", ":".join(BOB), f"{name}:v1", f"{name}:v2", status=1)
    assert "403 Forbidden" in shown
    other = f"{ctr.host}/main/images/other:v1"
    assert "401 Unauthorized" in ctr(*push, "-u", f"{BOB[0]}:wrong", other, f"{name}:v1", status=1)
    ctr(*push, other, f"{name}:v1", status=1)
    assert wire.head("/v2/main/images/other/manifests/v1").status == 404


@pytest.mark.shows("private", by=("containerd",))
def test_ctr_fetches_private_images_with_credentials(ctr: Ctr, wire: HttpClient) -> None:
    image = make_image("private to ctr")
    push_image(wire, "main/private/app", image, "v1")
    fetch(ctr, "main/private/app:v1", status=1)
    fetch(ctr, "main/private/app:v1", "-u", ":".join(BOB), status=1)
    fetch(ctr, "main/private/app:v1", "-u", ":".join(ADMIN))
    fetch(ctr, f"main/private/app@{image.digest}", "-u", ":".join(ADMIN))


def test_ctr_fetches_one_or_all_platforms_of_an_index(ctr: Ctr, wire: HttpClient) -> None:
    images = {each: make_image(f"{each} by ctr", architecture=each) for each in ("amd64", "arm64")}
    index = make_index(list(images.values()))
    for image in images.values():
        push_image(wire, "main/images/platforms", image)
    push_image(wire, "main/images/platforms", index, "v1")
    fetch(ctr, "main/images/platforms:v1", "--platform=linux/arm64")
    assert images["arm64"].digest in ctr.content()
    assert images["amd64"].digest not in ctr.content()
    fetch(ctr, "main/images/platforms:v1", "--all-platforms")
    assert {index.digest, *(image.digest for image in images.values())} <= ctr.content()
    target = f"{ctr.host}/main/images/platforms/copy:v1"
    ctr("image", "push", "--plain-http", "-u", ":".join(BOB), target, f"{ctr.host}/main/images/platforms:v1")
    assert wire.get("/v2/main/images/platforms/copy/manifests/v1").body == index.manifest


def test_a_repository_mirrors_another_host(ctr: Ctr, wire: HttpClient) -> None:
    image = make_image("mirrored")
    push_image(wire, "main/images/team/app", image, "v1")
    folder = ctr.folder / "hosts" / "images.example"
    folder.mkdir(parents=True)
    with TcpProxy((wire.parts.hostname or "", wire.parts.port or 0)).running() as proxy:
        (folder / "hosts.toml").write_text(MIRROR.format(host=proxy.host))
        ctr("content", "fetch", "--hosts-dir", folder.parent, "images.example/team/app:v1")
    assert ctr.images()["images.example/team/app:v1"] == image.digest
    asked = proxy.requests("/v2/main/images/team/app/")
    assert len(asked) >= 4
    assert all("?ns=images.example " in head.line for head in asked)
