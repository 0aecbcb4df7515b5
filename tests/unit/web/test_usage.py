"""Statistics, health and the audit log in the console."""

from __future__ import annotations

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD


async def test_statistics_are_pictures_with_the_same_figures_in_tables(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.log_in()
    page = await browser.get("/ui/admin/statistics?days=7")
    assert page.html.count('role="img"') == 3
    assert ("1 in all, at most 1 on a day" in page.text, "main/py" in page.text) == (True, True)
    assert "/ui/repositories/main/py" in page.links
    assert (await browser.get("/ui/admin/statistics?days=x")).status == 200


async def test_health_shows_checks_disks_and_versions(browser: Browser) -> None:
    await browser.log_in()
    page = await browser.get("/ui/admin/health")
    assert "Everything works." in page.text
    for text in ("readable layout", "Twisted", "storage main"):
        assert text in page.text


async def test_these_pages_are_for_managers(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    await browser.log_in("ada", OTHER_PASSWORD)
    for path in ("/ui/admin/statistics", "/ui/admin/health", "/ui/admin/audit"):
        assert (await browser.raw("GET", path)).status == 403


async def test_the_audit_log_is_filtered_by_address(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    await browser.log_in()
    page = await browser.get("/ui/admin/audit?action=user.&object=ada")
    assert ("user.create" in page.text, "login" in page.text.partition("Time Actor")[2]) == (True, False)
    page = await browser.get("/ui/admin/audit?to=2001-01-01")
    assert "No row fits" in page.text
    page = await browser.get("/ui/admin/audit?from=yesterday")
    assert (page.status, 'role="alert"' in page.html) == (422, True)


async def test_a_refusal_says_which_rule_decided_and_who_can_change_it(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.add_user("ada")
    await browser.stack.grant("ada", "main/py", "read")
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get("/ui/repositories/main/py/settings")
    assert page.status == 403
    assert "the user's grant in this repository is for read" in page.text
    assert "user managers and admins grant users actions in repositories" in page.text
