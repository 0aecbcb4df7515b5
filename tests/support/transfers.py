"""A file of an upstream, and clients that fetch it by a proxy."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import Any

from twisted.internet.defer import Deferred, gatherResults

from tests.support.caching_proxy import Client, Fetched, fetch, in_thread
from tests.support.inprocess_server import until
from tests.support.upstreams.messages import Answer, etag_of

KIB = 1024
MIB = 1024 * KIB
SIZE = 3 * MIB + 17


@cache
def body_of(size: int) -> bytes:
    return os.urandom(size)


def document(size: int = SIZE, **fields: str) -> Answer:
    return Answer(body=body_of(size), fields={"ETag": etag_of(body_of(size)), **fields})


def fetch_all(proxy: Any, path: str, count: int) -> Deferred[list[Fetched]]:
    return gatherResults([fetch(proxy.server.url, path) for _ in range(count)])


async def assert_nothing_kept(proxy: Any) -> None:
    await until(lambda: not len(proxy.transfers))
    assert proxy.row("file") is None
    assert proxy.services.copies() == []


async def assert_stored(proxy: Any, body: bytes, path: str = "file") -> None:
    await until(lambda: proxy.row(path) is not None)
    file = proxy.row(path)
    assert (file.size, file.sha256) == (len(body), hashlib.sha256(body).hexdigest())
    assert await proxy.services.store.open(file.locator).read(0, file.size) == body


async def start_reading(proxy: Any, count: int, path: str = "file") -> Client:
    """A client that has read so many bytes."""

    def run() -> Client:
        client = Client(proxy.server.url)
        client.ask(path)
        client.read_body(count)
        return client

    started: Client = await in_thread(run)
    return started
