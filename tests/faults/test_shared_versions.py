"""Files of one version of a proxy with several routes, asked for at two workers: all come from one route."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.faults.test_shared_fetches import Download
from tests.support.configurations import proxy
from tests.support.odd_files import zip_of
from tests.support.server_process import ServerProcess, restarts
from tests.support.upstreams.messages import HEAD, Fault
from tests.support.upstreams.server import ScriptedUpstream
from tests.support.workers import connect_to_each, kill, wait_for_workers, worker_of

pytestmark = pytest.mark.faults

Routes = tuple[ScriptedUpstream, ScriptedUpstream]
BODY = zip_of(b"of the first" * 100_000)


@pytest.fixture
def routes() -> Iterator[Routes]:
    with ScriptedUpstream() as first, ScriptedUpstream() as second:
        yield first, second


@pytest.fixture
def server(tmp_path: Path, routes: Routes) -> Iterator[ServerProcess]:
    """A server of two workers."""
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + proxy("maven", "maven", *(each.url for each in routes))
    with restarts(tmp_path, configuration, {"PKGREPO_SERVER__WORKERS": "2"}) as start:
        yield start()


def split(routes: Routes, version: str) -> tuple[str, str]:
    """The paths of a version's jar, which the first route has, and of its sources, which the second has."""
    base = f"/org/example/split/{version}/split-{version}"
    routes[0].serve(f"{base}.jar", BODY)
    routes[1].serve(f"{base}-sources.jar", zip_of(b"of the second"))
    return f"{base}.jar", f"{base}-sources.jar"


def public(path: str) -> str:
    return f"/repositories/main/maven{path}"


def test_a_worker_waits_for_the_route_that_another_one_finds(server: ServerProcess, routes: Routes) -> None:
    jar, sources = split(routes, "1.0")
    one, other = connect_to_each(server.url)
    routes[0].misbehave(jar, Fault(pause_at=HEAD))
    first = Download(one, public(jar))
    routes[0].wait_paused(jar)
    second = Download(other, public(sources))
    sleep(0.5)  # so that it waits
    routes[0].release(jar)
    assert first.finish() == (200, BODY)
    assert second.finish()[0] == 404
    assert routes[1].count() == 0


def test_the_route_of_a_head_is_that_of_all_workers(server: ServerProcess, routes: Routes) -> None:
    one, other = connect_to_each(server.url)
    for number in range(20):
        jar, sources = split(routes, f"1.{number}")
        assert one.ask("HEAD", public(jar)).status == 200
        assert other.ask("GET", public(sources)).status == 404
    assert routes[1].count() == 0


def test_a_worker_chooses_the_route_when_the_one_that_did_is_killed(server: ServerProcess, routes: Routes) -> None:
    jar, sources = split(routes, "1.0")
    one, other = connect_to_each(server.url)
    routes[0].misbehave(jar, Fault(pause_at=HEAD))
    Download(one, public(jar))
    routes[0].wait_paused(jar)
    second = Download(other, public(sources))
    sleep(0.3)  # so that it waits
    kill(worker_of(server.pid, one))
    assert second.finish() == (200, zip_of(b"of the second"))


def test_a_new_worker_asks_for_the_route_of_a_file_that_arrives(server: ServerProcess, routes: Routes) -> None:
    jar, sources = split(routes, "1.0")
    one, other = connect_to_each(server.url)
    routes[0].misbehave(jar, Fault(pause_at=len(BODY) // 2))
    first = Download(one, public(jar))
    first.wait_for(1)
    old, kept = worker_of(server.pid, other), one.worker
    kill(old)
    wait_for_workers(server.pid, without=old)
    new = next(each for each in connect_to_each(server.url) if each.worker != kept)
    assert new.ask("GET", public(sources)).status == 404
    routes[0].release(jar)
    assert first.finish() == (200, BODY)
    assert routes[1].count() == 0
