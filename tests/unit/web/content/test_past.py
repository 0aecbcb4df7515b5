"""The page of the console about a repository as it was at a time."""

from __future__ import annotations

from tests.support.browser import Browser

PAGE = "/ui/repositories/main/py/past"


async def test_set_up_and_changes_are_shown_for_a_date(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    packages = await browser.get("/ui/repositories/main/py")
    assert PAGE in packages.links
    assert "Type a date" in (await browser.get(PAGE)).text
    page = await browser.get(f"{PAGE}?at=2026-01-01")
    assert "Changed since 2026-01-01" in page.text
    assert "/ui/repositories/main/py/packages/demo" in page.links
    assert "/repositories/main/py@2026-01-01/simple/" in page.text
    assert "twine" not in page.text
    assert "pkgrepo snapshot main/py --at 2026-01-01" in page.text


async def test_what_is_no_date_is_refused(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.add_repository("images", format="docker")
    for at in ("soon", "9999-01-01"):
        page = await browser.get(f"{PAGE}?at={at}")
        assert page.status == 422
        assert "date" in page.text or "future" in page.text
    assert (await browser.get("/ui/repositories/main/images/past?at=2026-01-01")).status == 422
    assert "/ui/repositories/main/images/past" not in (await browser.get("/ui/repositories/main/images")).links
