"""Changes with If-Match during which another change is committed."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import ensureDeferred

from tests.support.memory_server import Reply, Stack
from tests.support.write_barrier import WriteBarrier

# By resource: the method and path below /api, the bodies of the conditional change and of the concurrent one.
RESOURCES: dict[str, tuple[str, str, Any, Any]] = {
    "repository": ("PATCH", "/repository/main%2Fpy", {"description": "a"}, {"description": "b"}),
    "configuration": (
        "PUT",
        "/repository/main%2Fpy/config",
        {"type": "Hosted", "page": "a"},
        {"type": "Hosted", "page": "b"},
    ),
    "part": ("PUT", "/repository/main%2Fpy/config/policy", {"allow_overwrite": True}, {"strict_filenames": True}),
    "user": ("PATCH", "/users/bob", {"name": "a"}, {"name": "b"}),
    "account": ("PATCH", "/user/me", {"name": "a"}, {"name": "b"}),
    "permissions": (
        "PUT",
        "/users/bob/permissions",
        {"repositories": [{"repository": "main/py", "actions": ["read"]}]},
        {"repositories": [{"repository": "main/py", "actions": ["write"]}]},
    ),
    "token": ("PATCH", "/user/token/{token}", {"name": "a"}, {"name": "b"}),
    "project": ("PATCH", "/project/core", {"description": "a"}, {"description": "b"}),
    "storage": ("PATCH", "/storage/{storage}", {"name": "first"}, {"name": "second"}),
}


@pytest_twisted.async_yield_fixture
async def filled(stack: Stack) -> Any:
    await stack.add_repository("py")
    await stack.add_user("bob")
    await stack.ok("POST", "/project", {"key": "core"})
    yield stack


async def address(stack: Stack, path: str) -> str:
    if "{token}" in path:
        made = await stack.ok("POST", "/user/token", {"name": "t"})
        return path.replace("{token}", made["id"])
    if "{storage}" in path:
        listed = (await stack.ok("GET", "/storage/list"))["items"]
        return path.replace("{storage}", listed[0]["id"])
    return path


async def overtaken(stack: Stack, resource: str, by: tuple[str, str, Any] | None) -> tuple[Reply, Any, Reply]:
    """The answer to a conditional change during which another is committed, and the value after each."""
    method, path, body, other = RESOURCES[resource]
    path = await address(stack, path)
    etag = (await stack.api("GET", path)).headers["etag"]
    gate = WriteBarrier(stack.assembly.core.catalog, of="AuditLog.with_row")
    first = ensureDeferred(stack.api(method, path, body, headers={"If-Match": etag}))
    await gate.arrived
    await stack.ok(*(by or (method, path, other)))
    left = await stack.ok("GET", path)
    gate.open.callback(None)
    return await first, left, await stack.api("GET", path)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_a_conditional_change_fails_after_a_concurrent_change(filled: Stack, resource: str) -> None:
    reply, left, now = await overtaken(filled, resource, None)
    found = now.json
    for each in (left, found):
        each.pop("usage", None)  # of a storage: as the disk has it
    assert (reply.status, found) == (412, left)


@pytest.mark.parametrize("resource", RESOURCES)
async def test_a_conditional_change_succeeds_after_another_record_was_changed(filled: Stack, resource: str) -> None:
    reply, _, now = await overtaken(filled, resource, ("POST", "/users", {"username": "carol"}))
    assert reply.status == 200, reply.body
    assert reply.headers["etag"].partition("-")[0] == now.headers["etag"].partition("-")[0]


async def test_a_conditional_change_gives_up_after_many_concurrent_changes(filled: Stack) -> None:
    catalog: Any = filled.assembly.core.catalog
    write = catalog.write
    busy, numbers = False, count()

    async def overtaking(command: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal busy
        if not busy and "AuditLog.with_row" in command.__qualname__:
            busy = True
            await filled.ok("PATCH", "/users/bob", {"name": f"name {next(numbers)}"})
            busy = False
        return await write(command, *args, **kwargs)

    etag = (await filled.api("GET", "/project/core")).headers["etag"]
    catalog.write = overtaking
    reply = await filled.api("PATCH", "/project/core", {"description": "a"}, headers={"If-Match": etag})
    catalog.write = write
    assert (reply.status, reply.json["detail"][:39]) == (409, "other changes came in between again and")
    assert (await filled.ok("GET", "/project/core"))["description"] == ""
