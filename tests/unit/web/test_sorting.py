"""Every list is sorted by its columns, as its address says, without scripts."""

from __future__ import annotations

import re

import pytest

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD, WITHOUT_CONDA

PLACE = "/ui/repositories/main/py"


async def test_users_jobs_tokens_and_projects_are_sorted(browser: Browser) -> None:
    stack = browser.stack
    for name in ("zoe", "bea"):
        await stack.add_user(name)
        await stack.ok("POST", "/project", {"key": name})
        await stack.ok("POST", "/user/token", {"name": name})
    await stack.add_repository("py")
    for _ in range(2):
        await stack.ok("POST", "/repository/main%2Fpy/gc", {"dry_run": True})
    await browser.log_in()
    for path, link, names in (
        ("/ui/admin/users?sort=", "/ui/admin/users/", ["admin", "bea", "zoe"]),
        ("/ui/admin/users?sort=-username", "/ui/admin/users/", ["zoe", "bea", "admin"]),
        ("/ui/admin/users?sort=-last_login_at", "/ui/admin/users/", ["admin", "zoe", "bea"]),
        ("/ui/projects?sort=-key", "/ui/projects/", ["zoe", "bea"]),
    ):
        page = await browser.get(path)
        assert re.findall(rf'<a class="row" href="{link}[^"]+">(?:<b>)?(\w+)<', page.html) == names, path
    page = await browser.get("/ui/account/tokens?sort=-name")
    assert page.text.index("zoe") < page.text.index("bea")
    first, second = (await browser.get("/ui/admin/jobs")).links, (await browser.get("/ui/admin/jobs?sort=took")).links
    assert {each for each in first if "/jobs/" in each} == {each for each in second if "/jobs/" in each}
    assert (await browser.get("/ui/admin/audit?sort=time")).text.index("login") > 0


@pytest.mark.parametrize(
    "path",
    ["/ui/admin/users", "/ui/admin/jobs", "/ui/account/tokens", "/ui/projects", "/ui/admin/audit", PLACE],
    ids=["users", "jobs", "tokens", "projects", "audit", "packages"],
)
@pytest.mark.parametrize("query", ["sort=x", "cursor=x", "cursor=WyJ4Il0"], ids=["order", "no-cursor", "other-cursor"])
async def test_a_wrong_order_or_cursor_is_refused_with_a_page(browser: Browser, path: str, query: str) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get(f"{path}?{query}")
    assert page.status == 422
    assert "Traceback" not in page.text


async def test_files_and_entries_of_archives_are_sorted(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0", extra_files={"demo/large": b"x" * 9000, "demo/z": b""})
    page = await browser.get(f"{PLACE}/tree/packages/demo/1.0?sort=size")
    assert page.text.index(".whl.metadata ") < page.text.index(".whl look inside")
    page = await browser.get(f"{PLACE}/tree/packages/demo/1.0?sort=-size")
    assert page.text.index(".whl.metadata ") > page.text.index(".whl look inside")
    [inside] = [each for each in page.links if "/contents/" in each]
    for query, first in (
        ("sort=-size&folder=demo", "large"),
        ("sort=size&folder=demo", "z"),
        ("sort=x", "demo/"),
    ):
        page = await browser.get(f"{inside}?{query}")
        assert re.findall(r'<a class="row"[^>]+>([^<]+)<', page.html)[0] == first, query


@pytest.mark.parametrize(
    "query",
    [
        "page=99999999999999999999",
        "page=-1",
        "page=%00",
        "days=-1",
        "sort=%F0%9F%92%A9",
        "q=%00%E2%80%AE",
        "from=9999-99",
    ],
    ids=["huge", "negative", "nul", "days", "emoji", "direction", "time"],
)
async def test_odd_parameters_are_no_failures(browser: Browser, query: str) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.log_in()
    below = ("", "/tree/", "/packages/demo/versions", "/packages/demo/downloads", "/packages/demo/versions/1.0/files")
    admin = ("users", "grants", "jobs", "statistics", "audit")
    for path in ("/ui/", "/ui/search", *(PLACE + each for each in below), *(f"/ui/admin/{each}" for each in admin)):
        assert (await browser.get(f"{path}?{query}")).status in (200, 422), path


async def test_statistics_are_pictures_with_the_same_figures_in_tables(browser: Browser) -> None:
    await browser.stack.add_repository("py", config=WITHOUT_CONDA)
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
    assert "Administrators and user managers grant rights in repositories" in page.text
