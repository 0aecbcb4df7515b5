"""Packages of a virtual repository are those of its members, each name once, with the member that has it."""

from __future__ import annotations

import pytest
import pytest_twisted

from pkgrepo.management.packages import merged
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish

from .conftest import Mirror

pytestmark = pytest.mark.server

HELD = {"first": ("b", "d", "f"), "second": ("a", "b", "c", "d", "e"), "third": ("a", "g")}
MEMBERS = {"a": "second", "b": "first", "c": "second", "d": "first", "e": "second", "f": "first", "g": "third"}


@pytest_twisted.async_fixture
async def filled(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setattr(merged, "LEAST", 2)  # so that members are read in several turns
    for name, packages in HELD.items():
        visibility = "private" if name == "third" else "public"
        await stack.add_repository(name, format="npm", config={"type": "Hosted"}, visibility=visibility)
        for each in packages:
            path = f"/repositories/main/{name}/{each}"
            reply = await stack.call(
                "PUT", path, raw=make_publish(each, "1.0.0"), headers={"Content-Type": "application/json"}
            )
            assert reply.status == 201, reply.body
    inner = {"type": "Virtual", "members": ["main/second", "main/third"]}
    await stack.add_repository("inner", format="npm", config=inner, visibility="public")
    config = {"type": "Virtual", "members": ["main/first", "main/inner"]}
    await stack.add_repository("all", format="npm", config=config, visibility="public")
    return stack


async def pages(stack: Stack, query: str, who: str | None = "admin") -> list[tuple[str, str]]:
    """The names and members of all pages, each of which is read by the cursor of the one before."""
    found, cursor = [], ""
    while cursor is not None:
        reply = await stack.api(
            "GET", f"/repository/main%2Fall/packages?{query}{cursor and '&cursor='}{cursor}", who=who
        )
        assert reply.status == 200, reply.body
        found += [(each["name"], each["member"].removeprefix("main/")) for each in reply.json["items"]]
        cursor = reply.json["next"]
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("order", ["name", "-name"])
async def test_each_name_is_that_of_the_first_member(filled: Stack, limit: int, order: str) -> None:
    found = await pages(filled, f"limit={limit}&sort={order}")
    assert found == sorted(MEMBERS.items(), reverse=order.startswith("-"))


@pytest.mark.parametrize("order", ["updated_at", "-updated_at", "downloads", "-downloads"])
async def test_other_orders_have_each_name_once_too(filled: Stack, order: str) -> None:
    assert sorted(await pages(filled, f"limit=2&sort={order}")) == sorted(MEMBERS.items())


async def test_members_that_the_caller_may_not_read_are_left_out(filled: Stack) -> None:
    expected = [each for each in sorted(MEMBERS.items()) if each[1] != "third"]
    assert await pages(filled, "limit=50", who=None) == expected
    assert (await filled.api("GET", "/package/main%2Fall/g", who=None)).status == 404
    assert await pages(filled, "q=g") == [("g", "third")]


async def test_a_hidden_member_is_named_to_those_alone_who_edit_it(filled: Stack) -> None:
    await filled.ok("PATCH", "/repository/main%2Fthird", {"visibility": "hidden"})
    assert ("g", "third") not in await pages(filled, "limit=50", who=None)
    assert (await filled.api("GET", "/package/main%2Fall/g", who=None)).status == 404
    assert ("g", "third") in await pages(filled, "limit=50")


async def test_a_package_is_shown_with_its_member(filled: Stack) -> None:
    shown = await filled.ok("GET", "/package/main%2Fall/b")
    assert (shown["name"], shown["member"], shown["versions"]) == ("b", "main/first", 1)
    assert (await filled.api("GET", "/package/main%2Fall/none")).status == 404
    page = await filled.call("GET", "/ui/repositories/main/all/packages/b")
    assert (page.status, page.headers["location"].endswith("/ui/repositories/main/first/packages/b")) == (303, True)


async def test_numbered_pages_are_refused(filled: Stack) -> None:
    reply = await filled.api("GET", "/repository/main%2Fall/packages?page=2")
    assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, "page")


async def test_a_version_is_shown_as_its_member_has_it(filled: Stack) -> None:
    [listed] = (await filled.ok("GET", "/package/main%2Fall/a/versions"))["items"]
    shown = await filled.ok("GET", "/package/main%2Fall/a/versions/1.0.0")
    assert (listed["version"], shown["version"], shown["refused"]) == ("1.0.0", "1.0.0", None)
    assert "/repositories/main/second/a/-/" in shown["files"][0]["url"]
    for path in ("a/versions/2.0.0", "none/versions", "none/versions/1.0.0"):
        assert (await filled.api("GET", f"/package/main%2Fall/{path}")).status == 404


async def test_what_a_proxy_keeps_of_a_name_that_is_published_here_is_in_no_list(mirror: Mirror) -> None:
    stack = mirror.stack
    mirror.upstream.add("left", "9.0.0")
    await mirror.create()
    await mirror.install("left", "9.0.0")
    await stack.add_repository("own", format="npm", config={"type": "Hosted"})
    config = {"type": "Virtual", "members": ["main/mirror", "main/own"]}
    await stack.add_repository("all", format="npm", config=config)

    async def listed() -> list[tuple[str, str]]:
        found = await stack.ok("GET", "/repository/main%2Fall/releases")
        return [(each["package"], each["version"]) for each in found]

    assert await listed() == [("left", "9.0.0")]
    raw, headers = make_publish("left", "1.0.0"), {"Content-Type": "application/json"}
    assert (await stack.call("PUT", "/repositories/main/own/left", raw=raw, headers=headers)).status == 201
    assert await listed() == [("left", "1.0.0")]
    assert (await stack.ok("GET", "/package/main%2Fall/left"))["member"] == "main/own"
    assert (await stack.api("GET", "/package/main%2Fall/left/versions/9.0.0")).status == 404
