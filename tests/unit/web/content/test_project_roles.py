"""The console shows members of a project their packages of a private repository, and no others."""

from __future__ import annotations

from tests.support.browser import Browser
from tests.support.memory_server import WITHOUT_CONDA

PLACE = "/ui/repositories/main/py"


async def test_a_developer_finds_the_packages_of_the_project_and_a_stranger_nothing(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py", visibility="private", config=WITHOUT_CONDA)
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/py", "pattern": "acme-*"})
    for name in ("ada", "mallory"):
        await stack.add_user(name)
    await stack.ok("POST", "/project/acme/members", {"user": "ada", "role": "maintainer"})
    for package in ("acme-one", "payroll"):
        await stack.publish("main/py", package, "1.0")
    stage = await stack.ok("POST", "/repository/main%2Fpy/stages", {"description": "for May"}, who="ada")
    await stack.publish(stage["url"].partition("/repositories/")[2], "acme-two", "1.0")
    await browser.log_in("ada", stack.password("ada"))
    for path in (PLACE, "/ui/search?q=acme", f"{PLACE}/packages/acme-one", f"{PLACE}/packages/acme-one/versions/1.0"):
        page = await browser.get(path)
        assert ("acme-one" in page.html, "payroll" in page.html) == (True, False), path
    assert "main/py" in (await browser.get("/ui/")).text
    assert not any("/tree/" in link for link in (await browser.get(PLACE)).links)
    assert "for acme-*" in (await browser.get("/ui/account/rights")).text
    assert "acme-two" in (await browser.get(f"/ui/admin/stages/{stage['id']}")).text
    for path, status in ((f"{PLACE}/tree/", 403), (f"{PLACE}/packages/payroll", 404)):
        assert (await browser.get(path)).status == status
    await browser.log_in()
    assert "by acme for acme-*" in (await browser.get("/ui/admin/grants")).text
    await browser.log_in("mallory", stack.password("mallory"))
    assert (await browser.get(PLACE)).status == 404
    assert "main/py" not in (await browser.get("/ui/")).text
