"""The console makes one-time links, and people choose a password with them."""

from __future__ import annotations

from html import unescape

from tests.support.browser import Browser, Page

NEW = "a door that opens inwards"


def link_of(page: Page) -> str:
    """The link that a page shows."""
    shown = page.html.partition("<code>http")[2].partition("</code>")[0]
    return unescape("http" + shown.replace("<wbr>", ""))


async def test_an_invitation_is_made_with_the_account_and_used_without_scripts(browser: Browser) -> None:
    await browser.log_in()
    page = await browser.get("/ui/admin/users")
    page = await browser.send(page, "/ui/admin/users", username="ann", invite="1")
    link = link_of(page)
    assert "/ui/password-link#" in link
    stranger = Browser(browser.stack)
    page = await stranger.get("/ui/password-link")
    fields = {"secret": link, "password": NEW}
    wrong = await stranger.send(page, "/ui/password-link", **fields, repeated="other")
    assert wrong.status == 422
    done = await stranger.send(page, "/ui/password-link", **fields, repeated=NEW)
    assert "Your user name is ann" in done.text
    assert (await stranger.log_in("ann", NEW)).status == 200
    again = await stranger.send(page, "/ui/password-link", **fields, repeated=NEW)
    assert (again.status, "was used" in again.text) == (422, True)


async def test_a_link_is_made_on_the_page_of_a_user(browser: Browser) -> None:
    bob = await browser.stack.add_user("bob")
    await browser.log_in()
    page = await browser.get(f"/ui/admin/users/{bob['id']}")
    page = await browser.send(page, f"/ui/admin/users/{bob['id']}/password-link")
    assert "/ui/password-link#" in link_of(page)
    assert "#" not in link_of(await browser.get(f"/ui/admin/users/{bob['id']}")), "it is shown once"
