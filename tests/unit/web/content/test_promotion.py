"""The form that promotes a version."""

from __future__ import annotations

from tests.support.browser import Browser

VERSION = "packages/demo/versions/1.0"


async def test_a_version_is_moved_to_a_repository_in_which_the_caller_may_publish(browser: Browser) -> None:
    stack = browser.stack
    for name in ("staging", "release", "other"):
        await stack.add_repository(name, config={"type": "Hosted", "conda": {"from_wheels": False}})
    await stack.add_repository("npm", format="npm")
    await stack.publish("main/staging", "demo", "1.0")
    page = await browser.get(f"/ui/repositories/main/staging/{VERSION}")
    assert "Promote" not in page.text
    await browser.log_in()
    page = await browser.get(f"/ui/repositories/main/staging/{VERSION}")
    assert "main/release main/other" in page.text.replace("main/other main/release", "main/release main/other")
    assert "main/npm" not in page.text
    action = f"/ui/repositories/main/staging/{VERSION}/promote"
    page = await browser.send(page, action, to="main/release", move="1")
    assert "from main/staging by admin" in page.text
    page = await browser.get(f"/ui/repositories/main/staging/{VERSION}")
    assert page.status == 404
