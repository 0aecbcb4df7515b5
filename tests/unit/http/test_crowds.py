"""More connections than the limit."""

from __future__ import annotations

import resource
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport

from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.http.site import CLOSED_AT_ONCE, make_site
from tests.support.memory_connection import Connection

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


async def answer(_request: Request) -> Response:
    return Response()


class Crowd:
    """Connections to one site, in the order in which they came, a second between two of them."""

    def __init__(self, limit: int, handler: Any = answer) -> None:
        self.first = Connection(handler, limits=HttpLimits(connections=limit))
        self.site = self.first.site
        self.transports = [self.first.transport]
        self.channels = [self.first.channel]

    def join(self, *, data: bytes = b"") -> None:
        transport = StringTransport()
        channel = self.site.buildProtocol(None)
        self.first.clock.rightNow += 1  # without the sweep, which has its own reasons to close
        channel.makeConnection(transport)
        self.transports.append(transport)
        self.channels.append(channel)
        channel.dataReceived(data)

    def closed(self) -> list[int]:
        return [n for n, each in enumerate(self.transports) if each.disconnecting or each.disconnected]


def test_the_longest_idle_connections_are_closed_first() -> None:
    crowd = Crowd(2 * CLOSED_AT_ONCE)
    for _ in range(2 * CLOSED_AT_ONCE - 1):
        crowd.join()
    assert crowd.closed() == []
    crowd.join(data=GET)
    assert crowd.closed() == list(range(CLOSED_AT_ONCE))
    assert b"200 OK" in crowd.transports[-1].value()


def test_a_connection_with_a_request_is_never_closed_to_make_room() -> None:
    gates: list[Deferred[None]] = []

    async def wait(_request: Request) -> Response:
        gates.append(Deferred())
        await gates[-1]
        return Response()

    crowd = Crowd(3, wait)
    crowd.channels[0].dataReceived(GET)
    crowd.join(data=GET)
    crowd.join(data=b"GET / HTTP/1.1\r\n")
    crowd.join(data=GET)
    assert crowd.closed() == [2]


def test_when_all_are_busy_a_new_connection_is_cut() -> None:
    async def wait(_request: Request) -> Response:
        await Deferred()
        return Response()

    crowd = Crowd(2, wait)
    crowd.channels[0].dataReceived(GET)
    crowd.join(data=GET)
    crowd.join()
    assert crowd.closed() == [2]


def test_files_keep_a_third_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300, 300))
    site = make_site(Connection(answer).site.resource, reactor=Connection(answer).clock)
    for _ in range(200):
        site.buildProtocol(None).makeConnection(StringTransport())
    assert not any(channel.transport.disconnecting for channel in site.channels)
    site.buildProtocol(None).makeConnection(StringTransport())
    assert any(channel.transport.disconnecting for channel in site.channels)
