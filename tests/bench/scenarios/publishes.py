"""Small publishes by eight clients at once, in every format: each package is new, and durable when it is answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from attrs import evolve

from tests.bench.arena import GROWTH, P50, P99, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import LoadFailed, Post, Target, get, post_all
from tests.bench.contestants.bare import Bare
from tests.bench.contestants.container import ImageRegistry, PkgrepoImages
from tests.bench.contestants.maven import MavenServer, PkgrepoMaven
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.contestants.pkgrepo import SINGLES, PkgrepoChannel, PkgrepoGems, conda_post, gem_post
from tests.bench.contestants.python import PkgrepoPython, PythonIndex, form_post
from tests.bench.contestants.server import Contestant
from tests.bench.packages.images import OCI_IMAGE, make_image
from tests.bench.packages.modules import Module, put
from tests.bench.packages.singles import CARGO, GO, HELM, RAW, Kind
from tests.bench.packages.tarballs import NodePackage
from tests.bench.packages.wheels import Wheel

from .figures import sending

PUBLISHES = Metric("rate", "publishes/s")
CPU_MS = Metric("cpu_ms", "CPU ms/publish", 2)
ACCEPT = {"Accept": f"{OCI_IMAGE}, */*"}  # distribution answers 404 for a manifest of a type that is not named
CLIENTS = 8
COUNT = 200  # in a round; the clock of processor time ticks every 10 ms

_IMAGE = make_image("bench-published", 1, 1024)

# The upload of a new package of this name, and where it can be read afterwards.
Make = Callable[[Contestant, str], tuple[Post, str]]


def node_package(server: Contestant, name: str) -> tuple[Post, str]:
    """A package of npm."""
    assert isinstance(server, NodeRegistry)
    url = server.package_url(name)
    return evolve(NodePackage(name, "1.0.0").post(server.place("npm")), path=urlsplit(url).path), url


def wheel(server: Contestant, name: str) -> tuple[Post, str]:
    """A wheel."""
    assert isinstance(server, PythonIndex)
    return form_post(Wheel(name, "1.0.0")), server.page_url(name)


def jar(server: Contestant, name: str) -> tuple[Post, str]:
    """A jar, without its POM."""
    assert isinstance(server, MavenServer)
    path, content = next(iter(Module(name).files.items()))
    return put(f"{server.root}{path}", content), f"{server.place('maven')}{path}"


def gem(server: Contestant, name: str) -> tuple[Post, str]:
    """A gem."""
    assert isinstance(server, PkgrepoGems)
    return gem_post(name, pad=8000), f"{server.place('gems')}/info/{name}"


def conda_package(server: Contestant, name: str) -> tuple[Post, str]:
    """A conda package."""
    assert isinstance(server, PkgrepoChannel)
    return conda_post(name), f"{server.folder_url}/{name}-1.0-py_0.conda"


def single(kind: Kind, server: Contestant, name: str) -> tuple[Post, str]:
    """A crate, a Go module, a chart or a plain file."""
    place = server.place(kind.name)
    return kind.post(urlsplit(place).path, name, "1.0.0"), f"{place}{kind.file(name, '1.0.0')}"


def manifest(server: Contestant, name: str) -> tuple[Post, str]:
    """A manifest of an image whose blobs are there."""
    assert isinstance(server, ImageRegistry)
    url = server.client(_IMAGE.name).manifest_url(name)
    body = json.dumps({**json.loads(_IMAGE.manifest), "annotations": {"name": name}}).encode()
    return Post({"Content-Type": OCI_IMAGE}, [body], len(body), "PUT", urlsplit(url).path), url


def target_of(server: Contestant, kind: str) -> Target:
    """Where packages of a kind are published."""
    if kind == "manifest":
        assert isinstance(server, ImageRegistry)
        server.push(_IMAGE, "latest")
        return Target(server.base_url, server.client(_IMAGE.name).headers)
    return server.target(kind)


def check_published(server: Contestant, kind: str, url: str) -> None:
    """Read what was published. :raises LoadFailed: it is not there"""
    reply = get(url, {**ACCEPT, **target_of(server, kind).headers})
    if reply.status != 200:
        raise LoadFailed(f"{url} was published, and reading it answers {reply.status}")


def _publishing(kind: str, make: Make) -> Callable[[Arena, str], Trial]:
    """Prepare rounds of publishes; afterwards the last one must be there."""

    def prepare(arena: Arena, name: str) -> Trial:
        server = arena.get(name)
        post_all(target_of(server, kind), [make(server, f"bench-warm-{kind}")[0]], 1)

        def make_all(number: int) -> Sequence[tuple[Post, str]]:
            return [make(server, f"bench-{kind}-{number}-{each}") for each in range(COUNT)]

        def send(made: Sequence[tuple[Post, str]]) -> Sequence[float]:
            return post_all(target_of(server, kind), [post for post, _ in made], CLIENTS)

        return sending(server, make_all, send, lambda made: check_published(server, kind, made[-1][1]))

    return prepare


def _scenario(kind: str, what: str, make: Make, ours: str, peers: Sequence[str] = ()) -> Scenario:
    against = [Goal(PUBLISHES, "at least", 1.2, "nora")] if "nora" in peers else []
    if Bare.name in peers:
        against.append(Goal(CPU_MS, "at most", 1.5, Bare.name))
    return Scenario(
        name=f"publish-{kind}",
        about=f"publishes of {what}, by {CLIENTS} clients",
        lineup=(ours, f"{ours}-2", *peers),
        metrics=(PUBLISHES, CPU_MS, P50, P99, GROWTH),
        prepare=_publishing(kind, make),
        stock=f"publish-{kind}",
        goals=(*against, Goal(PUBLISHES, "at least", 400), Goal(CPU_MS, "at most", 2.5)),
    )


SCENARIOS: tuple[Scenario, ...] = (
    _scenario(
        "npm", "npm packages of 9 KB", node_package, PkgrepoNpm.name, ("verdaccio", "verdaccio-jwt", "nora", Bare.name)
    ),
    _scenario("python", "wheels of 9 KB", wheel, PkgrepoPython.name, ("pypiserver", "devpi", "nora")),
    _scenario("maven", "jars of 9 KB (nginx does not fsync)", jar, PkgrepoMaven.name, ("nginx-dav", "nora", Bare.name)),
    _scenario("gems", "gems of 9 KB", gem, PkgrepoGems.name),
    _scenario("conda", "small conda packages", conda_package, PkgrepoChannel.name),
    *(
        _scenario(kind.name, f"{what} of 9 KB", partial(single, kind), SINGLES[kind.name].name, peers)
        for kind, what, peers in (
            (CARGO, "crates", ("nora",)),
            (GO, "Go modules", ()),
            (HELM, "charts", ()),
            (RAW, "plain files (nginx does not fsync)", ("nginx-dav", "nora", Bare.name)),
        )
    ),
    _scenario(
        "manifest",
        "manifests of images whose blobs are there",
        manifest,
        PkgrepoImages.name,
        ("distribution", "distribution-3", "zot", "nora"),
    ),
)
