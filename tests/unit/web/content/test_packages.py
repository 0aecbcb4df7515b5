"""The pages of packages and versions."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from typing import Any

from tests.support.browser import Browser
from tests.support.images import Registry, digest_of, make_image, make_index

PAGE = "/ui/repositories/main/py/packages/demo"


async def test_a_package_shows_its_latest_version_with_readme_files_and_install_lines(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.stack.publish(
        "main/py",
        "demo",
        "1.1",
        fields=[
            ("Description-Content-Type", "text/markdown"),
            ("Requires-Dist", "six>=1"),
            ("Classifier", "Topic :: <Science>"),
            ("Requires-Python", ">=3.9"),
            ("Description", "# Demo"),
        ],
    )
    page = await browser.get(PAGE)
    assert "demo 1.1" in page.text
    assert "Python >=3.9" in page.text
    assert "1 classifier Topic :: <Science>" in page.text
    assert "<h1>Demo</h1>" in page.html
    assert "pip install --index-url http://registry.example/repositories/main/py/simple/ demo==1.1" in page.text
    assert "/ui/search?q=six&format=python" in page.links
    page = await browser.get(f"{PAGE}/versions/1.0")
    assert "This version has no readme" in page.text
    assert [link for link in page.links if link.endswith(".whl")]
    page = await browser.get(f"{PAGE}/versions")
    assert f"{PAGE}/versions/1.0" in page.links
    assert (await browser.get(f"{PAGE}/versions/9")).status == 404


async def test_an_editor_yanks_and_deletes_versions_and_others_cannot(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    assert (await browser.get(PAGE)).forms.keys() == {"/ui/search"}
    await browser.stack.add_user("ada")
    await browser.log_in("ada", browser.stack.password("ada"))
    page = await browser.get(PAGE)
    assert f"{PAGE}/versions/1.0/yank" not in page.forms  # what a person may not do is not offered
    assert "/ui/repositories/main/py/settings" not in (await browser.get("/ui/repositories/main/py")).links
    forged = {"csrf": page.forms["/ui/logout"]["csrf"], "reason": "broken"}
    assert (await browser.raw("POST", f"{PAGE}/versions/1.0/yank", forged)).status == 403
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


async def test_tables_are_sorted_filtered_and_paged_by_their_addresses(browser: Browser, monkeypatch: Any) -> None:
    await browser.stack.add_repository("py")
    for name, version in (("demo", "1.0"), ("demo", "2.0"), ("other", "1.0")):
        await browser.stack.publish("main/py", name, version)
    monkeypatch.setattr("pkgrepo.web.content.packages.PER_PAGE", 1)
    monkeypatch.setattr("pkgrepo.web.content.repositories.PER_PAGE", 1)
    whole = "/ui/repositories/main/py"
    assert await _rows(browser, whole) == ["demo", "other"]
    assert await _rows(browser, f"{whole}?sort=-name") == ["other", "demo"]
    assert await _rows(browser, f"{whole}?sort=-updated_at") == ["other", "demo"]
    assert await _rows(browser, f"{whole}?sort=downloads&q=othe") == ["other"]
    assert await _rows(browser, f"{PAGE}/versions") == ["2.0", "1.0"]
    assert await _rows(browser, f"{PAGE}/versions?sort=version") == ["1.0", "2.0"]
    assert await _rows(browser, f"{PAGE}/versions?sort=-published_at&q=0") == ["2.0", "1.0"]
    sizes = await _rows(browser, f"{PAGE}/versions/1.0/files?sort=-size")
    assert [each.rpartition(".")[2] for each in sizes] == ["whl", "metadata"]
    page = await browser.get(f"{PAGE}/versions?sort=nonsense")
    assert (page.status, "Sort is one of version," in page.text) == (422, True)
    assert (await browser.get(f"{whole}?cursor=x")).status == 422


async def _rows(browser: Browser, path: str) -> list[str]:
    """The names in the rows of a table, over all pages."""
    found: list[str] = []
    while True:
        page = await browser.get(path)
        assert page.status == 200
        found += re.findall(r'<td data-label="[^"]+"><a class="row" href="[^"]+">(?:<mark>)?(.*?)</a>', page.html)
        links = re.findall(r'<a rel="next" href="([^"]+)"', page.html)
        if not links:
            return [re.sub("<.*?>", "", each) for each in found]
        path = path.partition("?")[0] + html.unescape(links[0])


async def test_downloads_are_shown_as_a_picture_and_as_a_table(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    filename = await stack.publish("main/py", "demo", "1.0")
    page = await browser.get(f"{PAGE}/downloads")
    assert "Nothing of this package was downloaded in these days." in page.text
    for _ in range(3):
        await stack.call("GET", f"/repositories/main/py/demo/1.0/{filename}", who=None)
    await stack.assembly.core.downloads.flush()
    day = datetime.now(UTC).date().isoformat()
    for days in ("", "30", "99999999999", "x"):
        page = await browser.get(f"{PAGE}/downloads?days={days}")
        assert f"{day} 3" in page.text
        assert page.html.count("<title>") == 2  # of the page, and of the only bar
        assert f"<title>{day}: 3</title>" in page.html
    assert "3 downloads in 90 days" in (await browser.get(PAGE)).text
    page = await browser.get("/ui/")
    assert 'aria-label="3 downloads in 30 days"' in page.html
    assert f"{PAGE}/versions/1.0" in (await browser.get(f"{PAGE}/downloads")).links
    found = await stack.ok("GET", "/repository/main%2Fpy/downloads?days=2")
    assert [each["count"] for each in found["days"]] == [0, 3]
    assert sum((await stack.ok("GET", "/repository/main%2Fpy"))["downloads"]) == 3
    (version,) = (await stack.ok("GET", "/package/main%2Fpy/demo/versions"))["items"]
    assert version["downloads"] == 3
    found = await stack.ok("GET", "/package/main%2Fpy/demo/downloads?days=2")
    assert (found["total"], [each["count"] for each in found["days"]]) == (3, [0, 3])
    assert (await stack.api("GET", "/package/main%2Fpy/demo/downloads?days=0")).status == 422


async def test_packages_that_need_one_are_listed_in_all_repositories_that_may_be_seen(browser: Browser) -> None:
    stack = browser.stack
    for name, visibility in (("py", "public"), ("apps", "public"), ("secret", "private")):
        await stack.add_repository(name, visibility=visibility)
    await stack.publish("main/py", "demo", "1.0")
    page = await browser.get(f"{PAGE}/dependents")
    assert "No package on this server that you may see needs demo" in page.text
    for place, name in (("main/apps", "site"), ("main/apps", "other"), ("main/secret", "hidden")):
        await stack.publish(place, name, "1.0", fields=[("Requires-Dist", "Demo>=1" if name != "other" else "demos")])
    page = await browser.get(f"{PAGE}/dependents")
    assert "1 package on this server needs it" in page.text
    assert "needs demo" not in (await browser.get(PAGE)).text
    assert "/ui/repositories/main/apps/packages/site" in page.links
    assert "hidden" not in page.text
    assert page.text.count("yes") == 1
    assert "no" in (await browser.get(f"{PAGE}/dependents?version=0.9")).text.split()
    for version, accepts in (("1.0", True), ("0.9", False), ("", None)):
        some = await stack.ok("GET", f"/package/main%2Fpy/demo/dependents?version={version}")
        assert {each["accepts"] for each in some["items"]} == {accepts}
    found = await stack.ok("GET", "/package/main%2Fpy/demo/dependents?count=1")
    assert {(each["name"], each["repository"], each["text"]) for each in found["items"]} == {
        ("site", "main/apps", "Demo>=1"),
        ("hidden", "main/secret", "Demo>=1"),
    }
    await browser.log_in()
    assert "2 packages on this server need demo" in (await browser.get(PAGE)).text
    await stack.publish("main/apps", "site", "2.0")
    assert "1 package on this server needs it" in (await browser.get(f"{PAGE}/dependents")).text


async def test_who_decided_what_a_virtual_repository_serves_is_shown_as_boxes(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    route = {"url": "http://127.0.0.1:9/simple/", "name": "upstream"}
    await stack.add_repository("mirror", config={"type": "Proxy", "proxy": {"routes": [route]}})
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py", "main/mirror"]})
    await stack.publish("main/py", "demo", "1.0")
    place = "/ui/repositories/main/all/explain"
    assert place in (await browser.get("/ui/repositories/main/all")).links
    assert f"{place}?package=demo" not in (await browser.get(PAGE)).links  # a hosted repository decides nothing
    page = await browser.get(place)
    assert "Type the name of a package" in page.text
    page = await browser.get(f"{place}?package=Demo&version=1.0")
    assert "1. main/py serves it" in page.text
    assert "pkgrepo explain main/all Demo --version=1.0" in page.text
    page = await browser.get(f"{place}?package=<b>no")
    assert (page.status, "<b>no" in page.html) == (422, False)
    page = await browser.get(f"{place}?package=absent")
    assert "2. main/mirror" in page.text
    assert page.html.count('class="dot bad"') == 1


async def test_the_members_of_a_virtual_repository_are_shown_to_those_who_may_change_them(browser: Browser) -> None:
    stack, page = browser.stack, "/ui/repositories/main/all"
    for name in ("secret", "open"):
        await stack.add_repository(name, visibility="private" if name == "secret" else "public")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/open", "main/secret"]})
    shown = await browser.get(page)
    assert ("secret" in shown.html, "This repository joins others" in shown.text) == (False, True)
    await browser.log_in()
    shown = await browser.get(page)
    assert shown.html.index("/ui/repositories/main/open") < shown.html.index("/ui/repositories/main/secret")


async def test_prereleases_are_folded_beside_releases(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "2.0rc1")
    page = await browser.get(f"{PAGE}/versions")
    assert ("2.0rc1" in page.text, "prereleases" in page.html) == (True, False)
    await browser.stack.publish("main/py", "demo", "1.0")
    page = await browser.get(f"{PAGE}/versions")
    assert "Show 1 prerelease" in page.text
    assert page.html.count('<tr class="prerelease">') == 1


async def test_archives_are_looked_into(browser: Browser, monkeypatch: Any) -> None:
    await browser.stack.add_repository("py")
    hostile = "demo/<b>\u202e\"'.txt"
    texts = {hostile: b"<script>alert(1)</script>", "demo/large": b"x" * 70_000}
    await browser.stack.publish("main/py", "demo", "1.0", extra_files=texts)
    page = await browser.get(f"{PAGE}/versions/1.0")
    [inside] = [each for each in page.links if "/contents/" in each]
    page = await browser.get(inside)
    assert re.search(r"demo/ \d files", page.text)
    assert f"{inside}?folder=demo" in page.links
    page = await browser.get(f"{inside}?folder=demo")
    assert "<b>" in page.text
    assert "large" in page.text
    assert "METADATA" not in page.text
    assert "Page" not in page.text
    [text] = [each for each in page.links if "entry=demo%2F%3Cb%3E" in each]
    page = await browser.get(inside.partition("?")[0] + text[text.index("?") :])
    assert "<script>alert(1)</script>" in page.text
    assert "<script>alert" not in page.html
    page = await browser.get(f"{inside}?entry=demo/large")
    assert (page.status, "more than 65536 bytes" in page.text) == (422, True)
    assert (await browser.get(f"{inside}?entry=absent")).status == 404
    monkeypatch.setattr("pkgrepo.web.content.repositories.ENTRIES_PER_PAGE", 2)
    page = await browser.get(f"{inside}?page=2&q=dem")
    assert "Page 2 of" in page.text
    assert "The archive is empty" in (await browser.get(f"{inside}?folder=../..")).text
    page = await browser.get(f"{inside}?q=LARGE")
    assert ("large" in page.text, hostile in page.text) == (True, False)


async def test_an_image_shows_what_it_is_made_of(browser: Browser) -> None:
    await browser.stack.add_repository("images", format="docker")
    registry, one = Registry(browser.stack), make_image("<one>")
    await registry.push(one)
    await registry.push(make_image("two"))
    await registry.push(make_index([one, make_image("two")]), "v1")
    page = await browser.get("/ui/repositories/main/images/packages/app")
    assert "2 platforms linux/amd64 1 layer," in page.text
    assert "linux/arm64 1 layer," in page.text
    assert digest_of(one.blobs[1]) in page.text
    page = await browser.get("/ui/repositories/main/images/packages/app/versions?sort=version")
    assert "/ui/repositories/main/images/packages/app/versions/v1" in page.links
    assert "linux/amd64 linux/arm64" in page.text
    labels = {"description": "An <i>app</i>", "source": "https://git.example/app", "licenses": "MIT", "vendor": "Acme"}
    settings = {"Labels": {f"org.opencontainers.image.{name}": text for name, text in labels.items()}}
    await registry.push(make_image("labelled", settings=settings), "v2")
    page = await browser.get("/ui/repositories/main/images/packages/app/versions/v2")
    assert "An <i>app</i>" in page.text
    assert "MIT" in page.text
    assert "Acme" in page.text
    assert "https://git.example/app" in page.links


async def test_each_member_says_what_it_does_with_a_version(browser: Browser) -> None:
    stack = browser.stack
    for name in ("one", "two", "three"):
        await stack.add_repository(name)
    for name, version in (("one", "1.0"), ("two", "1.0"), ("two", "2.0"), ("three", "2.0")):
        await stack.publish(f"main/{name}", "demo", version)
    config = {"type": "Virtual", "members": ["main/one", "main/two", "main/three"], "policy": {"merge_names": ["demo"]}}
    await stack.add_repository("all", config=config)
    block = {"repository": "main/two", "package": "demo", "versions": "2.0", "reason": "bad"}
    await stack.ok("POST", "/policy/blocks", block)
    for version, roles, served in (
        ("1.0", ["serves", "shadowed", "lacks"], True),
        ("2.0", ["lacks", "hides", "serves"], True),
    ):
        found = await stack.ok("GET", f"/explain?repository=main/all&package=demo&version={version}")
        assert [each["kind"] for each in found["roles"]] == roles
        assert (found["outcome"] == "served") is served
    assert "bad" in next(each["why"] for each in found["roles"] if each["kind"] == "hides")
    await stack.ok("POST", "/policy/blocks", block | {"repository": "main/three"})
    await browser.log_in()
    page = await browser.get("/ui/repositories/main/all/explain?package=demo&version=2.0")
    assert ("serves it" in page.text, page.html.count("holds it back")) == (False, 2)
    assert 'class="panel chosen"' not in page.html
    page = await browser.get("/ui/repositories/main/all/explain?package=demo")
    assert (page.text.count("serves it"), page.html.count("holds it back")) == (2, 1)  # three has 2.0 alone
