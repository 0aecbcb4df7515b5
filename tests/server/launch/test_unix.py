"""A server on a Unix socket, behind a proxy on the same machine."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.threads import deferToThread

from tests.support.http_client import basic
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

LIMIT = 5  # failed logins


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection through a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("packages.example", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


@pytest_twisted.async_yield_fixture
async def make_proxied(make_server: Any, tmp_path: Any) -> Any:
    """Start a server on a Unix socket. Returns a function that sends requests like a proxy for a client's address."""

    async def make(**overrides: object) -> Any:
        await make_server(server__listen=[f"unix:{tmp_path}/socket"], limits__login_failures=LIMIT, **overrides)

        def exchange(address: str, headers: dict[str, str]) -> tuple[int, Any]:
            connection = UnixConnection(f"{tmp_path}/socket")
            fields = {"X-Forwarded-For": address, "X-Forwarded-Proto": "https", **headers}
            connection.request("GET", "/api/user/me", headers=fields)
            reply = connection.getresponse()
            body = json.loads(reply.read())
            connection.close()
            return reply.status, body

        def ask(address: str, **headers: str) -> Any:
            return deferToThread(exchange, address, headers)

        return ask

    yield make


async def fail(ask: Any, address: str) -> int:
    """Fail as many logins as are allowed, each with another name. Returns the status of the next attempt."""
    for number in range(LIMIT):
        status, _ = await ask(address, **basic((f"nobody{number}", "wrong")))
        assert status == 401
    status, _ = await ask(address, **basic(("somebody", "wrong")))
    return int(status)


async def test_forwarded_headers_are_trusted_on_a_trusted_socket(make_proxied):
    ask = await make_proxied(server__trusted_proxies=["unix"])
    _, problem = await ask("203.0.113.7")
    assert problem["type"].startswith("https://packages.example/")
    assert await fail(ask, "203.0.113.7") == 429
    status, _ = await ask("203.0.113.8", **basic(("somebody", "wrong")))
    assert status == 401


async def test_clients_without_an_address_do_not_block_each_other(make_proxied):
    ask = await make_proxied()
    _, problem = await ask("203.0.113.7")
    assert problem["type"].startswith("http://packages.example/")
    assert await fail(ask, "203.0.113.7") == 401
