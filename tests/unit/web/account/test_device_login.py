"""The console asks a person whether a program may log in."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Browser
from tests.support.memory_server import Reply

BASE = "/user/login/device"


async def begin(browser: Browser, **fields: Any) -> Any:
    return await browser.stack.ok("POST", BASE, {"name": "a program", **fields}, who=None)


async def fetch(browser: Browser, begun: Any, code: str = "") -> Reply:
    body = {"device_code": begun["device_code"], "code": code}
    return await browser.stack.api("POST", f"{BASE}/token", body, who=None)


async def test_the_console_shows_who_asks_and_goes_back_to_the_program(browser: Browser) -> None:
    begun = await begin(browser, name="pkgrepo on <b>laptop", port=49152)
    path = begun["verification_uri_complete"].partition("example")[2]
    page = await browser.get(path)
    assert "Log in" in page.text, "first the person logs in"
    page = await browser.send(page, "/ui/login", username="admin", password=browser.stack.password("admin"))
    assert "pkgrepo on <b>laptop" in page.text, "then the page of the code is shown"
    assert begun["user_code"] in page.text
    assert "127.0.0.1" not in page.html.partition("<main")[2]
    csrf = page.forms["/ui/device"]
    stolen = await browser.raw("POST", "/ui/device", {**csrf, "csrf": "", "approve": "1"})
    assert stolen.status == 403
    done = await browser.send(page, "/ui/device", approve="1")
    address = done.headers["refresh"].partition("url=")[2]
    assert (await fetch(browser, begun, address.partition("=")[2])).status == 200
    other = await begin(browser)
    page = await browser.get("/ui/device")
    page = await browser.get(f"/ui/device?user_code={other['user_code']}")
    assert "Denied" in (await browser.send(page, "/ui/device")).text
    assert (await fetch(browser, other)).json["error"] == "access_denied"
    assert (await browser.get("/ui/device?user_code=BBBBBBBB")).status == 422
