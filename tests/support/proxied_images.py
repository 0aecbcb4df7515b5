"""Servers with a proxy repository of images, in front of a server or of another registry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import frozen

from tests.support.configurations import PRIVATE as HIDDEN
from tests.support.configurations import hosted, proxy
from tests.support.container_clients import ADMIN, host_of, push_image
from tests.support.container_tools import PASSWORD, USER
from tests.support.distribution import distribution
from tests.support.http_client import HttpClient
from tests.support.images import make_artifact, make_image, make_index
from tests.support.proxied import PRIVATE
from tests.support.server_process import ServerProcess, running

IMAGES = {each: make_image(f"proxied {each}", architecture=each) for each in ("amd64", "arm64")}
INDEX = make_index([*IMAGES.values()])
REPORT = make_artifact(INDEX, "application/vnd.example.report.v1")


@frozen
class Scene:
    """The host of a server with the proxy ``main/images``, and what stops its upstream."""

    host: str
    server: ServerProcess
    upstream: ExitStack

    @property
    def image(self) -> str:
        return f"{self.host}/main/images/team/app"


def fill(url: str, prefix: str) -> None:
    """Push an index of two platforms, and a report about it, to an upstream."""
    wire = HttpClient(url, ADMIN)
    for image in IMAGES.values():
        push_image(wire, f"{prefix}team/app", image)
    push_image(wire, f"{prefix}team/app", INDEX, "v1")
    push_image(wire, f"{prefix}team/app", REPORT)
    if not prefix:  # this registry has no referrers API, so that clients keep a list under a tag
        push_image(wire, f"{prefix}team/app", make_index([REPORT]), INDEX.digest.replace(":", "-"))


@contextmanager
def proxied_images(kind: str, folder: Path) -> Iterator[Scene]:
    """
    A proxy of a second server of ours, whose images are private, or of another registry without credentials.

    ``kind`` is "pkgrepo" or "distribution".
    """
    with ExitStack() as upstream, ExitStack() as stack:
        below = folder / "upstream"
        below.mkdir()
        if kind == "pkgrepo":
            url = upstream.enter_context(running(below, hosted("docker", images=HIDDEN))).url
            fill(url, "main/images/")
            auth = f'auth = {{ username = "{USER}", password = "{PASSWORD}" }}'
            route = f'{{ url = "{url}/v2/main/images", {auth} }}'
            text = hosted("docker", images=f'config = {{ type = "Proxy", proxy = {{ routes = [{route}] }} }}')
        else:
            url = upstream.enter_context(distribution(below))
            fill(url, "")
            text = proxy("docker", "images", url)
        server = stack.enter_context(running(folder, PRIVATE + text))
        yield Scene(host_of(server), server, upstream)
