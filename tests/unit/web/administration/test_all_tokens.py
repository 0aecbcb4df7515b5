"""The console shows admins the tokens of everyone, and people which of theirs end soon."""

from __future__ import annotations

from tests.support.browser import Browser


async def test_tokens_of_everyone_are_shown_and_revoked_and_what_ends_soon_is_marked(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_user("bob")
    await stack.token("bob", name="of-bob")
    await stack.token(name="short", expires_in_days=3)
    await browser.log_in()
    page = await browser.get("/ui/admin/tokens")
    assert "of-bob" in page.text
    assert "of-bob" not in (await browser.get("/ui/admin/tokens?unused_days=1")).text
    own = await browser.get("/ui/account/tokens")
    assert "1 of the tokens here ends within 14 days" in own.text
    await browser.send(await browser.get("/ui/admin/tokens?user=bob"), "/ui/admin/tokens")
    assert "of-bob" not in (await browser.get("/ui/admin/tokens")).text


async def test_a_canary_is_made_by_a_form_and_its_uses_are_on_the_pages_of_tokens(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.log_in()
    page = await browser.get("/ui/account/tokens")
    assert "Canaries that were used" not in page.text
    page = await browser.send(page, "/ui/account/tokens", name="in a wiki", canary="1")
    token = "pkgr_" + page.text.partition("pkgr_")[2][:48]
    assert "canary" in (await browser.get("/ui/account/tokens")).text
    fields = {"User-Agent": "<b>thief</b>/1"}
    path = "/repositories/main/py/simple/demo/"
    assert (await browser.stack.call("GET", path, who=token, headers=fields)).status == 401
    for place in ("/ui/account/tokens", "/ui/admin/tokens"):
        shown = (await browser.get(place)).text
        assert f"GET {path} <b>thief</b>/1" in shown, shown
