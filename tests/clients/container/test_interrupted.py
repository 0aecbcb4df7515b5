"""Interrupted downloads of layers: docker and containerd resume them with a range request."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.client_programs import program
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, push_image
from tests.support.container_daemons import containerd, dockerd
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image
from tests.support.server_process import ServerProcess
from tests.support.tcp_proxy import TcpProxy

SIZE = 4 * 1024 * 1024
CONFIG = hosted("docker", "images")


@pytest.fixture(scope="module")
def image(server: ServerProcess) -> Image:
    """An image with an incompressible layer, pushed to the server."""
    made = make_image(random.Random(1).randbytes(SIZE).hex())
    push_image(HttpClient(server.url, ADMIN), "main/images/big", made, "v1")
    return made


@pytest.fixture
def proxy(server: ServerProcess, image: Image) -> Iterator[TcpProxy]:
    """A proxy before the server, which closes the connection in the middle of the layer."""
    parts = urlsplit(server.url)
    layer = image.blobs[1]
    made = TcpProxy((parts.hostname or "", parts.port or 0), cut=f"/blobs/{digest_of(layer)}", after=len(layer) // 2)
    with made.running():
        yield made


def assert_resumed(proxy: TcpProxy, image: Image) -> None:
    """Check that the client requested the rest of the layer after the cut."""
    first, *others = proxy.requests(f"/blobs/{digest_of(image.blobs[1])}")
    assert proxy.was_cut
    assert "range" not in first.fields
    assert others
    begin = int(others[0].fields["range"].removeprefix("bytes=").partition("-")[0])
    assert 0 < begin <= len(image.blobs[1]) // 2


def test_docker_resumes_a_layer(proxy: TcpProxy, image: Image, tmp_path: Path) -> None:
    clients = ContainerClients(tmp_path, proxy.host)
    with dockerd() as address:
        docker = (program("docker"), "--host", address)
        clients.call(*docker, "pull", f"{proxy.host}/main/images/big:v1")
        shown = clients.call(
            *docker, "image", "inspect", "--format", "{{.RepoDigests}}", f"{proxy.host}/main/images/big:v1"
        )
    assert image.digest in shown
    assert_resumed(proxy, image)


def test_containerd_resumes_a_layer(proxy: TcpProxy, image: Image, tmp_path: Path) -> None:
    clients = ContainerClients(tmp_path, proxy.host)
    with containerd() as socket:
        ctr = (program("ctr"), "--address", socket)
        clients.call(*ctr, "content", "fetch", "--plain-http", f"{proxy.host}/main/images/big:v1")
        kept = clients.call(*ctr, "content", "list", "-q").split()
    assert digest_of(image.blobs[1]) in kept
    assert_resumed(proxy, image)
