"""The console makes one-time links, and people choose a password with them."""

from __future__ import annotations

from html import unescape

from pkgrepo.storage.catalog.people.linked_identities import Person, ensure_linked
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


async def test_who_logs_in_at_a_provider_now_is_told_so(browser: Browser) -> None:
    await browser.stack.ok("POST", "/users", {"username": "ann", "email": "ann@corp.example"})
    link = await browser.stack.ok("POST", "/users/ann/password-link", {})
    person = Person("https://login.example", "1", "ann", "", "ann@corp.example", (), admin=None)
    core = browser.stack.assembly.core
    await core.catalog.write(
        ensure_linked, person, auto_create=False, link_by_email=True, refresh="", now_ms=core.clock.now_ms()
    )
    page = await browser.get("/ui/password-link")
    fields = {"secret": link["url"], "password": NEW, "repeated": NEW}
    page = await browser.send(page, "/ui/password-link", **fields)
    assert (page.status, "Ann logs in at a provider" in page.text) == (422, True)
