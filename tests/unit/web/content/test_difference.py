"""The page that compares two versions of a package."""

from __future__ import annotations

from tests.support.browser import Browser
from tests.support.npm_packages import make_manifest, make_publish, make_tarball


async def _publish(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository()
    for version, needs, files in (("1.0", "six>=1", {}), ("1.1", "six>=2", {"demo/<b>new</b>.py": b"d"})):
        await stack.publish("main/py", "demo", version, extra_files=files, fields=[("Requires-Dist", needs)])


async def test_a_page_shows_the_difference_and_asks_for_the_versions(browser: Browser) -> None:
    await _publish(browser)
    page = await browser.get("/ui/repositories/main/py/packages/demo")
    address = "/ui/repositories/main/py/packages/demo/difference"
    assert f"{address}?before=1.0&after=1.1" in page.links
    page = await browser.get(f"{address}?before=1.0&after=1.1")
    assert "demo/<b>new</b>.py added" in page.text
    assert "six>=1 six>=2" in page.text
    changed = f"{address}?before=1.0&after=1.1&entry=demo-%2A.dist-info%2FMETADATA"
    assert changed in page.links
    page = await browser.get(changed)
    assert '<span class="added">+Version: 1.1' in page.html
    assert "Requires-Dist: six>=2" in page.text
    page = await browser.get(f"{address}?before=1.0&after=1.1&entry=demo%2F__init__.py")
    assert page.status == 200
    page = await browser.get(address)
    assert page.forms[address] == {"before": "1.0", "after": "1.1"}
    assert "files differ" not in page.text


async def test_a_script_that_an_installation_runs_is_warned_of(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("js", format="npm")
    for version, fields in (("1.0.0", {}), ("1.0.1", {"scripts": {"postinstall": "node steal.js"}})):
        tarball = make_tarball("app", version, manifest=make_manifest("app", version, **fields))
        body = make_publish("app", version, tarball=tarball, **fields)
        assert (await stack.call("PUT", "/repositories/main/js/app", raw=body)).status == 201
    page = await browser.get("/ui/repositories/main/js/packages/app/difference?before=1.0.0&after=1.0.1")
    assert "A script that runs at the installation differs." in page.text
    assert "node steal.js" in page.text
