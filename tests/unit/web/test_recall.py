"""The page of the console about who fetched a version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.browser import Browser
from tests.support.osv_records import affected, record, since, write_folder

PAGE = "/ui/admin/recall"


async def test_who_fetched_a_version_is_one_link_away(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    filename = await stack.publish("main/py", "demo", "1.0")
    path = f"/repositories/main/py/demo/1.0/{filename}"
    assert "/ui/login" in (await browser.get(PAGE)).forms
    await browser.log_in()
    token = await stack.token(name="nightly build")
    for who in (token, None, None):
        await stack.call("GET", path, who=who)
    version = await browser.get("/ui/repositories/main/py/packages/demo/versions/1.0")
    (link,) = [each for each in version.links if each.startswith(PAGE)]
    page = await browser.get(link)
    assert "admin nightly build" in page.text
    assert "3 fetches of 1 file" in page.text
    assert "2 by anonymous clients" in page.text
    assert "pkgrepo recall main/py demo==1.0" in page.text
    reply = await stack.call("GET", next(each for each in page.links if "format=csv" in each))
    assert "\nadmin,nightly build,," in reply.body.decode().replace("\r", "")
    by_digest = next(each for each in page.links if each.startswith("?what=sha256"))
    assert "admin nightly build" in (await browser.get(PAGE + by_digest)).text


async def test_a_question_without_an_answer_says_why(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    assert "Package URL or digest" in (await browser.get(PAGE)).text
    page = await browser.get(f"{PAGE}?what=pkg:pypi/dmo@1")
    assert "check how it is written" in page.text
    page = await browser.get(f"{PAGE}?what=x")
    assert (page.status, "a digest is a sha256 in hexadecimal" in page.text.lower()) == (422, True)
    assert (await browser.get(f"{PAGE}?repository=main/other&package=demo")).status == 422


async def test_recalls_that_opened_by_themselves_are_listed_with_their_reports(make_stack: Any, tmp_path: Path) -> None:
    hostile = record("MAL-2026-7", affected("PyPI", "demo", *since("1.0")), summary="Malicious <b>code</b>")
    stack = await make_stack(advisories__source=str(write_folder(tmp_path / "osv", [hostile])))
    browser = Browser(stack)
    await browser.log_in()
    assert "No known malware is, or was, here" in (await browser.get(PAGE)).text
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    while (await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    later = {**hostile, "modified": "2026-01-03T00:00:00Z"}
    await stack.ok("POST", "/advisories/records", later)
    page = await browser.get(PAGE)
    assert "MAL-2026-7 Malicious <b>code</b> demo main/py 1.0" in page.text
    report = next(each for each in page.links if "/recall/report" in each and "markdown" in each)
    assert b"# Recall report: MAL-2026-7" in (await stack.call("GET", report)).body
    assert "the rule known malware of its own" in (await browser.get("/ui/admin/policy")).text
