"""
Two workers beside one: the same small documents, warm.

The load generator takes a share of the processors; with as many workers as processors the ratio of requests a second is
what is left to them, and the CPU per request says what a second worker costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.bench.arena import RATE, Arena, Goal, Scenario, Trial
from tests.bench.clients.load import BUNDLER, DOCKER, MAVEN, NPM, PIP, post_all
from tests.bench.contestants.container import ImageRegistry, PkgrepoImages
from tests.bench.contestants.maven import PkgrepoMaven
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.contestants.pkgrepo import PkgrepoChannel, PkgrepoGems
from tests.bench.contestants.python import PkgrepoPython, PythonIndex
from tests.bench.packages.images import make_image
from tests.bench.packages.wheels import wheels

from .figures import READ, asking
from .publishes import Make, conda_package, gem, jar, target_of

_IMAGE = make_image("bench-workers", 1, 1024)


def packument(arena: Arena, name: str) -> Trial:
    """Prepare reads of a packument of 5 versions."""
    server = arena.get(name, NodeRegistry)
    server.fill("bench-workers", 5)
    return asking(arena, name, server.package_url("bench-workers"), NPM)


def _python(arena: Arena, name: str) -> Trial:
    server = arena.get(name, PythonIndex)
    server.publish(wheels("bench-workers", 20))
    return asking(arena, name, server.page_url("bench-workers"), PIP)


def _image(arena: Arena, name: str) -> Trial:
    server = arena.get(name, ImageRegistry)
    server.push(_IMAGE, "v1")
    client = server.client(_IMAGE.name)
    return asking(arena, name, client.manifest_url("v1"), {**DOCKER, **client.headers})


def _published(kind: str, make: Make, headers: Mapping[str, str]) -> Callable[[Arena, str], Trial]:
    """Prepare reads of a package that is published as in L{publishes}."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name)
        post, url = make(server, "bench-workers")
        post_all(target_of(server, kind), [post], 1)
        return asking(arena, name, url, headers)

    return prepare


def _scenario(kind: str, what: str, prepare: Callable[[Arena, str], Trial], ours: str) -> Scenario:
    return Scenario(
        name=f"workers-{kind}",
        about=f"{what}, by two workers and by one",
        lineup=(f"{ours}-2", ours),
        metrics=READ,
        prepare=prepare,
        stock=f"workers-{kind}",
        goals=(Goal(RATE, "at least", 1.8, ours),),
    )


SCENARIOS: tuple[Scenario, ...] = (
    _scenario("npm", "packument of 5 versions", packument, PkgrepoNpm.name),
    _scenario("python", "simple page of 20 files", _python, PkgrepoPython.name),
    _scenario("image", "manifest by tag", _image, PkgrepoImages.name),
    _scenario("maven", "jar of 9 KB", _published("maven", jar, MAVEN), PkgrepoMaven.name),
    _scenario("gems", "/info of a gem", _published("gems", gem, BUNDLER), PkgrepoGems.name),
    _scenario("conda", "small conda package", _published("conda", conda_package, {}), PkgrepoChannel.name),
)
