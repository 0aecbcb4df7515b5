"""The console sets up a second factor, and asks for its code."""

from __future__ import annotations

import base64

from pkgrepo.auth.login.second_factors import STEP_S, make_code
from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD


async def test_the_console_sets_it_up_with_a_picture_and_asks_for_it(browser: Browser) -> None:
    await browser.stack.add_user("bob")
    page = await browser.get("/ui/second-factor")
    page = await browser.send(page, "/ui/second-factor", username="bob", password=OTHER_PASSWORD)
    assert "<svg" in page.html
    secret = page.html.partition("<code>")[2].partition("</code>")[0]
    step = browser.stack.assembly.core.clock.now_ms() // 1000 // STEP_S
    assert len(base64.b32decode(secret)) == 20
    assert "<svg" in (await browser.send(page, "/ui/second-factor/confirm", code="0")).html
    shown = await browser.send(page, "/ui/second-factor/confirm", code=make_code(secret, step))
    assert "recovery codes" in shown.text
    page = await browser.get("/ui/login")
    page = await browser.send(page, "/ui/login", username="bob", password=OTHER_PASSWORD)
    assert "one-time password" in page.text
    await browser.send(page, "/ui/login", username="bob", password=OTHER_PASSWORD, code=make_code(secret, step + 1))
    assert "Your password needs a code" in (await browser.get("/ui/account")).text
