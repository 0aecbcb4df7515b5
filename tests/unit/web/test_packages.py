"""The pages of packages and versions."""

from __future__ import annotations

import pytest_twisted

from tests.support.browser import Browser

PAGE = "/ui/repositories/main/py/packages/demo"


@pytest_twisted.ensureDeferred
async def test_a_package_shows_its_latest_version_with_readme_files_and_install_lines(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.stack.publish(
        "main/py",
        "demo",
        "1.1",
        fields=[("Description-Content-Type", "text/markdown"), ("Requires-Dist", "six>=1"), ("Description", "# Demo")],
    )
    page = await browser.get(PAGE)
    assert "demo 1.1" in page.text
    assert "<h1>Demo</h1>" in page.html
    assert "pip install --index-url http://registry.example/repositories/main/py/simple/ demo==1.1" in page.text
    assert "/ui/search?q=six&format=python" in page.links
    page = await browser.get(f"{PAGE}/versions/1.0")
    assert "This version has no readme" in page.text
    assert [link for link in page.links if link.endswith(".whl")]
    page = await browser.get(f"{PAGE}/versions")
    assert f"{PAGE}/versions/1.0" in page.links
    assert (await browser.get(f"{PAGE}/versions/9")).status == 404


@pytest_twisted.ensureDeferred
async def test_an_editor_yanks_and_deletes_versions_and_others_cannot(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    assert (await browser.get(PAGE)).forms.keys() == {"/ui/search"}
    await browser.stack.add_user("ada")
    await browser.log_in("ada", browser.stack.password("ada"))
    page = await browser.get(PAGE)
    page = await browser.send(page, f"{PAGE}/versions/1.0/yank", reason="broken")
    assert (page.status, "may not" in page.text) == (403, True)
    browser.cookie = ""
    await browser.log_in()
    page = await browser.get(PAGE)
    page = await browser.send(page, f"{PAGE}/versions/1.0/yank", reason="<b>broken</b>")
    assert "This version is yanked: <b>broken</b>." in page.text
    page = await browser.send(page, f"{PAGE}/versions/1.0/yank")
    assert "is yanked" not in page.text
    wrong = await browser.send(page, f"{PAGE}/versions/1.0/delete", confirm="1")
    assert wrong.status == 422
    page = await browser.send(page, f"{PAGE}/versions/1.0/delete", confirm="1.0")
    assert "has no packages yet" in page.text
