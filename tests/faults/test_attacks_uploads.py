"""What changes under an upload while its body is on the way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from tests.support.http import parse_answers
from tests.support.management import ClosingTransport, Stack
from tests.support.pyprojects import make_wheel
from tests.support.server import no_failures
from tests.support.wire import BOUNDARY, form_body

Change = Callable[[Stack], Awaitable[Any]]
REPOSITORY = "/repository/main%2Fpy"


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    """A server without ports with the repository ``main/py``, to which alice may publish; nothing may fail."""
    running = Stack(tmp_path)
    await running.start()
    with no_failures():
        await running.add_repository()
        await running.add_user("alice")
        await running.grant("alice", "main/py", "read", "write")
        yield running
        await running.stop()


async def upload_around(stack: Stack, change: Change, *, who: str, form: bool) -> int:
    """The status of an upload in the middle of whose body something is changed."""
    filename, data = make_wheel("demo", "1.0", pad=50_000)
    method, path, kind = "PUT", f"/packages/demo/1.0/{filename}", "application/octet-stream"
    if form:
        method, path = "POST", "/legacy/"
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        data = form_body([(":action", "file_upload"), ("name", "demo"), ("content", filename, data)])
    transport = ClosingTransport()
    channel = stack.assembly.site.buildProtocol(None)
    channel.makeConnection(transport)
    head = (
        f"{method} /repositories/main/py{path} HTTP/1.1",
        "Host: a",
        "Connection: close",
        f"Authorization: {stack.authorization(who)}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(data)}",
    )
    channel.dataReceived("\r\n".join((*head, "", "")).encode() + data[:40_000])
    await change(stack)
    channel.dataReceived(data[40_000:])
    await transport.closed
    channel.connectionLost(Failure(ConnectionDone()))
    return parse_answers(transport.value())[-1].status


async def switch_off(stack: Stack) -> None:
    await stack.ok("PATCH", REPOSITORY, {"active": False})


async def delete(stack: Stack) -> None:
    await stack.ok("DELETE", f"{REPOSITORY}?confirm=py")


async def purge(stack: Stack) -> None:
    await stack.ok("DELETE", f"{REPOSITORY}?confirm=py&purge=true")


async def switch_user_off(stack: Stack) -> None:
    await stack.ok("PUT", "/users/alice/status", {"active": False})


async def take_grant(stack: Stack) -> None:
    await stack.ok("PUT", "/users/alice/permissions", {"repositories": []})


async def nothing(_stack: Stack) -> None:
    """Change nothing."""


def copies(stack: Stack) -> int:
    return sum(path.is_file() for path in (stack.folder / "data" / "storages" / "main" / "blobs").rglob("*"))


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize(
    ("change", "status"),
    [(switch_off, {503}), (delete, {404}), (purge, {404}), (switch_user_off, {401, 403}), (take_grant, {403})],
)
@pytest_twisted.ensureDeferred
async def test_nothing_is_published_where_it_must_not_be_any_more(
    stack: Stack, change: Change, status: set[int], form: bool
) -> None:
    assert await upload_around(stack, change, who="alice", form=form) in status
    assert copies(stack) == 0


@pytest.mark.parametrize("form", [False, True])
@pytest_twisted.ensureDeferred
async def test_nothing_is_published_with_a_token_that_was_revoked_meanwhile(stack: Stack, form: bool) -> None:
    made = await stack.ok("POST", "/user/token", {"name": "ci"}, who="alice")

    async def revoke(_: Stack) -> None:
        await stack.ok("DELETE", f"/user/token/{made['id']}", who="alice")

    assert await upload_around(stack, nothing, who=made["token"], form=form) < 300
    assert await upload_around(stack, revoke, who=made["token"], form=form) == 401


@pytest_twisted.ensureDeferred
async def test_a_storage_that_is_switched_off_takes_no_uploads(stack: Stack) -> None:
    await stack.ok("PATCH", "/storage/main", {"active": False})
    assert await upload_around(stack, nothing, who="alice", form=False) == 503
    await stack.ok("PATCH", "/storage/main", {"active": True})
    assert await upload_around(stack, nothing, who="alice", form=False) == 201
