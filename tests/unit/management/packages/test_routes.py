"""Packages, versions, files and trees: listed, shown, yanked, deleted."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import StorageFull
from pkgrepo.repositories import descriptions
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_metadata, make_wheel


@pytest_twisted.async_yield_fixture
async def filled(stack: Stack) -> Any:
    """A repository with two packages, one of them in three versions."""
    await stack.add_repository()
    for version in ("1.0", "1.10", "1.9"):
        await stack.publish("main/py", "Demo", version)
    await stack.publish("main/py", "Demo", "1.10", sdist=True)
    await stack.publish("main/py", "other.thing", "0.1")
    yield stack


async def test_packages_are_listed_with_their_figures(filled: Stack) -> None:
    page = await filled.ok("GET", "/repository/main%2Fpy/packages?count=true", who=None)
    assert page["total"] == 2
    demo, other = page["items"]
    assert (demo["name"], demo["key"], demo["latest"], demo["versions"]) == ("Demo", "demo", "1.10", 3)
    assert demo["files"] == 7  # four distributions, and the metadata of three wheels
    assert demo["size"] > 0
    assert (demo["source"], demo["flags"]) == ("hosted", {"yanked": 0, "deprecated": 0})
    assert other["key"] == "other-thing"
    assert await filled.ok("GET", "/package/main%2Fpy/DEMO", who=None) == demo
    only = await filled.ok("GET", "/repository/main%2Fpy/packages?q=THING&count=1")
    assert ([each["key"] for each in only["items"]], only["total"]) == (["other-thing"], 1)


async def test_packages_can_be_listed_by_page_number(filled: Stack) -> None:
    first = await filled.ok("GET", "/repository/main%2Fpy/packages?page=1&per_page=1")
    second = await filled.ok("GET", "/repository/main%2Fpy/packages?page=2&per_page=1")
    third = await filled.ok("GET", "/repository/main%2Fpy/packages?page=3&per_page=1")
    assert [[each["key"] for each in page["items"]] for page in (first, second, third)] == [
        ["demo"],
        ["other-thing"],
        [],
    ]
    assert first["total"] == 2
    assert (await filled.api("GET", "/repository/main%2Fpy/packages?page=0")).status == 422


async def test_versions_are_listed_in_the_formats_order(filled: Stack) -> None:
    path = "/package/main%2Fpy/demo/versions"
    page = await filled.ok("GET", f"{path}?limit=2&count=true")
    assert ([each["version"] for each in page["items"]], page["total"]) == (["1.10", "1.9"], 3)
    rest = await filled.ok("GET", f"{path}?limit=2&cursor={page['next']}")
    assert ([each["version"] for each in rest["items"]], rest["next"]) == (["1.0"], None)
    assert page["items"][0]["files"] == 3
    assert page["items"][0]["publisher"] == "admin"
    assert (await filled.api("GET", f"{path}?cursor=Inh4Ig")).status == 422


async def test_a_version_shows_its_files_with_all_digests(filled: Stack) -> None:
    shown = await filled.ok("GET", "/package/main%2Fpy/Demo/versions/v1.10.0", who=None)
    assert (shown["package"], shown["version"], shown["state"]) == ("Demo", "1.10", "live")
    wheel = next(file for file in shown["files"] if file["name"].endswith(".whl"))
    assert len(wheel["digests"]["sha256"]) == 64
    assert wheel["url"].startswith("http://registry.example/repositories/main/py/")
    served = await filled.call("GET", wheel["url"].removeprefix("http://registry.example"), who=None)
    assert (served.status, len(served.body)) == (200, wheel["size"])


@pytest.mark.parametrize(
    "path", ["/demo/versions/2.0", "/demo/versions/nonsense!", "/none", "/none/versions", "/no%20name/versions/1"]
)
async def test_missing_packages_and_versions_are_answered_with_404(filled: Stack, path: str) -> None:
    assert (await filled.api("GET", f"/package/main%2Fpy{path}")).status == 404


async def test_the_readme_is_sent_as_text_that_no_browser_runs(stack: Stack) -> None:
    await stack.add_repository()
    text = "# Hello <script>alert(1)</script>"
    metadata = make_metadata("demo", "1.0", fields=[("Description-Content-Type", "text/markdown")], description=text)
    await stack.publish("main/py", "demo", "1.0", metadata=metadata)
    path = "/package/main%2Fpy/demo/versions/1.0/readme"
    reply = await stack.api("GET", path)
    assert reply.status == 200
    assert text in reply.body.decode()
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["x-readme-type"] == "text/markdown"
    assert "sandbox" in reply.headers["content-security-policy"]
    marked = await stack.api("GET", path, headers={"Accept": "text/markdown"})
    assert marked.headers["content-type"].startswith("text/markdown")
    await stack.publish("main/py", "plain", "1.0")
    assert (await stack.api("GET", "/package/main%2Fpy/plain/versions/1.0/readme")).status == 404


async def test_a_yanked_version_has_a_reason_until_it_is_unyanked(filled: Stack) -> None:
    path = "/package/main%2Fpy/demo/versions/1.9"
    yanked = await filled.ok("POST", f"{path}/yank", {"reason": "broken\non arm"})
    assert yanked == {"package": "Demo", "version": "1.9", "state": "yanked", "reason": "broken on arm"}
    page = await filled.call("GET", "/repositories/main/py/simple/demo/")
    assert page.body.count(b"data-yanked") == 1
    assert (await filled.ok("GET", "/package/main%2Fpy/demo"))["flags"]["yanked"] == 1
    assert (await filled.ok("POST", f"{path}/unyank"))["state"] == "live"
    assert b"data-yanked" not in (await filled.call("GET", "/repositories/main/py/simple/demo/")).body
    actions = [line["action"] for line in await filled.audited(object="main/py/demo@1.9")]
    assert actions == ["version.unyank", "version.yank"]


async def test_file_names_of_a_deleted_version_cannot_be_published_again(filled: Stack) -> None:
    path = "/package/main%2Fpy/demo/versions/1.9"
    dry = await filled.ok("DELETE", f"{path}?dry_run=true")
    assert (len(dry["deleted"]), dry["dry_run"]) == (2, True)
    gone = await filled.ok("DELETE", path)
    assert (gone["deleted"], gone["dry_run"]) == (dry["deleted"], False)
    assert (await filled.api("GET", path)).status == 404
    filename, data = make_wheel("Demo", "1.9", summary="other content")
    again = await filled.call("PUT", f"/repositories/main/py/demo/1.9/{filename}", raw=data)
    assert again.status == 400


async def test_a_package_is_deleted_with_all_its_versions(filled: Stack) -> None:
    gone = await filled.ok("DELETE", "/package/main%2Fpy/demo")
    assert len(gone["deleted"]) == 7
    assert (await filled.api("GET", "/package/main%2Fpy/demo")).status == 404
    assert (await filled.call("GET", "/repositories/main/py/simple/demo/")).status == 404
    assert (await filled.ok("GET", "/repository/main%2Fpy"))["package_count"] == 1


async def test_each_path_is_deleted_or_rejected_independently(filled: Stack) -> None:
    version = await filled.ok("GET", "/package/main%2Fpy/demo/versions/1.10")
    wheel = next(file["path"] for file in version["files"] if file["name"].endswith(".whl"))
    paths = [wheel, "demo/1.0", "other.thing", "demo/7", "nothing", "nothing/1.0", wheel]
    done = await filled.ok("DELETE", "/repository/main%2Fpy/packages", {"paths": paths})
    assert done["deleted"] == [wheel, "demo/1.0", "other.thing"]
    assert done["missing"] == ["demo/7", "nothing", "nothing/1.0", wheel]
    assert done["rejected"] == []
    left = await filled.ok("GET", "/package/main%2Fpy/demo/versions/1.10")
    assert [file["name"].endswith(".tar.gz") for file in left["files"]] == [True]
    assert (await filled.api("DELETE", "/repository/main%2Fpy/packages", {"paths": []})).status == 422


async def test_a_token_for_some_packages_deletes_no_others(filled: Stack) -> None:
    token = await filled.token(
        repositories=[{"repository": "main/py", "actions": ["read", "delete"], "packages": ["demo"]}]
    )
    assert (await filled.api("GET", "/package/main%2Fpy/Demo", who=token)).status == 200
    for path in ("/package/main%2Fpy/other-thing", "/repository/main%2Fpy/packages"):  # which need no credentials
        assert (await filled.api("GET", path, who=token)).status == 200
    await filled.ok("PATCH", "/repository/main%2Fpy", {"visibility": "private"})
    assert (await filled.api("GET", "/package/main%2Fpy/other-thing", who=token)).status == 404
    listed = await filled.ok("GET", "/repository/main%2Fpy/packages", who=token)
    assert [each["name"] for each in listed["items"]] == ["Demo"]
    assert (await filled.api("DELETE", "/package/main%2Fpy/other-thing/versions/0.1", who=token)).status == 404
    assert (await filled.api("DELETE", "/package/main%2Fpy/demo/versions/1.0", who=token)).status == 200


async def test_the_tree_shows_one_level_at_a_time(filled: Stack) -> None:
    root = await filled.ok("GET", "/repository/main%2Fpy/tree/", who=None)
    assert [(each["kind"], each["path"]) for each in root["items"]] == [("folder", "packages")]
    level = await filled.ok("GET", "/repository/main%2Fpy/browse/packages")
    assert [each["name"] for each in level["items"]] == ["demo", "other-thing"]
    files = await filled.ok("GET", "/browse/main%2Fpy/packages/demo/1.10")
    assert [each["kind"] for each in files["items"]] == ["file"] * 3
    first = files["items"][0]
    assert first["digest"].startswith("sha256:")
    alone = await filled.ok("GET", f"/repository/main%2Fpy/tree/{first['path']}")
    assert alone["items"] == [first]
    assert (await filled.api("GET", "/repository/main%2Fpy/tree/nothing")).status == 404
    paged = await filled.ok("GET", "/repository/main%2Fpy/tree/packages?limit=1")
    rest = await filled.ok("GET", f"/repository/main%2Fpy/tree/packages?limit=1&cursor={paged['next']}")
    assert ([each["name"] for each in rest["items"]], rest["next"]) == (["other-thing"], None)


async def test_a_search_that_cannot_follow_the_latest_changes_says_so(
    filled: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await filled.ok("GET", "/search/packages?q=demo"))["behind"] is False
    assert (await filled.ok("GET", "/package/main%2Fpy/demo/dependents"))["behind"] is False
    assert "behind" not in await filled.ok("GET", "/repository")  # which follows no events

    def full(*_: object) -> None:
        raise StorageFull("catalog")

    monkeypatch.setattr(descriptions, "describe_packages", full)
    await filled.publish("main/py", "demo-late", "1.0", summary="Comes late")
    for query in ("q=demo", "q=demo&facets=true"):
        found = await filled.ok("GET", f"/search/packages?{query}")
        assert found["behind"] is True
        assert [each["name"] for each in found["items"]] == ["Demo", "demo-late"]  # names are known at once
    assert (await filled.ok("GET", "/activity"))["behind"] is True
    assert (await filled.ok("GET", "/package/main%2Fpy/demo/dependents"))["behind"] is True


async def test_packages_are_found_by_name_where_the_caller_may_see_them(filled: Stack) -> None:
    await filled.add_repository("shut", visibility="private")
    await filled.add_repository("veiled", visibility="hidden")
    for place in ("shut", "veiled"):
        await filled.publish(f"main/{place}", "demo-extra", "1.0")
    await filled.publish("main/py", "my-demo", "1.0")

    async def names(query: str, who: str | None = None) -> list[str]:
        found = await filled.ok("GET", f"/search/packages?{query}", who=who)
        return [f"{each['repository']}/{each['key']}" for each in found["items"]]

    assert await names("q=demo") == ["main/py/demo", "main/py/my-demo"]
    assert await names("q=demo", "admin") == [
        "main/py/demo",
        "main/shut/demo-extra",
        "main/veiled/demo-extra",
        "main/py/my-demo",
    ]
    assert await names("q=DEMO+my") == ["main/py/my-demo"]
    assert await names("q=demo&repository=main/SHUT", "admin") == ["main/shut/demo-extra"]
    assert await names("q=demo&format=pypi&limit=1") == ["main/py/demo"]
    assert await names("q=%25") == []
    assert len(await names("")) == 3
    assert (await filled.ok("GET", "/search/packages?q=demo&limit=1"))["truncated"] is True

    for place, name in (("py", "described"), ("shut", "described-too"), ("veiled", "described-as-well")):
        await filled.publish(f"main/{place}", name, "1.0", summary="Demonstrates photosynthesis")
    assert await names("q=photosynth") == ["main/py/described"]
    assert await names("q=photosynth+demon", "admin") == [
        "main/py/described",
        "main/veiled/described-as-well",
        "main/shut/described-too",
    ]
    assert (await names("q=demo"))[-1] == "main/py/described"  # names come first
    assert await names("q=demo&limit=2") == ["main/py/demo", "main/py/my-demo"]
    assert (await filled.api("GET", "/search/packages?format=cobol")).status == 422


async def test_fields_that_formats_share_are_shown_beside_the_metadata(stack: Stack) -> None:
    await stack.add_repository()
    fields = [
        ("Keywords", "fast,small"),
        ("Project-URL", "Docs, https://docs.example"),
        ("Home-page", "https://home.example"),
        ("License", "MIT"),
        ("Requires-Dist", "attrs>=20"),
    ]
    await stack.publish("main/py", "demo", "1.0", fields=fields)
    shown = await stack.ok("GET", "/package/main%2Fpy/demo/versions/1.0")
    assert (shown["keywords"], shown["license"], shown["dependencies"]) == (["fast", "small"], "MIT", ["attrs>=20"])
    assert shown["links"] == {"Docs": "https://docs.example", "Homepage": "https://home.example"}
    assert shown["metadata"]["requires_dist"] == ["attrs>=20"]


async def test_a_dry_run_deletes_no_package(filled: Stack) -> None:
    dry = await filled.ok("DELETE", "/package/main%2Fpy/demo?dry_run=true")
    assert (len(dry["deleted"]), dry["dry_run"]) == (7, True)
    assert (await filled.ok("GET", "/package/main%2Fpy/demo"))["versions"] == 3


NOTHING = {
    "items": [],
    "total": 0,
    "checked": False,
    "problem": "this server was given no advisories (advisories.source)",
}


@pytest.mark.parametrize("format_", ["python", "npm"])
async def test_without_data_nothing_is_said_of_a_version(stack: Stack, format_: str) -> None:
    await stack.add_repository("r", format=format_)
    if format_ == "python":
        await stack.publish("main/r", "app", "1.0.0")
    else:
        path, headers = "/repositories/main/r/app", {"Content-Type": "application/json"}
        assert (await stack.call("PUT", path, raw=make_publish("app", "1.0.0"), headers=headers)).status == 201
    assert await stack.ok("GET", "/package/main%2Fr/app/versions/1.0.0/advisories") == NOTHING
