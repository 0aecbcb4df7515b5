"""Changes of permissions, repositories and storages while the body of an upload is received."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from pkgrepo.auth.login.passwords import Verdict
from tests.support.gems import make_gemspec, pack_gem
from tests.support.http_client import BOUNDARY, form_body
from tests.support.images import make_index
from tests.support.inprocess_server import no_failures, turn
from tests.support.memory_connection import parse_answers
from tests.support.memory_server import OTHER_PASSWORD, ClosingTransport, Stack
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_packages import make_wheel

Change = Callable[[Stack], Awaitable[Any]]
REPOSITORIES = {"py": "python", "node": "npm", "images": "docker", "gems": "ruby", "java": "maven"}
KINDS = ("python", "form", "npm", "blob", "manifest", "gem", "maven")


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    """A server without ports; alice may publish to its repository ``main/py``. A logged failure fails the test."""
    running = Stack(tmp_path)
    await running.start()
    with no_failures():
        for name, format_ in REPOSITORIES.items():
            await running.add_repository(name, format=format_)
        await running.add_user("alice")
        granted = [{"repository": f"main/{name}", "actions": ["read", "write"]} for name in REPOSITORIES]
        await running.ok("PUT", "/users/alice/permissions", {"repositories": granted})
        yield running
        await running.stop()


def upload(kind: str) -> tuple[str, str, str, bytes]:
    """Method, path, media type and body of an upload of this kind, of some 50 KB."""
    filename, data = make_wheel("demo", "1.0", pad=50_000)
    if kind == "python":
        return "PUT", f"/repositories/main/py/packages/demo/1.0/{filename}", "application/octet-stream", data
    if kind == "form":
        form = form_body([(":action", "file_upload"), ("name", "demo"), ("content", filename, data)])
        return "POST", "/repositories/main/py/legacy/", f"multipart/form-data; boundary={BOUNDARY}", form
    if kind == "npm":
        body = make_publish("demo", "1.0.0", tarball=make_tarball("demo", "1.0.0", pad=50_000))
        return "PUT", "/repositories/main/node/demo", "application/json", body
    if kind == "gem":
        gem = pack_gem(make_gemspec("demo", "1.0"), data=make_tarball("demo", "1.0.0", pad=50_000))
        return "POST", "/repositories/main/gems/api/v1/gems", "application/octet-stream", gem
    if kind == "maven":
        path = "/repositories/main/java/com/example/demo/1.0/demo-1.0.jar"
        return "PUT", path, "application/java-archive", data
    if kind == "blob":
        digest = hashlib.sha256(data).hexdigest()
        path = f"/v2/main/images/app/blobs/uploads/?digest=sha256:{digest}"
        return "POST", path, "application/octet-stream", data
    manifest = make_index([], annotations={"padding": "x" * 50_000})
    return "PUT", "/v2/main/images/app/manifests/v1", manifest.media_type, manifest.manifest


async def upload_around(stack: Stack, change: Change, *, who: str, kind: str) -> int:
    """Send an upload, make a change after half of its body, and return the status of the upload."""
    method, path, media_type, data = upload(kind)
    transport = ClosingTransport()
    channel = stack.assembly.site.buildProtocol(None)
    channel.makeConnection(transport)
    head = (
        f"{method} {path} HTTP/1.1",
        "Host: a",
        "Connection: close",
        f"Authorization: {stack.authorization(who)}",
        f"Content-Type: {media_type}",
        f"Content-Length: {len(data)}",
    )
    channel.dataReceived("\r\n".join((*head, "", "")).encode() + data[:40_000])
    await change(stack)
    channel.dataReceived(data[40_000:])
    await transport.closed
    channel.connectionLost(Failure(ConnectionDone()))
    return parse_answers(transport.value())[-1].status


async def switch_off(stack: Stack) -> None:
    for name in REPOSITORIES:
        await stack.ok("PATCH", f"/repository/main%2F{name}", {"active": False})


async def delete(stack: Stack) -> None:
    for name in REPOSITORIES:
        await stack.ok("DELETE", f"/repository/main%2F{name}?confirm={name}")


async def purge(stack: Stack) -> None:
    for name in REPOSITORIES:
        await stack.ok("DELETE", f"/repository/main%2F{name}?confirm={name}&purge=true")


async def purge_and_move_serial(stack: Stack) -> None:
    """Purge; rights, which the purge deletes too, are read again since those of a user have changed."""
    await purge(stack)
    await stack.add_user("bob")


async def switch_user_off(stack: Stack) -> None:
    await stack.ok("PUT", "/users/alice/status", {"active": False})


async def take_grant(stack: Stack) -> None:
    await stack.ok("PUT", "/users/alice/permissions", {"repositories": []})


async def nothing(_stack: Stack) -> None:
    """Change nothing."""


def copies(stack: Stack) -> int:
    return sum(path.is_file() for path in (stack.folder / "data" / "storages" / "main" / "blobs").rglob("*"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "status"),
    [
        (switch_off, {503}),
        (delete, {404}),
        (purge, {404}),
        (purge_and_move_serial, {404}),
        (switch_user_off, {401, 403}),
        (take_grant, {403}),
    ],
)
async def test_an_upload_that_is_no_longer_allowed_is_not_published(
    stack: Stack, change: Change, status: set[int], kind: str
) -> None:
    assert await upload_around(stack, change, who="alice", kind=kind) in status
    assert copies(stack) == 0


async def test_an_upload_to_a_repository_that_is_purged_before_its_caller_is_known_finds_none(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged: Deferred[None] = Deferred()
    passwords = stack.assembly.core.passwords
    verify = passwords.verify

    async def verify_late(stored: str, password: str, **rest: Any) -> Verdict:
        if password == OTHER_PASSWORD:  # alice's
            await purged
        return await verify(stored, password, **rest)

    async def purge_first(stack: Stack) -> None:
        await purge(stack)
        purged.callback(None)

    monkeypatch.setattr(passwords, "verify", verify_late)
    assert await upload_around(stack, purge_first, who="alice", kind="form") == 404


@pytest.mark.parametrize("kind", ["python", "form", "npm", "gem", "maven"])
async def test_an_upload_with_a_token_that_was_revoked_meanwhile_is_not_published(stack: Stack, kind: str) -> None:
    made = await stack.ok("POST", "/user/token", {"name": "ci"}, who="alice")

    async def revoke(_: Stack) -> None:
        await stack.ok("DELETE", f"/user/token/{made['id']}", who="alice")

    assert await upload_around(stack, nothing, who=made["token"], kind=kind) < 300
    assert await upload_around(stack, revoke, who=made["token"], kind=kind) == 401


async def test_a_disabled_storage_accepts_no_uploads(stack: Stack) -> None:
    await stack.ok("PATCH", "/storage/main", {"active": False})
    assert await upload_around(stack, nothing, who="alice", kind="python") == 503
    await stack.ok("PATCH", "/storage/main", {"active": True})
    assert await upload_around(stack, nothing, who="alice", kind="python") == 201


@pytest.mark.parametrize("kind", ["blob", "manifest"])
async def test_a_push_whose_bearer_token_expires_during_the_body_is_accepted(
    stack: Stack, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = "service=pkgrepo&scope=repository:main/images/app:pull,push"
    bearer = (await stack.call("GET", f"/v2/token?{scope}", who="alice")).json["token"]
    early: Any = stack.assembly.site.find_prepared
    authorizer = early._access.authorizer

    async def a_day_passes(stack: Stack) -> None:
        while await stack.assembly.core.catalog.wait_idle():  # its credentials are checked, at the latest then
            await turn()
        monkeypatch.setattr(authorizer, "_clock", lambda: time.time() + 86_400)

    assert await upload_around(stack, a_day_passes, who=bearer, kind=kind) == 201
