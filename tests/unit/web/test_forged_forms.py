"""Forged requests (CSRF): every form of the console, as pages of other sites would send it."""

from __future__ import annotations

import re

from pkgrepo.web.app import ROOMS
from pkgrepo.web.tables import PageRoute
from tests.support.browser import BASE, Browser

FORMS = [route for room in ROOMS for route in room.pages.routes if route.method == "POST"]
# Forms that need no session: each asks for something that no other site knows, or keeps a choice of language.
OPEN = {
    "/install",
    "/language",
    "/login",
    "/login/passkey",
    "/password-link",
    "/second-factor",
    "/second-factor/codes",
    "/second-factor/confirm",
    "/second-factor/passkey",
    "/second-factor/passkey/made",
    "/second-factor/remove",
}


async def sent(browser: Browser, route: PageRoute, csrf: str, origin: str) -> tuple[int, str]:
    path = "/ui" + re.sub(r"<[^>]+>", "x", route.path)
    fields = {"Cookie": browser.cookie, "Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
    body = f"csrf={csrf}".encode()
    if route.file:
        fields["Content-Type"] = "multipart/form-data; boundary=b"
        body = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n--b--\r\n'.encode()
    reply = await browser.stack.call("POST", path, who=None, headers=fields, raw=body)
    return reply.status, reply.body.decode()


def test_the_forms_without_a_session_are_known() -> None:
    assert {route.path for route in FORMS if route.open} == OPEN
    assert len(FORMS) > 100


async def test_no_form_counts_from_another_site_or_without_the_value_of_the_session(browser: Browser) -> None:
    page = await browser.log_in()
    csrf = page.forms["/ui/logout"]["csrf"]
    before = await browser.stack.ok("GET", "/audit?limit=1")
    for route in FORMS:
        for origin in ("https://evil.example", "null", f"{BASE}.evil.example"):
            status, text = await sent(browser, route, csrf, origin)
            assert (status, "page of another site must not" in text) == (403, True), route.path
        for wrong in () if route.open else ("", "0" * 64):
            status, text = await sent(browser, route, wrong, BASE)
            assert (status, "form belongs to a login that has ended" in text) == (403, True), route.path
    assert await browser.stack.ok("GET", "/audit?limit=1") == before
    assert "admin" in (await browser.get("/ui/")).text  # the session goes on
