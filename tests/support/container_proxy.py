"""Servers with a proxy repository of container images, in front of a scripted registry."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path

from attrs import frozen

from tests.support.configurations import proxy
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient, Reply
from tests.support.images import Image, digest_of, make_image
from tests.support.proxied import PRIVATE
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.container import ContainerUpstream

ONE, TWO = make_image("one"), make_image("two")
LAYER = hashlib.shake_256(b"a layer").digest(3 * 1024 * 1024)
TOKEN = "/token"


@frozen
class Scene:
    """A server with a proxy repository ``main/images`` of an upstream."""

    upstream: ContainerUpstream
    server: ServerProcess
    wire: HttpClient

    def get(self, path: str, **fields: str) -> Reply:
        """GET below the address of the proxied images."""
        return self.wire.get(f"/v2/main/images/{path}", **fields)

    def head(self, path: str, **fields: str) -> Reply:
        """HEAD below the address of the proxied images."""
        return self.wire.head(f"/v2/main/images/{path}", **fields)

    def pull(self, name: str, image: Image, reference: str = "1") -> None:
        """Pull an image, and check each byte."""
        assert self.get(f"{name}/manifests/{reference}").body == image.manifest
        for blob in image.blobs:
            assert self.get(f"{name}/blobs/{digest_of(blob)}").body == bytes(blob)

    def manifests(self, method: str, name: str, reference: str) -> int:
        """How often the upstream was asked for a manifest."""
        path = self.upstream.manifest_path(name, reference)
        return sum(each.method == method for each in self.upstream.requests(path))


class Make:
    """Starts an upstream, and a server in front of it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def __call__(self, upstream: ContainerUpstream | None = None, more: str = "", **settings: str) -> Scene:
        upstream = self._stack.enter_context(upstream or ContainerUpstream())
        text = PRIVATE + proxy("docker", "images", upstream.url, **settings) + more
        server = self._stack.enter_context(running(self._folder, text))
        return Scene(upstream, server, HttpClient(server.url, ADMIN))


def code(reply: Reply) -> tuple[int, str]:
    """The status and the first error code of an answer."""
    return reply.status, reply.json["errors"][0]["code"]
