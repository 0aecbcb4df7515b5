"""A server that is stopped while it still handles requests of clients that have disconnected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from pkgrepo.repositories.publish import upload_leases
from tests.support.images import Registry
from tests.support.inprocess_server import no_failures, turn, value_of
from tests.support.memory_server import WITHOUT_CONDA, ClosingTransport, Stack
from tests.support.python_packages import make_wheel

pytestmark = pytest.mark.faults

TURNS = (0, 1, 3, 8, 20)  # reactor iterations before the disconnect, so that the stop happens at different steps
GC = "/api/repository/main%2Fimages/gc?wait=0"


@pytest_twisted.async_yield_fixture
async def make_stack(tmp_path: Path) -> Any:
    """Start servers on one folder, with the repositories ``main/py`` and ``main/images``; logs no failure."""

    async def make() -> Stack:
        stack = Stack(tmp_path)
        await stack.start()
        if stack.assembly.core.registry.find("main", "py") is None:
            await stack.add_repository("py", config=WITHOUT_CONDA)
            await stack.add_repository("images", format="docker")
        return stack

    with no_failures():
        yield make
        await turn()


def begin(stack: Stack, method: str, path: str, data: bytes, sent: int) -> Any:
    """Send a request with a part of its body. Returns the server's end of the connection."""
    channel = stack.assembly.site.buildProtocol(None)
    channel.makeConnection(ClosingTransport())
    head = (
        f"{method} {path} HTTP/1.1",
        "Host: a",
        f"Authorization: {stack.authorization('admin')}",
        f"Content-Length: {len(data)}",
    )
    channel.dataReceived("\r\n".join((*head, "", "")).encode() + data[:sent])
    return channel


async def send_and_disconnect(stack: Stack, method: str, path: str, data: bytes, sent: int, turns: int) -> None:
    """Send a request with a part of its body, and disconnect after some reactor iterations."""
    channel = begin(stack, method, path, data, sent)
    for _ in range(turns):
        await turn()
    channel.connectionLost(Failure(ConnectionDone()))


@pytest.mark.folder("looks into it")
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("part", [0.5, 1])
async def test_an_upload_is_published_or_leaves_nothing(
    make_stack: Any, tmp_path: Path, part: float, turns: int
) -> None:
    stack = await make_stack()
    filename, data = make_wheel("demo", "1.0", pad=600_000)
    path = f"/repositories/main/py/demo/1.0/{filename}"
    await send_and_disconnect(stack, "PUT", path, data, int(len(data) * part), turns)
    await stack.stop()
    store = tmp_path / "data" / "storages" / "main"
    assert list((store / "uploads").iterdir()) == []
    copies = [each for each in (store / "blobs").rglob("*") if each.is_file()]
    stack = await make_stack()
    found = await stack.call("GET", f"/repositories/main/py/packages/{filename}")
    assert (found.status, len(copies)) in ((200, 2), (404, 0))
    await stack.stop()


@pytest.mark.folder("a bucket keeps whole parts")
@pytest.mark.parametrize("turns", TURNS)
async def test_received_bytes_of_a_layer_are_kept(make_stack: Any, turns: int) -> None:
    stack = await make_stack()
    started = await Registry(stack).start()
    await send_and_disconnect(stack, "PATCH", started.headers["location"], bytes(600_000), 300_000, turns)
    await stack.stop()
    stack = await make_stack()
    status = await Registry(stack).continue_upload(started, "GET")
    assert (status.status, status.headers["range"]) in ((204, "0-299999"), (204, "0-0"))
    if turns:
        assert status.headers["range"] == "0-299999"
    await stack.stop()


async def test_a_disconnected_client_that_waited_for_a_lease_does_not_touch_the_upload(
    make_stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[Deferred[None]] = []  # the delay before the lease is tried again

    def wait(*_: object) -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    monkeypatch.setattr(upload_leases, "deferLater", wait)
    stack = await make_stack()
    started = await Registry(stack).start()
    path = started.headers["location"]
    first = begin(stack, "PATCH", path, bytes(600_000), 300_000)
    core = stack.assembly.core
    while not await value_of(core.catalog, "SELECT COUNT(*) FROM upload WHERE lease_by IS NOT NULL"):
        await turn()
    second = begin(stack, "PATCH", path, b"more", 4)
    while not waiting:
        await turn()
    for each in (first, second):
        each.connectionLost(Failure(ConnectionDone()))
    await stack.stop()
    assert len(waiting) == 1
    waiting[0].callback(None)
    await turn()
    assert len(waiting) == 1
    stack = await make_stack()
    assert (await Registry(stack).continue_upload(started, "GET")).headers["range"] == "0-299999"
    await stack.stop()


@pytest.mark.parametrize("turns", TURNS)
async def test_a_started_job_does_not_stay_running(make_stack: Any, turns: int) -> None:
    stack = await make_stack()
    await send_and_disconnect(stack, "POST", GC, b"{}", 2, turns)
    await stack.stop()
    stack = await make_stack()
    assert (await stack.call("POST", GC)).status == 202  # the interrupted job is not listed as running
    await stack.stop()
