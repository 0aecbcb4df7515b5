"""Webhooks in the console: made, tested, looked at, sent again, and deleted; of each place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.inprocess_server import turn, until
from tests.support.receivers import Receiver

HOSTILE = "\"><script>alert(1)</script>'"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


async def test_a_webhook_is_made_tested_sent_again_and_deleted(make_stack: Any, receiver: Receiver) -> None:
    browser = Browser(await make_stack(webhooks__allow_private=["127.0.0.1"]))
    await browser.log_in()
    page = await browser.get("/ui/admin/webhooks")
    assert "No webhooks" in page.text
    page = await browser.send(page, "/ui/admin/webhooks", name="x", url="http://10.0.0.1/", events="*", format="plain")
    assert (page.status, "not public" in page.text) == (422, True)
    fields = {"name": HOSTILE, "url": receiver.url, "events": "repository.*, package.*", "format": "plain"}
    page = await browser.send(page, "/ui/admin/webhooks", **fields)
    assert "<script>alert" not in page.html
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", page.text)
    [hook] = await browser.stack.ok("GET", "/system/webhooks")
    place = f"/ui/admin/webhooks/{hook['id']}"
    page = await browser.get(place)
    assert "whsec_" not in page.text
    page = await browser.send(page, f"{place}/test")
    assert "thanks" in page.text
    assert secret is not None
    assert receiver.messages[0].is_signed(secret[0])
    await browser.stack.add_repository("py")
    await until(lambda: len(receiver.messages) == 2)
    while (await browser.stack.ok("GET", f"/system/webhooks/{hook['id']}"))["pending"]:
        await turn()
    page = await browser.get(f"{place}?state=delivered")
    [sent] = re.findall(rf"{place}/deliveries/([0-9a-f-]+)\"[^>]*>repository", page.html)
    page = await browser.get(f"{place}/deliveries/{sent}")
    assert "main/py" in page.text
    await browser.send(page, f"{place}/deliveries/{sent}/redeliver")
    await until(lambda: len(receiver.messages) == 3)
    assert receiver.messages[1].id == receiver.messages[2].id
    page = await browser.send(await browser.get(place), f"{place}/rotate")
    assert "whsec_" in page.text
    page = await browser.send(page, place, **{**fields, "name": "chat", "active": ""})
    assert "chat" in page.text
    assert not (await browser.stack.ok("GET", "/system/webhooks"))[0]["active"]
    page = await browser.send(page, f"{place}/delete")
    assert "No webhooks" in page.text


@pytest.mark.parametrize("place", ["/ui/repositories/main/py/settings/webhooks", "/ui/projects/core/webhooks"])
async def test_repositories_and_projects_have_pages_of_their_own(browser: Browser, place: str) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.ok("POST", "/project", {"key": "core"})
    await browser.log_in()
    page = await browser.get(place)
    fields = {"name": "ci", "url": "https://ci.example/", "events": "package.*", "format": "cloudevents"}
    page = await browser.send(page, place, **fields)
    assert "whsec_" in page.text
    page = await browser.get(place)
    assert "https://ci.example/" in page.text
    assert await browser.stack.ok("GET", "/system/webhooks") == []
