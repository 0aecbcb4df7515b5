"""Maven, Gradle and coursier resolve through a proxy: cold, warm, and while its upstream is down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.clients.maven.test_gradle import Gradle
from tests.clients.maven.test_ivy_and_sbt import coursier
from tests.support.configurations import hosted, proxy, virtual
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository, printed
from tests.support.server_process import ServerProcess, running
from tests.support.tcp_proxy import TcpProxy

ALLOWED = 'proxy.allow_private = ["127.0.0.1"]\n'
GROUP = "com.example.proxied"


class Scene:
    """A server with a proxy of two repositories of another server, which it reaches through ``lines``."""

    def __init__(self, server: ServerProcess, lines: list[TcpProxy], make_folder: Callable[[], Path]) -> None:
        self.repository = MavenRepository(server.url, "main/mirror")
        self.lines = lines
        self._make_folder = make_folder

    def bench(self) -> MavenBench:
        """A bench with an empty local repository."""
        return MavenBench(self._make_folder(), self.repository.url, auth=None)

    def asked(self, text: str) -> int:
        """The number of requests of the upstreams with this text in their first line."""
        return sum(len(line.requests(text)) for line in self.lines)

    def stop(self) -> None:
        """Make the upstreams unreachable."""
        for line in self.lines:
            line.stop()


Mirror = Callable[..., AbstractContextManager[Scene]]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with two hosted repositories, each with an artifact of its own and versions of a common one."""
    with running(tmp_path_factory.mktemp("origin"), hosted("maven", "first", "second")) as process:
        for name, version in (("first", "1.9"), ("second", "1.10")):
            bench = MavenBench(tmp_path_factory.mktemp("bench"), f"{process.url}/repositories/main/{name}")
            for artifact in (name, "common"):
                bench.deploy_file("maven-3.9", f"{GROUP}:{artifact}:{version}", bench.jar(f"{artifact} {version}"))
            bench.deploy_file("maven-3.9", f"{GROUP}:late:{version}", bench.jar("late"))
        yield process


@pytest.fixture
def mirror(tmp_path_factory: pytest.TempPathFactory, origin: ServerProcess) -> Mirror:
    """Return a function that runs a server with a proxy of both; metadata is asked for each time unless cached."""

    @contextmanager
    def run(cache_ttl: str = "0") -> Iterator[Scene]:
        parts = MavenRepository(origin.url, "main/first").wire.parts
        address = (parts.hostname or "", parts.port or 0)
        with TcpProxy(address).running() as first, TcpProxy(address).running() as second:
            urls = [
                f"http://{line.host}/repositories/main/{name}" for line, name in ((first, "first"), (second, "second"))
            ]
            section = proxy("maven", "mirror", *urls, cache_ttl=cache_ttl)
            with running(tmp_path_factory.mktemp("mirror"), ALLOWED + section) as server:
                yield Scene(server, [first, second], lambda: tmp_path_factory.mktemp("bench"))

    return run


def fetched(bench: MavenBench, maven: str, artifact: str, version: str, wanted: str = "") -> bytes:
    """Fetch an artifact, and return the bytes of its jar."""
    bench.fetch(maven, f"{GROUP}:{artifact}:{wanted or version}")
    return bench.fetched(GROUP, artifact, version, f"{artifact}-{version}.jar")


@pytest.mark.shows("proxy")
@pytest.mark.parametrize("maven", MAVENS)
def test_resolve_cold_warm_and_without_the_upstreams(mirror: Mirror, maven: str) -> None:
    with mirror() as scene:
        for state in ("cold", "warm"):
            bench = scene.bench()
            assert fetched(bench, maven, "first", "1.9") == bench.jar("first 1.9").read_bytes()
            assert fetched(bench, maven, "second", "1.10") == bench.jar("second 1.10").read_bytes()
            assert fetched(bench, maven, "common", "1.10", "RELEASE") == bench.jar("common 1.10").read_bytes()
            if state == "cold":
                asked = scene.asked(".jar ")
        assert scene.asked(".jar ") == asked
        scene.stop()
        bench = scene.bench()
        assert fetched(bench, maven, "second", "1.10") == bench.jar("second 1.10").read_bytes()
        jars = bench.dependencies(maven, f"{GROUP}:common:[1.10,2.0)")
        assert jars == {"common-1.10.jar": bench.jar("common 1.10").read_bytes()}


