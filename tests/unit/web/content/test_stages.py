"""The pages of the console for stages."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD
from tests.support.npm_packages import make_publish

LIST = "/ui/admin/stages"


async def staged(browser: Browser, *versions: str) -> Any:
    """A stage of ``main/npm``, which has version 1.0.0 of demo, with some versions of it."""
    stack = browser.stack
    await stack.add_repository("npm", format="npm", config={"type": "Hosted"})
    await publish(browser, "npm", "1.0.0")
    await browser.log_in()
    stage = await stack.ok("POST", "/repository/main%2Fnpm/stages", {"description": "for the <b>autumn"})
    for each in versions:
        await publish(browser, stage["url"].rpartition("/")[2], each)
    return stage


async def publish(browser: Browser, repository: str, version: str) -> None:
    path, raw = f"/repositories/main/{repository}/demo", make_publish("demo", version)
    headers = {"Content-Type": "application/json"}
    assert (await browser.stack.call("PUT", path, raw=raw, headers=headers)).status == 201


async def test_a_stage_is_shown_compared_and_approved(browser: Browser) -> None:
    stage = await staged(browser, "1.1.0")
    page = await browser.get(LIST)
    assert ("demo 1.1.0" in page.text, "for the <b>autumn" in page.text) == (True, True)
    place = f"{LIST}/{stage['id']}"
    page = await browser.get(place)
    [difference] = [link for link in page.links if "/difference" in link]
    assert "1.0.0" in (await browser.get(difference)).text
    await publish(browser, stage["url"].rpartition("/")[2], "1.2.0")
    seen = str((await browser.stack.ok("GET", f"/stages/{stage['id']}"))["serial"])
    refused = await browser.send(page, f"{place}/approve", serial="1")
    assert (refused.status, "was changed since you saw it" in refused.text) == (409, True)
    await browser.send(refused, f"{place}/approve", serial=seen)
    assert "approved" in (await browser.get(place)).text
    versions = (await browser.stack.ok("GET", "/package/main%2Fnpm/demo/versions"))["items"]
    assert {each["version"] for each in versions} == {"1.0.0", "1.1.0", "1.2.0"}


async def test_a_stage_is_opened_and_rejected(browser: Browser) -> None:
    await staged(browser)
    page = await browser.get(LIST)
    opened = await browser.send(page, LIST, repository="main/npm", description="another")
    [uid] = {
        link.rpartition("/")[2] for link in (await browser.get(f"{LIST}?state=open")).links if f"{LIST}/" in link
    } - {each["id"] for each in (await browser.stack.ok("GET", "/stages"))["items"] if each["description"] != "another"}
    page = await browser.get(f"{LIST}/{uid}")
    assert ("Nothing is staged in it yet" in page.text, opened.status) == (True, 200)
    await browser.send(page, f"{LIST}/{uid}/reject", reason="not <i>now")
    page = await browser.get(f"{LIST}/{uid}")
    assert ("rejected" in page.text, "not <i>now" in page.text) == (True, True)
    assert uid in "".join((await browser.get(f"{LIST}?state=rejected")).links)
    assert (await browser.get(f"{LIST}?state=lost")).status == 422


async def test_what_waits_is_found_by_those_who_may_decide_and_at_the_repository(browser: Browser) -> None:
    stage = await staged(browser, "1.1.0")
    waiting = await browser.get("/ui/waiting")
    assert f"{LIST}/{stage['id']}" in waiting.links
    assert "No version waits for you" in waiting.text
    place = "/ui/repositories/main/npm/stages"
    assert place in (await browser.get("/ui/repositories/main/npm")).links
    page = await browser.get(place)
    assert f"{LIST}/{stage['id']}" in page.links
    opened = await browser.send(page, place, description="the next")
    assert "Nothing is staged in it yet" in opened.text
    stack = browser.stack
    await stack.add_user("ann")
    await stack.grant("ann", "main/npm", "read", "write")
    await browser.log_in("ann", OTHER_PASSWORD)
    waiting = await browser.get("/ui/waiting")
    assert f"{LIST}/{stage['id']}" not in waiting.links
    assert "1 open stage of which you see something waits for others" in waiting.text
    assert "/ui/repositories/main/npm/trash" not in (await browser.get("/ui/repositories/main/npm")).links
