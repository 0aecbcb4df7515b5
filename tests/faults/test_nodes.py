"""Two nodes on one PostgreSQL server, each of which is killed or paused while clients upload; clocks that differ."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import requests

from pkgrepo.repositories.publish.upload_leases import LEASE_S
from pkgrepo.storage.catalog.postgresql.changes import RECHECK_S
from pkgrepo.storage.catalog.postgresql.sessions import PACE
from tests.faults.test_workers_kill import UPLOADS, check, make_uploads
from tests.support.client_programs import absent
from tests.support.http_client import basic
from tests.support.nodes import Nodes, two_nodes
from tests.support.postgresql import PostgresServer, postgresql_server
from tests.support.timeouts import TIMEOUT_S
from tests.support.uploader import Upload, Uploader
from tests.support.workers import AUTH, Connection, open_paths

pytestmark = pytest.mark.faults

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
AHEAD = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+5m", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with postgresql_server() as server:
        yield server


@pytest.fixture
def nodes(database: PostgresServer, tmp_path: Path) -> Iterator[Nodes]:
    with two_nodes(tmp_path, database.address) as nodes:
        nodes.failing = True
        yield nodes


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Pause a process within the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def upload_persistently(urls: Sequence[str], uploads: Sequence[Upload], acknowledged: set[Any]) -> None:
    """Upload in turn to each node, again after answers that promise nothing, until all are acknowledged."""
    session = requests.Session()
    session.auth = AUTH
    ends_at = monotonic() + TIMEOUT_S
    for n, upload in enumerate(uploads):
        tried = 0
        while upload.key not in acknowledged:
            assert monotonic() < ends_at, upload.key
            url = urls[(n + tried) % len(urls)]
            try:
                reply = session.put(url + upload.path, data=upload.body, timeout=TIMEOUT_S)
            except requests.RequestException:
                tried += 1
                continue
            # An earlier attempt may have been committed before its answer was lost.
            if reply.status_code in (200, 201, *(upload.repeated if tried else ())):
                acknowledged.add(upload.key)
            else:
                assert reply.status_code >= 500, reply.text
                tried += 1
                sleep(0.05)


def begin_uploads(nodes: Nodes, uploads: Sequence[Upload], acknowledged: set[Any]) -> list[threading.Thread]:
    """Begin to upload persistently, by four clients of both nodes."""
    urls = [nodes.url(each) for each in (0, 1)]
    threads = [
        threading.Thread(target=upload_persistently, args=(urls, uploads[n::4], acknowledged), daemon=True)
        for n in range(4)
    ]
    for each in threads:
        each.start()
    return threads


def await_count(acknowledged: set[Any], count: int, seed: int) -> None:
    """Return when so many uploads are acknowledged."""
    ends_at = monotonic() + TIMEOUT_S
    while len(acknowledged) < count:
        assert monotonic() < ends_at, seed
        sleep(0.01)


def test_a_node_that_is_killed_loses_no_acknowledged_publish(nodes: Nodes) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    uploads, digests = make_uploads(rng)
    for each in (0, 1):
        uploader = Uploader(uploads[each::2])
        victim, other = each, 1 - each
        uploader.run(nodes.url(victim), rng.randrange(5, UPLOADS // 4), lambda victim=victim: nodes.kill(victim))
        while uploader.waiting:
            uploader.run(nodes.url(other), UPLOADS, lambda: None)
        nodes.start(victim)
    for each in (0, 1):
        check(nodes.url(each), set(digests), digests, seed)


def test_a_database_that_is_killed_loses_no_acknowledged_publish(nodes: Nodes, database: PostgresServer) -> None:
    seed = random.randrange(2**32)
    uploads, digests = make_uploads(random.Random(seed))
    acknowledged: set[Any] = set()
    threads = begin_uploads(nodes, uploads, acknowledged)
    for goal in (UPLOADS // 4, UPLOADS // 2):
        await_count(acknowledged, goal, seed)
        database.kill()
        database.restart()
    for each in threads:
        each.join(TIMEOUT_S)
    assert acknowledged == set(digests), seed
    for each in (0, 1):
        check(nodes.url(each), acknowledged, digests, seed)


PATHS = [
    "/repositories/main/npm/p1",
    "/repositories/main/npm/other",
    "/repositories/main/none/x",
    "/repositories/main/py/simple/",
    "/v2/",
    "/v2/main/images/app/tags/list",
    "/v2/main/images/app/blobs/sha256:" + 64 * "0",
    "/api/user/me",
    "/api/repository",
    "/ui/",
    "/readyz",
    "/healthz",
    "/metrics",
]


def test_without_the_database_requests_are_told_to_come_again(nodes: Nodes, database: PostgresServer) -> None:
    seen = {}
    for known in (True, False):  # also what was asked before, and may be in memory
        if known:
            before = {path: Connection(nodes.url(0)).ask("GET", path).status for path in PATHS}
        database.kill()
        try:
            for path in PATHS:
                for auth in (AUTH, None):
                    reply = Connection(nodes.url(0)).ask("GET", path, auth=auth)
                    seen[known, path, auth] = reply.status
                    if reply.status == 503 and path not in ("/readyz", "/ui/"):
                        assert int(reply.headers.get("retry-after", 0)) > 0, path
        finally:
            database.restart()
    assert {path: status for path, status in seen.items() if status >= 500 and status != 503} == {}
    assert seen[True, "/healthz", None] == 200
    assert 503 in seen.values()
    ends_at = monotonic() + TIMEOUT_S
    while {path: Connection(nodes.url(0)).ask("GET", path).status for path in PATHS} != before:
        assert monotonic() < ends_at


def test_a_database_that_is_paused_loses_no_acknowledged_publish(nodes: Nodes, database: PostgresServer) -> None:
    seed = random.randrange(2**32)
    uploads, digests = make_uploads(random.Random(seed))
    acknowledged: set[Any] = set()
    threads = begin_uploads(nodes, uploads, acknowledged)
    database.signal(signal.SIGSTOP)
    try:
        sleep(PACE.trusted_s + RECHECK_S + 1)  # nothing in memory counts any more
    finally:
        database.signal(signal.SIGCONT)
    for each in threads:
        each.join(TIMEOUT_S)
    assert acknowledged == set(digests), seed
    for each in (0, 1):
        check(nodes.url(each), acknowledged, digests, seed)


def test_a_token_that_was_revoked_while_a_node_was_paused_is_dead_there(nodes: Nodes) -> None:
    one, other = [Connection(nodes.url(each)) for each in (0, 1)]
    made = one.ask_json("POST", "/api/user/token", {"name": "ci", "scopes": ["api:read"]})
    bearer = {"Authorization": f"Bearer {made['token']}"}
    for each in (one, other):  # both have it in memory now
        assert each.ask("GET", "/api/user/me", auth=None, headers=bearer).status == 200
    with paused(nodes.processes[1].pid):
        assert one.ask("DELETE", f"/api/user/token/{made['id']}").status == 204
        sleep(PACE.trusted_s + RECHECK_S)
    assert other.ask("GET", "/api/user/me", auth=None, headers=bearer).status == 401


class Patch:
    """A request that appends to an upload; its body is sent in two parts."""

    def __init__(self, url: str, place: str, offset: int, body: bytes) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self._connection.putrequest("PATCH", place)
        fields = {
            **basic(AUTH),
            "Content-Type": "application/octet-stream",
            "Content-Range": f"{offset}-{offset + len(body) - 1}",
            "Content-Length": str(len(body)),
        }
        for name, value in fields.items():
            self._connection.putheader(name, value)
        self._connection.endheaders()
        self._body = body
        self._connection.send(body[: len(body) // 2])

    def end(self) -> int:
        """Send the rest. Returns the status of the answer."""
        self._connection.send(self._body[len(self._body) // 2 :])
        answer = self._connection.getresponse()
        answer.read()
        return answer.status


def wait_until_leased(nodes: Nodes) -> None:
    """Wait until a request has begun to append to the only upload."""
    ends_at = monotonic() + TIMEOUT_S
    with psycopg.connect(nodes.database, autocommit=True) as session:
        while not session.execute("SELECT 1 FROM upload WHERE lease_by IS NOT NULL").fetchall():
            assert monotonic() < ends_at
            sleep(0.05)


def wait_until_open(pid: int) -> None:
    """Wait until a process has opened the file of an upload that other requests have begun."""
    ends_at = monotonic() + TIMEOUT_S
    while not any("/uploads/" in each and each.endswith("/data") for each in open_paths(pid)):
        assert monotonic() < ends_at
        sleep(0.01)


def begin_upload(node: Connection) -> str:
    location = node.ask("POST", "/v2/main/images/app/blobs/uploads/").headers["location"]
    return location[location.index("/v2/") :]


def finish_upload(node: Connection, place: str, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    reply = node.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest=sha256:{digest}", b"")
    assert reply.status == 201, reply.text
    assert node.ask("GET", f"/v2/main/images/app/blobs/sha256:{digest}").body == data


def test_another_node_goes_on_with_the_upload_of_one_that_is_paused(nodes: Nodes) -> None:
    one, other = [Connection(nodes.url(each)) for each in (0, 1)]
    place = begin_upload(other)
    chunks = [os.urandom(100_000) for _ in range(2)]
    assert Patch(nodes.url(1), place, 0, chunks[0]).end() == 202
    stuck = Patch(nodes.url(0), place, len(chunks[0]), os.urandom(100_000))
    wait_until_open(nodes.processes[0].pid)
    with paused(nodes.processes[0].pid):
        # It waits for the end of the lease.
        assert Patch(nodes.url(1), place, len(chunks[0]), chunks[1]).end() == 202
    assert stuck.end() >= 400  # what it was sent must not be added
    finish_upload(other, place, b"".join(chunks))
    assert one.ask("GET", "/healthz").status == 200


@pytest.fixture
def ahead(database: PostgresServer, tmp_path: Path) -> Iterator[Nodes]:
    """Two nodes, the clock of the second one of which is five minutes ahead."""
    if not FAKETIME.exists():
        absent(f"there is no {FAKETIME} (bin/test installs it when it runs as root)")
    with two_nodes(tmp_path, database.address) as nodes:
        nodes.stop_one(1)
        nodes.start(1, AHEAD)
        yield nodes


def test_a_node_whose_clock_is_ahead_waits_for_the_lease_of_the_other_one(ahead: Nodes) -> None:
    assert LEASE_S < 5 * 60
    other = Connection(ahead.url(1))
    chunks = [os.urandom(100_000) for _ in range(2)]
    place = begin_upload(other)
    first = Patch(ahead.url(0), place, 0, chunks[0])
    wait_until_leased(ahead)
    statuses: list[int] = []
    second = Patch(ahead.url(1), place, len(chunks[0]), chunks[1])
    thread = threading.Thread(target=lambda: statuses.append(second.end()))
    thread.start()
    sleep(1)  # time in which it would take the lease
    assert statuses == []
    assert first.end() == 202
    thread.join(TIMEOUT_S)
    assert statuses == [202]
    finish_upload(other, place, b"".join(chunks))


def test_tokens_live_as_long_on_a_node_whose_clock_is_ahead(ahead: Nodes) -> None:
    nodes = [Connection(ahead.url(each)) for each in (0, 1)]
    for issuer in nodes:
        issued = json.loads(issuer.ask("GET", "/v2/token?service=pkgrepo&scope=repository:main/images/app:pull").body)
        bearer = {"Authorization": f"Bearer {issued['token']}"}
        for each in nodes:
            reply = each.ask("GET", "/v2/main/images/app/manifests/none", auth=None, headers=bearer)
            assert reply.status == 404, reply.text
    dates = {each.ask_json("GET", "/api/audit?limit=1")["items"][0]["time"][:10] for each in nodes}
    assert len(dates) == 1
