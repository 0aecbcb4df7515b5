"""Files of upstreams whose clients are connected to two workers, and the worker that fetches them."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest

from tests.support.configurations import proxy
from tests.support.server_process import ServerProcess, restarts
from tests.support.timeouts import TIMEOUT_S
from tests.support.upstreams.messages import Answer, Fault, etag_of
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import ScriptedUpstream
from tests.support.workers import Connection, connect_to_each, kill, wait_for_workers, worker_of

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
ZIP, END = b"PK\x03\x04", b"PK\x05\x06" + bytes(18)  # a jar begins and ends so
SIZE = 8 * MIB + 17
JAR = "/org/example/big/1.0/big-1.0.jar"
PATH = f"/repositories/main/maven{JAR}"
Origins = tuple[ScriptedUpstream, NpmUpstream]


@pytest.fixture
def origins() -> Iterator[Origins]:
    with ScriptedUpstream() as maven, NpmUpstream() as npm:
        yield maven, npm


@pytest.fixture
def server(tmp_path: Path, origins: Origins) -> Iterator[ServerProcess]:
    """A server of two workers."""
    configuration = proxy("maven", "maven", origins[0].url) + proxy("npm", "npm", origins[1].url)
    configuration += proxy("npm", "short", origins[1].url, cache_ttl="0")
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + configuration
    with restarts(tmp_path, configuration, {"PKGREPO_SERVER__WORKERS": "2"}) as start:
        yield start()


class Download:
    """A file that a thread reads from one worker; ``arrived`` is how many bytes it has."""

    def __init__(self, connection: Connection, path: str) -> None:
        self.body = bytearray()
        self.status = 0
        self.error: Exception | None = None
        self._thread = Thread(target=self._run, args=(connection, path), daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> None:
        ends_at = monotonic() + TIMEOUT_S
        while len(self.body) < count:
            assert self.error is None, self.error
            assert monotonic() < ends_at, len(self.body)
            sleep(0.01)

    def finish(self) -> tuple[int, bytes]:
        """Wait for the end; the status and the body."""
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        assert self.error is None, self.error
        return self.status, bytes(self.body)

    def _run(self, connection: Connection, path: str) -> None:
        try:
            answer = connection.begin(path)
            self.status = answer.status
            while piece := answer.read1(65536):
                self.body += piece
            answer.close()  # so that the connection can be used again
        except OSError as error:
            self.error = error


def serve(origin: ScriptedUpstream, **fault: int) -> bytes:
    """A file of an upstream, whose first answer has a fault."""
    body = ZIP + os.urandom(SIZE - len(ZIP + END)) + END
    fields = {"ETag": etag_of(body), "Content-Type": "application/java-archive"}
    origin.serve(JAR, Answer(body=body, fields=fields))
    if fault:
        origin.misbehave(JAR, Fault(**fault))
    return body


def begin_at_both(server: ServerProcess, origin: ScriptedUpstream) -> tuple[list[Connection], list[Download]]:
    """Clients of both workers who have the first half of the file; the first one's worker fetches it."""
    connections = connect_to_each(server.url)
    first = Download(connections[0], PATH)
    origin.wait_paused(JAR)
    first.wait_for(SIZE // 4)
    second = Download(connections[1], PATH)
    second.wait_for(SIZE // 4)
    return connections, [first, second]


def test_clients_of_both_workers_read_a_file_while_one_of_them_fetches_it(
    server: ServerProcess, origins: Origins
) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    _, downloads = begin_at_both(server, origins[0])
    assert origins[0].count(JAR) == 1
    origins[0].release(JAR)
    assert [each.finish() for each in downloads] == [(200, body)] * 2
    assert (origins[0].count(JAR), origins[0].sent(JAR)) == (1, SIZE)


def test_a_worker_goes_on_with_the_file_of_one_that_is_killed(server: ServerProcess, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    connections, [_, second] = begin_at_both(server, origins[0])
    kill(worker_of(server.pid, connections[0]))
    assert second.finish() == (200, body)
    ranges = [each.fields.get("range") for each in origins[0].requests(JAR)]
    assert len(ranges) == 2
    assert int(str(ranges[1]).removeprefix("bytes=").rstrip("-")) >= SIZE // 4
    wait_for_workers(server.pid)
    assert connections[1].ask("GET", PATH).body == body
    assert origins[0].count(JAR) == 2


def test_a_worker_waits_for_one_that_is_stopped(server: ServerProcess, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    connections, downloads = begin_at_both(server, origins[0])
    leader = worker_of(server.pid, connections[0])
    os.kill(leader, signal.SIGSTOP)
    origins[0].release(JAR)
    sleep(1)  # longer than a follower waits for a lease that is free
    assert (downloads[1].error, origins[0].count(JAR)) == (None, 1)
    os.kill(leader, signal.SIGCONT)
    assert [each.finish() for each in downloads] == [(200, body)] * 2
    assert origins[0].count(JAR) == 1


def test_a_client_that_leaves_does_not_end_what_the_other_worker_reads(server: ServerProcess, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 3)
    connections = connect_to_each(server.url)
    first = Download(connections[0], PATH)
    first.wait_for(SIZE // 4)
    second = Download(connections[1], PATH)
    second.wait_for(SIZE // 4)
    connections[0].abort()
    origins[0].release(JAR)
    assert second.finish() == (200, body)
    assert origins[0].count(JAR) == 1


def test_a_failure_of_the_upstream_is_that_of_both_workers(server: ServerProcess, origins: Origins) -> None:
    origins[0].misbehave(JAR, Answer(404, b"", fault=Fault(latency_s=1)), repeat=True)
    downloads = [Download(each, PATH) for each in connect_to_each(server.url)]
    assert [each.finish()[0] for each in downloads] == [404, 404]


@pytest.mark.parametrize("size", [1000, 100_000])
def test_a_file_and_its_checksum_at_two_workers_cost_one_fetch(
    server: ServerProcess, origins: Origins, size: int
) -> None:
    body = ZIP + os.urandom(size - len(ZIP + END)) + END
    origins[0].serve(JAR, Answer(body=body, fields={"ETag": etag_of(body)}))
    origins[0].misbehave(JAR, Fault(latency_s=1))
    connections = connect_to_each(server.url)
    downloads = [Download(connections[0], PATH), Download(connections[1], f"{PATH}.sha1")]
    assert downloads[0].finish() == (200, body)
    assert downloads[1].finish() == (200, hashlib.sha1(body, usedforsecurity=False).hexdigest().encode())
    assert Download(connections[1], PATH).finish() == (200, body)
    assert origins[0].count(JAR) == 1


def test_a_reload_in_the_middle_of_downloads_fails_none(server: ServerProcess, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    _, downloads = begin_at_both(server, origins[0])
    old = wait_for_workers(server.pid)
    os.kill(server.pid, signal.SIGHUP)
    server.lines("all workers are new", 1)
    origins[0].release(JAR)
    assert [each.finish() for each in downloads] == [(200, body)] * 2
    ends_at = monotonic() + TIMEOUT_S
    while set(wait_for_workers(server.pid)) & set(old):
        assert monotonic() < ends_at
        sleep(0.05)
    assert Download(connect_to_each(server.url)[0], PATH).finish() == (200, body)


def test_a_document_that_both_workers_want_is_asked_for_once(server: ServerProcess, origins: Origins) -> None:
    npm = origins[1]
    npm.add("slow")
    npm.misbehave("/slow", Fault(latency_s=1))
    path = "/repositories/main/npm/slow"
    downloads = [Download(each, path) for each in connect_to_each(server.url)]
    assert [each.finish()[0] for each in downloads] == [200, 200]
    assert npm.count("/slow") == 1


@pytest.mark.parametrize(
    ("repository", "upstream", "asked"),
    [("npm", 1, "/{name}"), ("maven", 0, "/org/example/{name}/maven-metadata.xml")],
    ids=["document", "file"],
)
def test_what_an_upstream_lacks_one_worker_asks_for(
    server: ServerProcess, origins: Origins, repository: str, upstream: int, asked: str
) -> None:
    one, other = connect_to_each(server.url)
    ends_at, count = monotonic() + TIMEOUT_S, 0
    while count != 1:  # the other one may be asked before it hears of the answer
        assert monotonic() < ends_at, count
        path = asked.format(name=f"gone{secrets.token_hex(4)}")
        assert one.ask("GET", f"/repositories/main/{repository}{path}").status == 404
        sleep(0.05)
        assert other.ask("GET", f"/repositories/main/{repository}{path}").status == 404
        count = origins[upstream].count(path)


def test_a_document_is_asked_for_by_the_other_worker_when_the_first_is_killed(
    server: ServerProcess, origins: Origins
) -> None:
    npm = origins[1]
    npm.add("slow")
    npm.misbehave("/slow", Fault(pause_at=10))
    connections = connect_to_each(server.url)
    path = "/repositories/main/npm/slow"
    Download(connections[0], path)
    npm.wait_paused("/slow")
    second = Download(connections[1], path)
    sleep(0.3)  # so that it waits
    kill(worker_of(server.pid, connections[0]))
    assert second.finish()[0] == 200
    assert npm.count("/slow") == 2


def test_replaced_file_is_served_by_all_workers_as_soon_as_one_shows_its_document(
    server: ServerProcess, origins: Origins
) -> None:
    npm = origins[1]
    npm.add("replaced")
    document, path = "/repositories/main/short/replaced", "/repositories/main/short/replaced/-/replaced-1.0.0.tgz"
    workers = connect_to_each(server.url)
    for number in range(4):
        data = npm.add("replaced", pad=1000 * number)
        shown, served = workers[number % 2], workers[(number + 1) % 2]
        assert hashlib.sha1(data, usedforsecurity=False).hexdigest().encode() in shown.ask("GET", document).body
        assert served.ask("GET", path).body == data
        assert shown.ask("GET", path).body == data
