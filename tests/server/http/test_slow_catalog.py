"""A server whose catalog is held by the test: which requests wait for it, and which do not."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_twisted
import requests
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.threads import deferToThread

from pkgrepo.composition import core, databases
from pkgrepo.concurrency.services import PeriodicTask, Service
from pkgrepo.storage.catalog.server import settings
from pkgrepo.webhooks.sender import WebhookSender
from tests.support.delayed_catalog import DelayedCatalog
from tests.support.inprocess_server import turn, until
from tests.support.python_packages import make_wheel
from tests.support.socket_server import read_to_end
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

FILENAME, DATA = make_wheel("demo", "1.0")
BIG_NAME, BIG = make_wheel("big", "1.0", pad=16 * 1024 * 1024)  # larger than the socket buffers of both ends
REPOSITORIES = [
    {"name": "py", "format": "python"},
    {"name": "closed", "format": "python", "visibility": "private"},
]
# What follows events in the background may still ask about those before.
FOLLOWING = ("pkgrepo.storage.catalog.descriptions.", "pkgrepo.storage.catalog.server.layout_pending.")
CONFIGURATION = "pkgrepo.repositories.registry._read"
PAGES = ("py/simple/demo/", f"py/packages/demo/1.0/{FILENAME}", "closed/simple/demo/")


class HeldServer:
    """A running server; between ``hold`` and ``release`` no operation of its catalog completes."""

    def __init__(self, server: Any, catalog: DelayedCatalog, clock: Clock) -> None:
        self.server = server
        self.catalog = catalog
        self._clock = clock

    async def hold(self) -> None:
        """
        Hold every operation that begins from now on. The caches know of all commits then.

        A commit of an operation that had begun before would make the next requests wait for the catalog.
        """
        seen = None
        while seen != (seen := self.catalog.generation()):
            for path in PAGES:
                assert (await self.page(path)).status_code == 200
            await self.server.service.assembly.core.wait_idle()
        self.catalog.delay_s = 2.0

    def asked(self, since: int) -> list[str]:
        """The operations that requests asked for, after so many of all."""
        return [each for each in self.catalog.operations[since:] if not each.startswith(FOLLOWING)]

    async def release(self) -> None:
        """Complete the held operations, and stop holding."""
        self.catalog.delay_s = 0.0
        while self._clock.getDelayedCalls():
            self._clock.advance(1.0)
            await turn()

    async def commit(self) -> None:
        """Commit a change that the server does not know of, as another process does."""
        await self.catalog._catalog.write(settings.increment, "somewhere else")

    def ask(self, path: str, method: str = "GET", **options: Any) -> Deferred[requests.Response]:
        """Send a request in a thread, and return its response."""
        send = partial(requests.request, timeout=TIMEOUT_S, **options)
        return deferToThread(send, method, f"{self.server.url}/{path}")

    def page(self, path: str) -> Deferred[requests.Response]:
        """Send a GET request below the storage's path, with credentials for the private repository."""
        auth = self.server.admin if path.startswith("closed") else None
        return self.ask(f"repositories/main/{path}", auth=auth)

    async def publish(self, name: str, project: str, data: bytes, repository: str = "py") -> None:
        path = f"repositories/main/{repository}/{project}/1.0/{name}"
        assert (await self.ask(path, "PUT", data=data, auth=self.server.admin)).status_code == 201

    def connect(self, *lines: str) -> socket.socket:
        """Connect, and send the head of a request."""
        parts = urlsplit(self.server.url)
        client = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=TIMEOUT_S)
        client.sendall("\r\n".join((*lines, "Host: a", "", "")).encode())
        return client


@pytest_twisted.async_yield_fixture
async def held(monkeypatch: pytest.MonkeyPatch, make_server: Callable[..., Any]) -> Any:
    clock = Clock()
    # Periodic work asks and commits at any time, after which all requests wait.
    for service, name in itertools.product((PeriodicTask, WebhookSender), ("startService", "stopService")):
        monkeypatch.setattr(service, name, getattr(Service, name))

    def make(config: Any, reactor: Any) -> DelayedCatalog:
        return DelayedCatalog(databases.make_catalog(config, reactor), clock, 0.0)

    monkeypatch.setattr(core, "make_catalog", make)
    server = await make_server(bootstrap__repositories=REPOSITORIES)
    held = HeldServer(server, server.service.assembly.core.catalog, clock)
    for repository in ("py", "closed"):
        await held.publish(FILENAME, "demo", DATA, repository)
    yield held
    await held.release()