@pytest.mark.parametrize("maven", MAVENS)
def test_unreachable_upstream_is_no_missing_artifact(mirror: Mirror, maven: str) -> None:
    with mirror() as scene:
        scene.stop()
        shown = printed(scene.bench().fetch(maven, f"{GROUP}:late:1.9", status=1))
        assert "Could not transfer artifact" in shown
        assert any(status in shown for status in ("502", "503", "504"))
        assert "Could not find artifact" not in shown


@pytest.mark.parametrize("maven", MAVENS)
def test_artifact_that_nobody_has_is_missing(mirror: Mirror, maven: str) -> None:
    with mirror() as scene:
        shown = printed(scene.bench().fetch(maven, f"{GROUP}:nonesuch:1.0", status=1))
        # Maven 4 may ask for its POM first, and then tells that this was not there.
        assert "Could not find artifact" in shown or "was not found in" in shown, shown


def test_other_clients_resolve_what_maven_has_fetched(mirror: Mirror) -> None:
    with mirror() as scene:
        bench = scene.bench()
        fetched(bench, "maven-3.9", "first", "1.9")
        jar = bench.jar("first 1.9").read_bytes()
        assert Gradle(scene.bench()).fetch(f"{GROUP}:first:1.9") == [jar]
        assert coursier(scene.bench(), f"{GROUP}:first:1.9") == [jar]
        scene.stop()
        assert Gradle(scene.bench()).fetch(f"{GROUP}:first:1.9") == [jar]
        assert coursier(scene.bench(), f"{GROUP}:first:1.9") == [jar]


def test_second_build_of_a_snapshot_comes_through(mirror: Mirror, origin: ServerProcess, tmp_path: Path) -> None:
    publisher = MavenBench(tmp_path / "publisher", f"{origin.url}/repositories/main/second")
    with mirror() as scene:
        for text in ("first", "second"):
            publisher.deploy_file("maven-3.9", f"{GROUP}:changing:1-SNAPSHOT", publisher.jar(text))
            for maven in MAVENS:
                bench = scene.bench()
                bench.fetch(maven, f"{GROUP}:changing:1-SNAPSHOT")
                got = bench.fetched(GROUP, "changing", "1-SNAPSHOT", "changing-1-SNAPSHOT.jar")
                assert got == bench.jar(text).read_bytes()


def test_deploy_to_a_proxy_is_refused_and_the_reason_printed(mirror: Mirror) -> None:
    with mirror() as scene:
        for maven in MAVENS:
            bench = MavenBench(scene.bench().folder / "own", scene.repository.url)
            shown = printed(bench.deploy_file(maven, f"{GROUP}:not-here:1.0", bench.jar("x"), status=1))
            assert "405" in shown
            assert maven == "maven-4" or "main/mirror is a proxy" in shown  # Maven 4 shows no sentence after a PUT


def test_own_groups_are_never_asked_upstream_in_a_virtual_repository(
    origin: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = MavenRepository(origin.url, "main/first").wire.parts
    with TcpProxy((parts.hostname or "", parts.port or 0)).running() as line:
        sections = (
            hosted("maven", "own"),
            proxy("maven", "mirror", f"http://{line.host}/repositories/main/first"),
            virtual("maven", "all", "main/mirror", "main/own", publish_to="main/own"),
        )
        with running(tmp_path_factory.mktemp("server"), ALLOWED + "".join(sections)) as server:
            everything = MavenRepository(server.url, "main/all")
            bench = MavenBench(tmp_path_factory.mktemp("bench"), everything.url)
            bench.deploy_file("maven-3.9", "com.example.secret:app:1.0", bench.jar("own"))
            bench.deploy_file("maven-3.9", "com.example.secret:app:1.1", bench.jar("own, newer"))
            before = len(line.requests("com/example/secret"))
            for maven in MAVENS:
                user = MavenBench(tmp_path_factory.mktemp("user"), everything.url)
                assert fetched(user, maven, "first", "1.9") == user.jar("first 1.9").read_bytes()
                jars = user.dependencies(maven, "com.example.secret:app:[1.0,2.0)")
                assert jars == {"app-1.1.jar": user.jar("own, newer").read_bytes()}
            assert len(line.requests("com/example/secret")) == before
