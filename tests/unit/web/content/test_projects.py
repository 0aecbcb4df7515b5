"""Projects in the console: members, names, and whose a name is."""

from __future__ import annotations

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD

HOSTILE = "\"><script>alert(1)</script>\u202e'"
PAGE = "/ui/projects/core"


async def test_a_project_is_made_given_members_and_names_and_deleted(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.add_user("ada")
    await browser.log_in()
    page = await browser.get("/ui/projects")
    assert "There is no project yet" in page.text
    page = await browser.send(page, "/ui/projects", key="Core!", visibility="private")
    assert (page.status, 'role="alert"' in page.html) == (422, True)
    page = await browser.send(page, "/ui/projects", key="core", name=HOSTILE, description=HOSTILE, visibility="private")
    assert "<script>alert" not in page.html
    page = await browser.send(page, f"{PAGE}/members", kind="user", name="ada", role="developer")
    assert "ada developer" in page.text
    page = await browser.send(page, f"{PAGE}/members", kind="group", name="none", role="guest")
    assert (page.status, "There is no group" in page.text) == (422, True)
    page = await browser.send(page, f"{PAGE}/names", repository="main/py", pattern="demo-*")
    assert "demo-*" in page.text
    page = await browser.get("/ui/projects?repository=main/py&package=demo-x")
    assert "belongs to core" in page.text
    page = await browser.get("/ui/projects?repository=main/py&package=other")
    assert "belongs to no project" in page.text
    page = await browser.get(PAGE)
    page = await browser.send(page, f"{PAGE}/names/remove", repository="main/py", pattern="demo-*")
    assert "demo-*" not in page.text
    page = await browser.send(page, PAGE, name="The core", description="", visibility="public")
    assert "The core" in page.text
    page = await browser.send(page, f"{PAGE}/delete", confirm="cor")
    assert (page.status, "Type core to confirm" in page.text) == (422, True)
    page = await browser.send(page, f"{PAGE}/delete", confirm="core")
    assert "There is no project yet" in page.text


async def test_members_see_the_project_and_others_do_not(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    await browser.stack.add_user("bob")
    await browser.stack.ok("POST", "/project", {"key": "core"})
    await browser.stack.ok("POST", "/project/core/members", {"user": "ada", "role": "reporter"})
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get(PAGE)
    assert ("ada reporter" in page.text, f"{PAGE}/names" in page.forms) == (True, False)
    page = await browser.send(page, f"{PAGE}/members", name="bob", role="owner")
    assert (page.status, "This needs the role owner" in page.text) == (422, True)
    other = Browser(browser.stack)
    await other.log_in("bob", OTHER_PASSWORD)
    assert (await other.raw("GET", PAGE)).status == 404
    assert "no project that you may see" in (await other.get("/ui/projects")).text
