"""Account and administration: what the forms change."""

from __future__ import annotations

import re

import pytest_twisted

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD, PASSWORD


@pytest_twisted.ensureDeferred
async def test_a_token_is_made_with_a_reach_shown_once_and_revoked(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.log_in()
    page = await browser.get("/ui/account/tokens")
    page = await browser.send(page, "/ui/account/tokens", name="ci", reach="write", repositories="main/py", days="30")
    [token] = re.findall(r"pkgr_p_\w{46}", page.text)
    await browser.stack.call("GET", "/repositories/main/py/simple/", who=token)
    page = await browser.get("/ui/account/tokens")
    assert token not in page.html
    assert "main/py: read, write" in page.text
    page = await browser.send(page, "/ui/account/tokens/revoke")
    assert "revoked" in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who=token)).status == 401
    page = await browser.send(page, "/ui/account/tokens", name="", reach="read")
    assert (page.status, "name" in page.text) == (422, True)


@pytest_twisted.ensureDeferred
async def test_profile_password_and_logins_are_changed(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    other = Browser(browser.stack)
    await other.log_in("ada", OTHER_PASSWORD)
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get("/ui/account")
    page = await browser.send(page, "/ui/account", name="Ada L.", email="ada@x.example")
    assert "Ada L." in page.html
    page = await browser.send(page, "/ui/account/sessions", id="")
    assert "Log in" in (await other.get("/ui/")).text
    form = {"old": OTHER_PASSWORD, "new": PASSWORD, "repeated": PASSWORD + "x"}
    page = await browser.send(page, "/ui/account/password", **form)
    assert "The two new passwords differ." in page.text
    page = await browser.send(page, "/ui/account/password", **form | {"repeated": PASSWORD})
    page = await browser.send(page, "/ui/login", username="ada", password=PASSWORD)
    assert "Ada L." in page.html


@pytest_twisted.ensureDeferred
async def test_a_repository_is_made_changed_and_deleted(browser: Browser) -> None:
    await browser.log_in()
    page = await browser.get("/ui/admin/repositories/new")
    new = {"name": "py", "format": "python", "type": "Hosted", "storage": "main", "visibility": "public"}
    page = await browser.send(page, "/ui/admin/repositories/new", **new, config="{")
    assert (page.status, "not JSON" in page.text) == (422, True)
    page = await browser.send(page, "/ui/admin/repositories/new", **new, config="")
    assert "pip install" in page.text
    settings = "/ui/repositories/main/py/settings"
    page = await browser.get(settings)
    page = await browser.send(page, settings, visibility="private", description="Ours", config='{"type": "Proxy"}')
    assert page.status == 422
    page = await browser.get(settings)
    text = re.search(r"<textarea[^>]*name=\"config\"[^>]*>(.*?)</textarea>", page.html, re.S)
    assert text is not None
    config = text[1].replace("&#34;", '"')
    page = await browser.send(page, settings, visibility="private", description="Ours", active="1", config=config)
    assert (page.status, "Ours" in page.text, "private" in page.text) == (200, True, True)
    page = await browser.send(page, f"{settings}/delete", confirm="wrong")
    assert page.status == 422
    page = await browser.send(page, f"{settings}/delete", confirm="py")
    assert "There is no repository yet" in page.text


@pytest_twisted.ensureDeferred
async def test_proxies_and_virtual_repositories_are_made_from_their_fields(browser: Browser) -> None:
    await browser.stack.add_repository("own", format="npm")
    await browser.log_in()
    new = {"format": "npm", "storage": "main", "visibility": "public", "config": ""}
    page = await browser.get("/ui/admin/repositories/new")
    page = await browser.send(
        page, "/ui/admin/repositories/new", **new, name="far", type="Proxy", upstream="https://registry.invalid/"
    )
    page = await browser.get("/ui/repositories/main/far/upstreams")
    assert "https://registry.invalid" in page.text
    page = await browser.get("/ui/admin/repositories/new")
    page = await browser.send(
        page, "/ui/admin/repositories/new", **new, name="all", type="Virtual", members="main/own\nmain/far\n"
    )
    assert "Virtual" in page.text


@pytest_twisted.ensureDeferred
async def test_a_user_gets_grants_and_the_audit_log_says_so(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.log_in()
    page = await browser.get("/ui/admin/users")
    page = await browser.send(page, "/ui/admin/users", username="bob", password=OTHER_PASSWORD)
    [path] = [action for action in page.forms if re.fullmatch(r"/ui/admin/users/[\w-]{36}", action)]
    page = await browser.send(page, f"{path}/grants", **{"new": "main/py", "new actions": ["read", "write"]})
    assert "main/py" in page.text
    browser.stack.set_password("bob", OTHER_PASSWORD)
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="bob")).status == 200
    page = await browser.send(page, f"{path}/grants", **{"repository": "main/py", "drop main/py": "1"})
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="bob")).status != 200
    page = await browser.send(page, path, name="Bob", active="")
    assert (await browser.stack.call("GET", "/api/user/whoami", who="bob")).status == 401
    assert "user.create" in (await browser.get("/ui/admin/audit?actor=admin")).text
    page = await browser.send(page, f"{path}/delete")
    assert "bob" not in page.text


@pytest_twisted.ensureDeferred
async def test_administration_is_closed_to_others(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    paths = ("/ui/admin", "/ui/admin/users", "/ui/admin/audit", "/ui/admin/repositories/new")
    assert [(await browser.raw("GET", path)).status for path in paths] == [303] * 4
    await browser.log_in("ada", OTHER_PASSWORD)
    assert [(await browser.raw("GET", path)).status for path in paths] == [403] * 4


@pytest_twisted.ensureDeferred
async def test_a_cell_of_the_matrix_is_changed_and_removed(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    ada = await browser.stack.add_user("ada")
    await browser.log_in()
    page = await browser.get("/ui/admin/grants?q=ada&repositories=py")
    [link] = [each for each in page.links if "user=" in each]
    cell = f"/ui/admin/grants{link}"
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", actions=["read", "write"])
    assert "read write" in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="ada")).status == 200
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", actions=["fly"])
    assert (page.status, "There is no action" in page.text) == (422, True)
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", remove="1")
    assert "read write" not in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="ada")).status != 200
    assert (await browser.get(f"/ui/admin/grants?user={ada['id']}&repository=main/none")).status == 200
