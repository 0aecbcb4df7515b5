"""The form that takes packages of another registry in."""

from __future__ import annotations

from tests.support.browser import BASE, Browser

PLACE = "/ui/repositories/main/py/settings/import"


async def test_an_import_is_started_and_its_job_shown_also_while_it_runs(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get(PLACE)
    form = page.forms[PLACE] | {"kind": "python", "source": "http://127.0.0.1:9/simple/", "names": "demo"}
    for _ in range(2):
        reply = await browser.raw("POST", PLACE, form)
        assert (reply.status, "/ui/admin/jobs/" in reply.headers["location"]) == (303, True)
    assert "127.0.0.1:9" in (await browser.get(reply.headers["location"].removeprefix(BASE))).text


async def test_an_import_that_is_refused_shows_what_was_entered(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get(PLACE)
    assert page.forms[PLACE]["dry_run"] == "1"
    del page.forms[PLACE]["dry_run"]
    page = await browser.send(page, PLACE, source="not an address", only="team-*", names="demo\nother", secret="hush")
    assert (page.status, 'role="alert"' in page.html) == (422, True)
    entered = page.forms[PLACE]
    assert (entered["source"], entered["only"], entered["names"]) == ("not an address", "team-*", "demo\nother")
    assert ("dry_run" in entered, "hush" in page.html) == (False, False)
