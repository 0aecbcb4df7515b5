"""Clients and upstream faults in random orders: no client ever has a wrong byte, and nothing is left behind."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from twisted.internet.defer import gatherResults

from tests.support.caching_proxy import Client, Fetched, in_thread
from tests.support.upstreams.faults import HTML, corrupted, failing, truncated_by, with_etag, without_ranges
from tests.support.upstreams.messages import Answer, Fault, Step, etag_of

pytestmark = pytest.mark.server

KIB = 1024
FILES = {f"file{number}": size for number, size in enumerate((0, 900, 70 * KIB, 600 * KIB, 3000 * KIB))}
CLIENTS = 60


def random_steps(rng: random.Random) -> list[Step]:
    cuts = [rng.choice((1, 500, 66_000, 300_000, rng.randrange(3000 * KIB))) for _ in range(3)]
    choices: list[Step] = [
        Fault(),
        Fault(chunked=True),
        Fault(unframed=True),
        Fault(cut_at=cuts[0]),
        Fault(cut_at=cuts[1], reset=True),
        Fault(chunked=True, cut_at=cuts[2]),
        Fault(rate=float(rng.randrange(2_000_000, 20_000_000))),
        truncated_by(1, announce=True),
        with_etag('"other"'),
        without_ranges,
        HTML,
        failing(403),
    ]
    return rng.choices(choices, k=40)


def run_client(url: str, path: str, seed: int) -> tuple[str, int, Fetched | None]:
    """One client, which asks for all or a part, and reads to the end or leaves; with the first byte it asked for."""
    rng = random.Random(seed)
    size = FILES[path]
    client = Client(url, receive_buffer=rng.choice((None, 4096, 65536)))
    start = rng.randrange(size) if size and rng.random() < 0.3 else 0
    fields = {"Range": f"bytes={start}-"} if start else {}
    client.ask(path, rng.choice(("GET", "GET", "GET", "HEAD")) if not start else "GET", **fields)
    if rng.random() < 0.25:
        client.socket.settimeout(rng.random() / 10)
        with suppress(AssertionError, OSError):
            client.read_body(rng.randrange(1 + size))
        client.socket.close()
        return path, start, None
    return path, start, client.read()


@pytest.mark.parametrize("seed", range(3))
async def test_no_order_gives_a_client_wrong_bytes(make_proxy: Any, origin: Any, seed: int) -> None:
    rng = random.Random(seed)
    bodies = {path: rng.randbytes(size) for path, size in FILES.items()}
    proxy = make_proxy(most=rng.choice((1, 3, 64)))
    for path, body in bodies.items():
        origin.serve(f"/{path}", Answer(body=body, fields={"ETag": etag_of(body)}))
        steps = random_steps(rng)
        if body:
            steps += [corrupted] * 10
            rng.shuffle(steps)
        origin.misbehave(f"/{path}", *steps)
        if rng.random() < 0.8:
            proxy.sizes[path] = len(body)
        proxy.expect(path, body, *rng.choice((("sha256",), ("sha1", "sha512"))))
    paths = rng.choices(list(FILES), weights=(1, 2, 3, 4, 5), k=CLIENTS)
    results = await gatherResults([in_thread(run_client, proxy.server.url, path, rng.random()) for path in paths])
    for path, start, fetched in results:
        if fetched is not None and fetched.status in (200, 206):
            assert bodies[path][start:].startswith(fetched.body)
    origin.behave()
    for path, body in bodies.items():
        last = await in_thread(run_whole, proxy.server.url, path)
        assert (last.status, last.body) == (200, body)
        row = proxy.row(path)
        assert row is None or row.size == len(body)


def run_whole(url: str, path: str) -> Fetched:
    client = Client(url)
    client.ask(path)
    return client.read()
