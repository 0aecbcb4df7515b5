"""Two who publish one version at a time: what was looked up before is asked again in the transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import ensureDeferred

from pkgrepo.storage.catalog.packages import events
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_packages import make_metadata, make_sdist, make_wheel
from tests.support.write_barrier import WriteBarrier


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    """A server without ports, with a repository of each kind."""
    stack = Stack(tmp_path)
    with no_failures():
        await stack.start()
        await stack.add_repository("py")
        await stack.add_repository("node", format="npm")
        yield stack
        await stack.stop()


async def overtaken(stack: Stack, first: tuple[str, str, bytes], *others: tuple[str, str, bytes]) -> Reply:
    """The answer to a request whose transaction waits until others have been answered with a success."""
    gate = WriteBarrier(stack.assembly.core.catalog, of="if_active")
    waiting = ensureDeferred(stack.call(first[0], f"/repositories/main{first[1]}", raw=first[2]))
    await gate.arrived
    for method, path, body in others:
        reply = await stack.call(method, f"/repositories/main{path}", raw=body)
        assert reply.status < 300, reply.body
    gate.open.callback(None)
    return await waiting


def node(text: str, **fields: Any) -> tuple[str, str, bytes]:
    """A publish of the same tarball whatever is said beside it."""
    return "PUT", "/node/x", make_publish("x", text, tarball=make_tarball("x", "1.0.0"), **fields)


async def test_of_two_who_publish_the_same_tarball_one_succeeds(stack: Stack) -> None:
    reply = await overtaken(stack, node("1.0.0", keywords=["first"]), node("1.0.0", keywords=["second"]))
    assert reply.status == 403
    assert reply.json["error"] == "You cannot publish over the previously published versions: 1.0.0."
    document = (await stack.call("GET", "/repositories/main/node/x")).json
    assert document["versions"]["1.0.0"]["keywords"] == ["second"]


async def test_what_was_unpublished_meanwhile_does_not_come_back(stack: Stack) -> None:
    await stack.call("PUT", "/repositories/main/node/x", raw=make_publish("x", "2.0.0"))

    async def unpublish() -> None:
        rev = (await stack.call("GET", "/repositories/main/node/x")).json["_rev"]
        gone = await stack.call("DELETE", f"/repositories/main/node/x/-/x-1.0.0.tgz/-rev/{rev}")
        assert gone.status == 200

    gate = WriteBarrier(stack.assembly.core.catalog, of="if_active")
    waiting = ensureDeferred(stack.call("PUT", "/repositories/main/node/x", raw=node("1.0.0")[2]))
    await gate.arrived
    assert (await stack.call("PUT", "/repositories/main/node/x", raw=node("1.0.0")[2])).status == 201
    await unpublish()
    gate.open.callback(None)
    assert (await waiting).status == 403
    assert list((await stack.call("GET", "/repositories/main/node/x")).json["versions"]) == ["2.0.0"]


@pytest.mark.parametrize("path", ["/node/x", "/py/demo/1.0/demo-1.0.tar.gz"])
async def test_a_repository_that_was_switched_off_meanwhile_takes_nothing(stack: Stack, path: str) -> None:
    body = node("1.0.0")[2] if "node" in path else make_sdist("demo", "1.0")[1]
    repository = path.split("/")[1]
    gate = WriteBarrier(stack.assembly.core.catalog, of="if_active")
    waiting = ensureDeferred(stack.call("PUT", f"/repositories/main{path}", raw=body))
    await gate.arrived
    await stack.ok("PATCH", f"/repository/main%2F{repository}", {"active": False})
    gate.open.callback(None)
    reply = await waiting
    assert (reply.status, b"is not active" in reply.body) == (503, True)
    assert (await stack.ok("GET", f"/repository/main%2F{repository}"))["package_count"] == 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/py/pypi/demo/1.0/yank", b'{"reason":"x"}'),
        ("DELETE", "/py/pypi/demo/1.0/", b""),
        ("PUT", "/py/pypi/demo/status", b'{"status":"archived"}'),
        ("PUT", "/node/x", b'{"_id":"x","versions":{"1.0.0":{"deprecated":"y"}}}'),
        ("PUT", "/node/-/package/x/dist-tags/next", b'"1.0.0"'),
        ("DELETE", "/node/x/-/x-1.0.0.tgz/-rev/{rev}", b""),
    ],
)
async def test_a_repository_that_was_switched_off_meanwhile_is_not_changed(
    stack: Stack, method: str, path: str, body: bytes
) -> None:
    await stack.publish("main/py", "demo", "1.0")
    assert (await stack.call("PUT", "/repositories/main/node/x", raw=node("1.0.0")[2])).status == 201
    rev = (await stack.call("GET", "/repositories/main/node/x")).json["_rev"]
    repository = path.split("/")[1]
    gate = WriteBarrier(stack.assembly.core.catalog, of="if_active")
    path = f"/repositories/main{path.replace('{rev}', rev)}"
    waiting = ensureDeferred(stack.call(method, path, raw=body, headers={"Content-Type": "application/json"}))
    await gate.arrived
    before = (await stack.ok("PATCH", f"/repository/main%2F{repository}", {"active": False}))["updated_at"]
    gate.open.callback(None)
    reply = await waiting
    assert (reply.status, b"is not active" in reply.body) == (503, True)
    assert (await stack.ok("GET", f"/repository/main%2F{repository}"))["updated_at"] == before
    told = stack.assembly.core.catalog.peek(events.events_after, 0, 100)
    assert [each.kind for each in told if each.package_key] == ["published", "published"]


async def test_a_release_that_somebody_else_spells_otherwise_meanwhile_is_refused(stack: Stack) -> None:
    filename, data = make_wheel("demo", "1.0", metadata=make_metadata("demo", "v1.0"))
    other, more = make_sdist("demo", "1.0")
    first = ("PUT", f"/py/demo/1.0/{filename}", data)
    second = ("PUT", f"/py/demo/1.0/{other}", more)
    reply = await overtaken(stack, first, second)
    assert reply.status == 400
    assert b"was published as 1.0 a moment ago" in reply.body
    assert (await stack.call(first[0], f"/repositories/main{first[1]}", raw=first[2])).status == 201
    found = await stack.call("GET", f"/repositories/main/py/packages/{filename}")
    assert (found.status, found.body) == (200, data)


async def test_a_second_source_distribution_meanwhile_is_refused(stack: Stack) -> None:
    first, data = make_sdist("demo", "1.0")
    second, more = make_sdist("demo", "1.0", ending=".zip")
    reply = await overtaken(stack, ("PUT", f"/py/demo/1.0/{first}", data), ("PUT", f"/py/demo/1.0/{second}", more))
    assert (reply.status, b"only one source distribution" in reply.body) == (400, True)


async def test_other_bytes_under_one_name_meanwhile_are_refused(stack: Stack) -> None:
    filename, data = make_wheel("demo", "1.0")
    _, other = make_wheel("demo", "1.0", pad=10)
    path = f"/py/demo/1.0/{filename}"
    reply = await overtaken(stack, ("PUT", path, data), ("PUT", path, other))
    assert (reply.status, reply.body[:19]) == (400, b"File already exists")
    assert (await stack.call("GET", f"/repositories/main/py/packages/{filename}")).body == other


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/node/x/-rev/{rev}", b'{"_id":"x","versions":{}}'),
        ("/node/x/-rev/{rev}", b'{"_id":"x","maintainers":[{"name":"bob","email":""}]}'),
        ("/node/x/-rev/{rev}", None),
        ("/node/x/-/x-1.0.0.tgz/-rev/{rev}", None),
    ],
)
async def test_a_change_of_a_revision_that_was_overtaken_changes_nothing(
    stack: Stack, path: str, body: bytes | None
) -> None:
    assert (await stack.call("PUT", "/repositories/main/node/x", raw=node("1.0.0")[2])).status == 201
    rev = (await stack.call("GET", "/repositories/main/node/x")).json["_rev"]
    first = ("DELETE" if body is None else "PUT", path.replace("{rev}", rev), body or b"")
    reply = await overtaken(stack, first, ("PUT", "/node/x", make_publish("x", "1.1.0")))
    assert reply.status == 409
    document = (await stack.call("GET", "/repositories/main/node/x")).json
    assert (sorted(document["versions"]), document["maintainers"][0]["name"]) == (["1.0.0", "1.1.0"], "admin")
