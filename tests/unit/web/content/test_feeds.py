"""Badges and feeds: what they say, to whom, and that texts of packages cannot break them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest

from tests.support.browser import Browser
from tests.support.images import Registry, make_image
from tests.support.memory_server import OTHER_PASSWORD
from tests.support.npm_packages import make_publish

ATOM = "{http://www.w3.org/2005/Atom}"


def entries(reply: Any) -> list[str]:
    """The titles of the entries of a feed."""
    assert reply.headers["content-type"].startswith("application/atom+xml")
    return [each.findtext(f"{ATOM}title") or "" for each in ET.fromstring(reply.body).iter(f"{ATOM}entry")]


async def test_a_badge_shows_the_latest_version(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    await stack.publish("main/py", "demo", "1.10")
    reply = await stack.call("GET", "/badge/main/py/demo.svg", who=None)
    assert (reply.status, reply.headers["cache-control"]) == (200, "public, max-age=300")
    assert ">v1.10<" in reply.body.decode()
    etag = {"If-None-Match": reply.headers["etag"]}
    assert (await stack.call("GET", "/badge/main/py/demo.svg", who=None, headers=etag)).status == 304
    hostile = quote('"><script>alert(1)</script>')
    reply = await stack.call("GET", f"/badge/main/py/demo.svg?label={hostile}&color={hostile}", who=None)
    assert "script" not in {each.tag.rpartition("}")[2] for each in ET.fromstring(reply.body).iter()}


async def test_absent_and_forbidden_are_alike(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py", visibility="private")
    await stack.publish("main/py", "demo", "1.0")
    await stack.add_user("ada")
    for who in (None, "ada"):
        paths = ("main/py/demo.svg", "main/none/demo.svg", "main/py/none.svg", "main/py/demo.png", "x/y/z.svg")
        replies = [await stack.call("GET", f"/badge/{path}", who=who) for path in paths]
        assert {(each.status, each.body, each.headers["cache-control"]) for each in replies} == {
            (404, replies[0].body, "private, no-cache")
        }
        feeds = [await stack.call("GET", f"/feed/main/{name}/demo.atom", who=who) for name in ("py", "no")]
        assert {each.status for each in feeds} == {401 if who is None else 404}
    assert (await stack.call("GET", "/feed/main/py.atom", who=None)).headers["www-authenticate"].startswith("Basic")
    await browser.log_in()
    assert ">v1.0<" in (await browser.raw("GET", "/badge/main/py/demo.svg")).body.decode()
    assert (await stack.call("GET", "/badge/main/py/demo.svg")).headers["cache-control"] == "private, no-cache"


async def test_feeds_have_the_versions_that_came_last(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    assert entries(await stack.call("GET", "/feed/main/py.atom", who=None)) == []
    for version in ("1.0", "2.0", "1.1"):
        await stack.publish("main/py", "demo", version)
    await stack.publish("main/py", "demo", "1.1", sdist=True)
    await stack.publish("main/py", "other", "1")
    reply = await stack.call("GET", "/feed/main/py.atom", who=None)
    assert entries(reply) == ["other 1", "demo 1.1", "demo 2.0", "demo 1.0"]
    links = [each.get("href") for each in ET.fromstring(reply.body).iter(f"{ATOM}link")]
    assert links[-1] == "http://registry.example/ui/repositories/main/py/packages/demo/versions/1.0"
    unchanged = {"If-None-Match": reply.headers["etag"]}
    assert (await stack.call("GET", "/feed/main/py.atom", who=None, headers=unchanged)).status == 304
    reply = await stack.call("GET", "/feed/main/py/demo.atom", who=None)
    assert sorted(entries(reply)) == ["demo 1.0", "demo 1.1", "demo 2.0"]
    for path in ("/feed/main/py", "/feed/main/py/demo", "/feed/main/py/none.atom", "/feed/x"):
        assert (await stack.call("GET", path)).status == 404
    assert (await stack.call("POST", "/feed/main/py.atom")).status == 405


async def test_badges_and_feeds_name_nothing_that_rules_refuse(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    for version in ("1.0", "2.0", "1.1"):
        await stack.publish("main/py", "demo", version)
    body = {"repository": "main/py", "package": "demo", "versions": ">=1.1", "reason": "malware"}
    await stack.ok("POST", "/policy/blocks", body)
    assert ">v1.0<" in (await stack.call("GET", "/badge/main/py/demo.svg", who=None)).body.decode()
    for path in ("py", "py/demo"):
        assert entries(await stack.call("GET", f"/feed/main/{path}.atom", who=None)) == ["demo 1.0"]
    await stack.ok("POST", "/policy/blocks", {**body, "versions": ""})
    assert ">no version<" in (await stack.call("GET", "/badge/main/py/demo.svg", who=None)).body.decode()


async def test_a_private_repository_has_feeds_for_its_readers(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py", visibility="private")
    await stack.publish("main/py", "demo", "1.0")
    await stack.publish("main/py", "other", "1.0")
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read")
    assert entries(await stack.call("GET", "/feed/main/py.atom", who="ada")) == ["other 1.0", "demo 1.0"]
    assert (await stack.call("GET", "/feed/main/py.atom", who=None)).status == 401
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get("/ui/repositories/main/py/packages/demo")
    assert "/feed/main/py/demo.atom" in page.links
    assert "og:title" not in page.html  # nothing of a private package is for other sites


async def join(browser: Browser, *members: str, **fields: Any) -> None:
    """Add the virtual repository ``all``."""
    config = {"type": "Virtual", "members": [f"main/{each}" for each in members]}
    await browser.stack.add_repository("all", config=config, **fields)


async def badge(browser: Browser, package: str = "demo", who: str | None = None) -> str:
    """What the badge of a package in ``all`` says."""
    reply = await browser.stack.call("GET", f"/badge/main/all/{package}.svg", who=who)
    return [each.text or "" for each in ET.fromstring(reply.body).iter() if each.tag.endswith("text")][-1]


async def test_a_virtual_repository_has_the_feeds_and_badges_of_its_members(browser: Browser) -> None:
    stack = browser.stack
    for name, packages in (("first", ("demo", "one")), ("second", ("demo", "two"))):
        await stack.add_repository(name)
        for each in packages:
            await stack.publish(f"main/{name}", each, "1.0" if name == "first" else "2.0")
    await stack.publish("main/first", "demo", "1.1")
    await join(browser, "first", "second")
    reply = await stack.call("GET", "/feed/main/all.atom", who=None)
    assert entries(reply) == ["demo 1.1", "two 2.0", "one 1.0", "demo 1.0"]  # of each package those of the first member
    assert reply.headers["cache-control"] == "public, max-age=300"
    assert sorted(entries(await stack.call("GET", "/feed/main/all/demo.atom", who=None))) == ["demo 1.0", "demo 1.1"]
    assert [await badge(browser, each) for each in ("demo", "two", "none")] == ["v1.1", "v2.0", "unknown"]
    assert len(await stack.ok("GET", "/repository/main%2Fall/releases?limit=2")) == 2
    links = [each.get("href") or "" for each in ET.fromstring(reply.body).iter(f"{ATOM}link")]
    place = "/ui/repositories/main/%s/packages/demo/versions%s"
    assert links[-1].endswith(place % ("all", "/1.0"))
    for path in ("/1.0", ""):
        page = await stack.call("GET", place % ("all", path))
        assert (page.status, page.headers["location"].endswith(place % ("first", path))) == (303, True)


async def test_feeds_of_a_virtual_repository_have_the_members_that_lists_show(browser: Browser) -> None:
    stack = browser.stack
    for name, visibility in (("open", "public"), ("closed", "private"), ("secret", "hidden"), ("off", "public")):
        await stack.add_repository(name, visibility=visibility)
        await stack.publish(f"main/{name}", f"of-{name}", "1.0")
    await stack.ok("PATCH", "/repository/main%2Foff", {"active": False})
    await join(browser, "open", "closed", "secret", "off")
    await stack.add_user("ada")
    await stack.grant("ada", "main/closed", "read")
    for who, shown in ((None, ["open"]), ("ada", ["open", "closed"]), ("admin", ["open", "closed", "secret"])):
        reply = await stack.call("GET", "/feed/main/all.atom", who=who)
        assert sorted(entries(reply)) == sorted(f"of-{each} 1.0" for each in shown)
        assert (reply.headers["cache-control"] == "public, max-age=300") == (who is None)  # others get another one
        for each in ("open", "closed", "secret", "off"):
            assert await badge(browser, f"of-{each}", who) == ("v1.0" if each in shown else "unknown")
            feed = await stack.call("GET", f"/feed/main/all/of-{each}.atom", who=who)
            assert feed.status == (200 if each in shown else 404)


@pytest.mark.parametrize("where", ["all", "py"])
@pytest.mark.parametrize("action", ["block", "quarantine"])
async def test_feeds_of_a_virtual_repository_name_nothing_that_rules_refuse(
    browser: Browser, where: str, action: str
) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await join(browser, "py")
    for version in ("1.0", "2.0"):
        await stack.publish("main/py", "demo", version)
    rule = {"name": "no", "action": action, "match": {"packages": ["demo"], "versions": ">=2.0"}}
    await stack.ok("PUT", f"/repository/main%2F{where}/config/policy", {"rules": [rule]})
    for path in ("all", "all/demo"):
        assert entries(await stack.call("GET", f"/feed/main/{path}.atom", who=None)) == ["demo 1.0"]
    assert await badge(browser) == "v1.0"
    whose = (await stack.ok("GET", "/package/main%2Fall/demo/versions/2.0", who=None))["refused"]
    assert ("a member of main/all" in whose) == (where == "py" or action == "quarantine"), whose
    shown = await stack.ok("GET", "/package/main%2Fpy/demo/versions/2.0", who=None)
    assert (shown["refused"] is None) == (where == "all")


@pytest.mark.parametrize("where", ["all", "images"])
async def test_images_of_members_are_in_feeds_unless_rules_refuse_them(browser: Browser, where: str) -> None:
    stack = browser.stack
    await stack.add_repository("images", format="docker")
    await join(browser, "images", format="docker")
    for tag in ("v1", "v2"):
        await Registry(stack).push(make_image(tag), tag)
    assert sorted(entries(await stack.call("GET", "/feed/main/all/app.atom", who=None))) == ["app v1", "app v2"]
    body = {"repository": f"main/{where}", "package": "app", "versions": "v2", "reason": "malware"}
    await stack.ok("POST", "/policy/blocks", body)
    for path in ("all", "all/app"):
        assert entries(await stack.call("GET", f"/feed/main/{path}.atom", who=None)) == ["app v1"]
    assert await badge(browser, "app") == "v1"
    assert "of main/all" in (await stack.ok("GET", "/package/main%2Fall/app/versions/v2"))["refused"]


async def test_what_is_staged_is_in_the_feed_of_the_stage_alone(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    await join(browser, "py")
    stage = await stack.ok("POST", "/repository/main%2Fpy/stages", {"description": "next"})
    name = stage["url"].rpartition("/")[2]
    await stack.publish(f"main/{name}", "later", "1.0")
    assert entries(await stack.call("GET", "/feed/main/all.atom")) == ["demo 1.0"]
    assert entries(await stack.call("GET", f"/feed/main/{name}.atom")) == ["later 1.0", "demo 1.0"]
    assert (await stack.call("GET", f"/feed/main/{name}.atom", who=None)).status in (401, 404)


@pytest.mark.parametrize("name", ["app", "@acme/app"])
async def test_names_with_slashes_have_badges_and_feeds(browser: Browser, name: str) -> None:
    stack = browser.stack
    await stack.add_repository("js", format="npm")
    document = make_publish(name, "1.0.0")
    reply = await stack.call("PUT", f"/repositories/main/js/{quote(name, safe='@')}", raw=document)
    assert reply.status == 201, reply.body
    for path in (name, quote(name, safe="")):
        assert b">v1.0.0<" in (await stack.call("GET", f"/badge/main/js/{path}.svg", who=None)).body
        assert entries(await stack.call("GET", f"/feed/main/js/{path}.atom", who=None)) == [f"{name} 1.0.0"]
    page = await browser.get(f"/ui/repositories/main/js/packages/{quote(name, safe='')}")
    assert f'<meta property="og:title" content="{name} 1.0.0">' in page.html
