"""The console shows what people may do, and why."""

from __future__ import annotations

from tests.support.browser import Browser


async def test_people_see_their_rights_and_admins_those_of_others(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    bob = await browser.stack.add_user("bob", default_repository_actions=["write"])
    await browser.log_in()
    assert "main/py read, write, overwrite, delete, edit, admin admin" in (await browser.get("/ui/account/rights")).text
    page = await browser.get(f"/ui/admin/users/{bob['id']}/rights")
    assert "main/py read, write visibility (read) ; default actions (write)" in page.text