async def test_hot_reads_pings_and_health_do_not_wait_for_the_catalog(held: HeldServer) -> None:
    await held.hold()
    asked = len(held.catalog.operations)
    waiting = held.page("py/simple/other/")  # not in the caches, so it waits
    await until(lambda: held.asked(asked) and held.catalog._waiting)
    asked = len(held.catalog.operations)
    for path in PAGES:
        assert (await held.page(path)).status_code == 200
    assert (await held.ask("v2/")).status_code == 200  # python-requests is a known program that probes
    assert (await held.ask("v2/", auth=held.server.admin)).status_code == 200
    assert (await held.ask("v2/", headers={"User-Agent": "containerd/2.0"})).status_code == 401
    assert (await held.ask("healthz")).status_code == 200
    assert not held.asked(asked)
    assert not waiting.called
    await held.release()
    assert (await waiting).status_code == 404


async def test_after_a_commit_reads_share_one_query_and_others_do_not_wait(held: HeldServer) -> None:
    await held.hold()
    await held.commit()
    asked = len(held.catalog.operations)
    waiting = [held.page("py/simple/demo/") for _ in range(8)]
    await until(lambda: len(held.server.service.assembly.site.channels) >= 8 and len(held.catalog.operations) > asked)
    assert (await held.ask("healthz")).status_code == 200
    assert (await held.ask("v2/")).status_code == 200
    assert held.asked(asked) == [CONFIGURATION]  # one query is shared by all
    assert not any(each.called for each in waiting)
    await held.release()
    assert [(await each).status_code for each in waiting] == [200] * 8
    await held.hold()
    assert (await held.page("py/simple/demo/")).status_code == 200


async def test_a_running_transfer_continues(held: HeldServer) -> None:
    await held.publish(BIG_NAME, "big", BIG)
    client = held.connect(f"GET /repositories/main/py/packages/{BIG_NAME} HTTP/1.1")
    assert await deferToThread(client.recv, 9) == b"HTTP/1.1 "
    await held.hold()
    received = deferToThread(read_to_end, client)
    await held.commit()
    # To its end the client would wait for the server to close the connection: it has asked for that here.
    client.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = await received
    assert BIG in answer
    client.close()


async def test_an_early_body_is_buffered_and_a_waiting_one_gets_100_continue(held: HeldServer) -> None:
    await held.hold()
    await held.commit()
    credentials = requests.auth._basic_auth_str(*held.server.admin)
    head = [f"Authorization: {credentials}", f"Content-Length: {len(BIG)}", "Connection: close"]
    eager = held.connect(f"PUT /repositories/main/py/big/1.0/{BIG_NAME} HTTP/1.1", *head)
    sending = deferToThread(eager.sendall, BIG)
    polite = held.connect(f"PUT /repositories/main/closed/big/1.0/{BIG_NAME} HTTP/1.1", *head, "Expect: 100-continue")
    reply = deferToThread(polite.recv, 100)
    await until(lambda: len(held.server.service.assembly.site.channels) == 2 and held.catalog._waiting)
    for _ in range(20):
        await turn()
    assert not reply.called
    await held.release()
    assert (await reply).startswith(b"HTTP/1.1 100 ")
    await deferToThread(polite.sendall, BIG)
    await sending
    for client in (eager, polite):
        assert b" 201 " in (await deferToThread(read_to_end, client)).split(b"\r\n")[0]
        client.close()
    for repository in ("py", "closed"):
        assert (await held.page(f"{repository}/packages/{BIG_NAME}")).content == BIG


async def test_disconnected_clients_cancel_only_their_own_wait_for_the_catalog(held: HeldServer) -> None:
    site = held.server.service.assembly.site
    await held.hold()
    await held.commit()
    credentials = f"Authorization: {requests.auth._basic_auth_str(*held.server.admin)}"
    leavers = [
        held.connect("GET /repositories/main/py/simple/demo/ HTTP/1.1"),
        held.connect("GET /repositories/main/closed/simple/demo/ HTTP/1.1", credentials),
        held.connect("GET /api/repository HTTP/1.1", credentials),
        held.connect("GET /v2/main/none/image/manifests/latest HTTP/1.1", credentials),
        held.connect(f"PUT /repositories/main/py/other/1.0/{FILENAME} HTTP/1.1", credentials, "Content-Length: 9"),
    ]
    stayer = held.page("py/simple/demo/")
    await until(lambda: len(site.channels) == 6 and held.catalog._waiting)
    for each in leavers:
        each.close()
    await until(lambda: len(site.channels) == 1)
    await held.release()
    assert (await stayer).status_code == 200  # this request shared the query with the cancelled ones
    assert (await held.page("closed/simple/demo/")).status_code == 200
