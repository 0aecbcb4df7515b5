"""A stop during a download from a real port."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from twisted.internet.defer import ensureDeferred
from twisted.internet.tcp import Port
from twisted.internet.threads import deferToThread

from tests.support.inprocess_server import RunningServer, reactor, until
from tests.support.python_packages import make_wheel
from tests.support.socket_server import read_to_end
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

FILENAME, DATA = make_wheel("big", "1.0", pad=32 * 1024 * 1024)  # larger than the socket buffers of both ends
REPOSITORY = {"name": "py", "format": "python"}


def connect(server: RunningServer) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=TIMEOUT_S)


def begin(server: RunningServer) -> socket.socket:
    """Publish a file, and read its first bytes."""
    path = f"/repositories/main/py/big/1.0/{FILENAME}"
    assert requests.put(server.url + path, DATA, auth=server.admin, timeout=TIMEOUT_S).status_code == 201
    client = connect(server)
    client.sendall(f"GET /repositories/main/py/packages/{FILENAME} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert client.recv(9) == b"HTTP/1.1 "
    return client


def listening() -> list[Port]:
    """The ports of this process on which it listens."""
    return [each for each in reactor.getReaders() if isinstance(each, Port)]


async def test_ports_close_first_and_a_transfer_completes(make_server: Any) -> None:
    server = await make_server(bootstrap__repositories=[REPOSITORY], server__shutdown_grace=TIMEOUT_S)
    client = await deferToThread(begin, server)
    idle = connect(server)
    assert listening()
    await until(lambda: len(server.service.assembly.site.channels) == 2)
    stopping = ensureDeferred(server.stop())
    # An idle connection is closed after a second, so that only the ports and the transfer are still open then.
    assert await deferToThread(idle.recv, 1) == b""
    # No connection is tried: another process may already listen on that port.
    assert not listening()
    assert not stopping.called
    received = await deferToThread(read_to_end, client)
    assert received.endswith(DATA)
    await stopping
    client.close()
    idle.close()


async def test_a_transfer_longer_than_the_grace_time_is_aborted(make_server: Any) -> None:
    server = await make_server(bootstrap__repositories=[REPOSITORY], server__shutdown_grace=0)
    client = await deferToThread(begin, server)
    await server.stop()
    with pytest.raises(ConnectionResetError):
        await deferToThread(read_to_end, client)
    client.close()
