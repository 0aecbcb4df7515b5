"""Maven repositories: deploys and resolves as Maven makes them, beside nginx with WebDAV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from tests.bench.arena import CPU, GROWTH, P50, P99, RATE, Arena, Goal, Metric, Scenario, Trial, measuring
from tests.bench.clients.load import MAVEN, LoadFailed, Post, get, post_all, put_file, write_turns
from tests.bench.contestants.maven import MavenServer, NginxDav, PkgrepoMaven, PkgrepoPrivateMaven
from tests.bench.measure import Watch
from tests.bench.packages.modules import LARGE, Module

from .figures import QUIET_P99, READ, SPEED, WRITTEN, asking, disturbed, figures, probed, sending

OURS, FLOOR, REFUSING = PkgrepoMaven.name, NginxDav.name, PkgrepoPrivateMaven.name
PEERS = (OURS, FLOOR, "nora")
FILES = Metric("rate", "requests/s")
CPU_MS = Metric("cpu_ms", "CPU ms/request", 2)
PUT_P50 = Metric("put_p50_ms", "p50 ms", 2)
LOST = Metric("lost", "versions lost", compared=False)
BESIDE_P99 = Metric("beside_p99_ms", "p99 ms beside deploys", 2)
ARTIFACTS = 250  # each with a jar and a POM: 500 files
MODULES = 50
DEPLOYERS = 5  # connections of Maven 3.9
TOGETHER = 32  # deploys of one artifact at once
PROBES_PER_S = 100.0
RESOLVED = [Module(f"resolved-{number}") for number in range(ARTIFACTS)]


def _stocked(arena: Arena, name: str, modules: Sequence[Module]) -> MavenServer:
    server = arena.get(name, MavenServer)
    arena.once((name, modules[0].stem), lambda: server.deploy(modules))
    return server


def _asking_files(arena: Arena, name: str) -> Trial:
    server = _stocked(arena, name, RESOLVED)
    urls = [f"{server.place('maven')}{module.stem}{suffix}" for module in RESOLVED for suffix in (".pom", ".jar")]
    turns = write_turns(arena.scratch / f"{name}.turns", urls, (MAVEN["User-Agent"],))
    return asking(arena, name, urls[0], MAVEN, turns, refused=name == REFUSING)


@measuring("maven-resolve", PEERS, READ, "maven-resolve", Goal(CPU, "at most", 2, FLOOR))
def resolve(arena: Arena, name: str) -> Trial:
    """500 files of 250 artifacts in turn: jars of 9 KB and POMs."""
    return _asking_files(arena, name)


@measuring("maven-refused", (REFUSING, OURS), READ, "maven-resolve", Goal(RATE, "at least", 0.6, OURS))
def refused(arena: Arena, name: str) -> Trial:
    """The same files of a private repository without credentials (401), beside those of a public one."""
    return _asking_files(arena, name)


@measuring("maven-metadata", PEERS, READ, "maven-resolve")
def metadata(arena: Arena, name: str) -> Trial:
    """maven-metadata.xml of one artifact."""
    server = _stocked(arena, name, RESOLVED)
    return asking(arena, name, f"{server.place('maven')}{RESOLVED[0].directory}/maven-metadata.xml", MAVEN)


@measuring(
    "maven-beside", PEERS, (BESIDE_P99, P50, QUIET_P99, GROWTH), "maven-resolve", Goal(BESIDE_P99, "at most", 100)
)
def beside(arena: Arena, name: str) -> Trial:
    """The same a hundred times a second, while 8 clients deploy 50 versions of it and of three others."""
    server = _stocked(arena, name, RESOLVED)
    url = f"{server.place('maven')}{RESOLVED[0].directory}/maven-metadata.xml"
    numbers = count(1)
    assert get(url, MAVEN).status == 200

    def trial(_: int) -> Mapping[str, float]:
        modules = [Module(RESOLVED[each % 4].artifact, f"1.{next(numbers)}") for each in range(MODULES)]
        probe = partial(probed, url, MAVEN, PROBES_PER_S)
        found = disturbed(server, probe, arena.seconds, lambda: server.deploy(modules, 8))
        return {**found, P50.key: found["beside_p50_ms"]}

    return trial


@measuring("maven-deploy", PEERS, (FILES, CPU_MS, P50, P99, GROWTH), "maven-deploy")
def deploy(arena: Arena, name: str) -> Trial:
    """Deploy of 50 modules of 6 files on 5 connections, each file with SHA-1 and MD5 (nginx does not fsync)."""
    server = _stocked(arena, name, [Module("warm")])

    def make(number: int) -> Sequence[Module]:
        modules = [Module(f"deployed-{number}-{each}") for each in range(MODULES)]
        assert all(module.files for module in modules)  # made here, since a round's clock would run
        return modules

    return sending(server, make, lambda modules: server.deploy(modules, DEPLOYERS))


@measuring("maven-put", PEERS, (FILES, CPU_MS, P50, P99, GROWTH), "maven-deploy", Goal(P50, "at most", 6))
def put(arena: Arena, name: str) -> Trial:
    """300 files of up to 9 KB by PUT, one after the other (nginx does not fsync)."""
    server = _stocked(arena, name, [Module("warm")])

    def make(number: int) -> Sequence[Post]:
        return [post for each in range(MODULES) for post in Module(f"put-{number}-{each}").put(server.root)]

    return sending(server, make, lambda posts: post_all(server.target("maven"), posts, 1))


@measuring("maven-together", PEERS, (LOST, FILES, CPU_MS, P50, P99), "maven-deploy", Goal(LOST, "at most", 0))
def together(arena: Arena, name: str) -> Trial:
    """32 deploys of versions of one artifact at once, all in its metadata (--rounds 100)."""
    server = _stocked(arena, name, [Module("warm")])

    def trial(number: int) -> Mapping[str, float]:
        modules = [Module(f"together-{number}", f"1.{each}") for each in range(TOGETHER)]
        assert all(module.files for module in modules)
        with Watch(server.tree) as watch, ThreadPoolExecutor(TOGETHER) as pool:
            took = list(pool.map(lambda module: server.deploy([module], 1), modules))
        listed = get(f"{server.place('maven')}{modules[0].directory}/maven-metadata.xml", MAVEN).body.decode()
        lost = sum(f"<version>{module.version}</version>" not in listed for module in modules)
        if lost and name == OURS:
            raise LoadFailed(f"round {number + 1} lost {lost} versions")  # a median over the rounds would not show it
        return {**figures(watch, [each for times in took for each in times]), LOST.key: lost}

    return trial


@measuring("maven-put-1g", PEERS, (SPEED, CPU_MS, GROWTH, WRITTEN), "none", Goal(GROWTH, "at most", 48))
def large(arena: Arena, name: str) -> Trial:
    """A jar of 1 GiB by PUT, into a server that has just started."""
    path = arena.cache / "maven-large"
    if not path.exists():
        _write_large(path)

    def trial(_: int) -> Mapping[str, float]:
        with arena.fresh(name, MavenServer) as server:
            server.deploy([Module("warm")])
            with Watch(server.tree) as watch:
                put_file(f"{server.place('maven')}{Module('large').stem}.jar", path, server.target("maven"))
        return figures(watch, size=LARGE)

    return trial


def _write_large(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    block = Module("large").files[Module("large").stem + ".jar"] * 128
    with path.open("wb") as file:
        while file.tell() < LARGE:
            file.write(block[: LARGE - file.tell()])


SCENARIOS: tuple[Scenario, ...] = (resolve, refused, metadata, beside, deploy, put, together, large)
