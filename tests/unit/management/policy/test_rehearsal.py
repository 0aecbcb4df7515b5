"""Rehearsals of rules: what they would have refused of what was fetched, and would refuse of what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.storage.catalog.usage_counts import DAY_MS
from tests.support.images import Registry, make_image, make_index
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.osv_records import REQUESTS, write_folder

PATH = "/policy/rehearse"


async def fetch(stack: Stack, version: str, *people: str | None, repository: str = "py") -> str:
    filename = await stack.publish(f"main/{repository}", "demo", version)
    path = f"/repositories/main/{repository}/demo/{version}/{filename}"
    for who in people:
        assert (await stack.call("GET", path, who=who)).status == 200
    return path


async def rehearse(stack: Stack, *rules: dict[str, Any], **more: Any) -> Any:
    found = await stack.ok("POST", f"{PATH}?wait=true", {"rules": list(rules), **more})
    assert [each["rule"] for each in found["rules"]] == [each["name"] for each in rules]
    return found


async def move_back(stack: Stack, version: str, days: int) -> None:
    """Have a version published, and fetched once, so many days ago."""

    def move(tx: Any) -> None:
        tx.execute("UPDATE version SET published_at = published_at - ? WHERE text = ?", (days * DAY_MS, version))
        tx.execute(
            "UPDATE download_log SET day = day - ?, first_at = first_at - ?, last_at = last_at - ? "
            "WHERE item_id IN (SELECT id FROM download_item WHERE version = ?)",
            (days, days * DAY_MS, days * DAY_MS, version),
        )

    await stack.assembly.core.downloads.flush()
    await stack.assembly.core.catalog.write(move)


async def test_rules_by_name_and_version_are_tried_on_requests_and_on_what_is_stored(stack: Stack) -> None:
    await stack.add_repository("py")
    await fetch(stack, "1.0", "admin", None, None)
    await fetch(stack, "2.0", await stack.token(name="ci"))
    rules = (
        {"name": "old ones", "match": {"packages": ["dem*"], "versions": "<2"}, "reason": "malware"},
        {"name": "all", "match": {"packages": ["demo"]}, "action": "warn"},
        {"name": "others", "match": {"packages": ["x*"]}},
        {"name": "held back", "match": {"versions": "1.0"}, "action": "quarantine"},  # the block comes first
    )
    found = await rehearse(stack, *rules)
    (row,) = found["refused"]
    assert (row["rule"], row["repository"], row["package"], row["version"]) == ("old ones", "main/py", "demo", "1.0")
    assert (row["requests"], row["users"], row["more_users"]) == (3, ["admin"], False)
    assert row["first_at"] <= row["last_at"]
    assert [(each["version"], each["opens_at"]) for each in found["stored"]] == [("1.0", None)]
    assert [(each["requests"], each["versions"]) for each in found["rules"]] == [(3, 1), (4, 2), (0, 0), (3, 1)]
    assert (found["packages"], found["requests"], found["refused_requests"], found["problem"]) == (1, 4, 3, "")
    assert (await stack.call("GET", "/repositories/main/py/simple/demo/")).status == 200
    found = await rehearse(stack, {"name": "new", "match": {"versions": ">=2"}}, repository="main/py", days=1)
    assert [each["users"] for each in found["refused"]] == [["admin (token ci)"]]


async def test_a_version_is_as_old_as_it_was_when_it_was_fetched(stack: Stack) -> None:
    await stack.add_repository("py")
    await fetch(stack, "1.0", None)
    await fetch(stack, "2.0", None, None)
    await move_back(stack, "1.0", 20)
    rule = {"name": "age", "match": {"age_days": 7}}
    found = await rehearse(stack, rule, days=30)
    assert {each["version"]: each["requests"] for each in found["refused"]} == {"1.0": 1, "2.0": 2}
    (stored,) = found["stored"]
    assert (stored["version"], stored["opens_at"] is None) == ("2.0", False)
    found = await rehearse(stack, rule, days=10)
    assert [each["version"] for each in found["refused"]] == ["2.0"]


async def test_of_what_is_gone_only_the_names_are_known(stack: Stack) -> None:
    await stack.add_repository("py")
    await fetch(stack, "1.0", None)
    await stack.assembly.core.downloads.flush()
    await stack.ok("DELETE", "/package/main%2Fpy/demo?confirm=demo")
    found = await rehearse(stack, {"name": "age", "match": {"age_days": 7}})
    (row,) = found["refused"]
    assert (row["package"], row["version"], row["missing"]) == ("demo", "1.0", "the time of publication")
    licences = {"name": "gpl", "match": {"licences": ["GPL*"]}}
    found = await rehearse(stack, {**licences, "missing": "allow"})
    assert (found["refused"], found["requests"]) == ([], 1)
    (rule,) = found["rules"]
    assert (rule["requests"], rule["passed_requests"], rule["missing_requests"]) == (0, 1, 0)
    found = await rehearse(stack, licences)  # as it would be stored
    (rule,) = found["rules"]
    assert (rule["missing"], rule["requests"], rule["passed_requests"], rule["missing_requests"]) == ("block", 1, 0, 1)
    assert (await rehearse(stack, licences, repository="main/py"))["stored"] == []


async def test_each_file_of_a_version_is_tried_as_it_is_served(stack: Stack) -> None:
    await stack.add_repository("py")
    paths = {}
    for kind in ("wheel", "sdist"):
        filename = await stack.publish("main/py", "demo", "1.0", sdist=kind == "sdist")
        paths[kind] = f"/repositories/main/py/demo/1.0/{filename}"
        assert (await stack.call("GET", paths[kind])).status == 200
    rule = {"name": "scripts", "match": {"install_scripts": True}}
    found = await rehearse(stack, rule)
    sdist = paths["sdist"].rpartition("/")[2]
    assert [(each["version"], each["file"]) for each in found["stored"]] == [("1.0", sdist)]
    assert [(each["version"], each["file"], each["requests"]) for each in found["refused"]] == [("1.0", sdist, 1)]
    await stack.ok("PUT", "/repository/main%2Fpy/config/policy", {"rules": [rule]})
    assert [(await stack.call("GET", paths[kind])).status for kind in ("wheel", "sdist")] == [200, 403]


async def test_advisories_decide_if_they_are_known(make_stack: Any, tmp_path: Path) -> None:
    stack = await make_stack(advisories__source=str(write_folder(tmp_path / "osv", [REQUESTS])))
    await stack.add_repository("py")
    for version in ("2.28.1", "2.31.0"):
        filename = await stack.publish("main/py", "requests", version)
        await stack.call("GET", f"/repositories/main/py/requests/{version}/{filename}", who=None)
    while (await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    found = await rehearse(
        stack,
        {"name": "moderate", "match": {"advisories": "moderate"}},
        {"name": "critical", "match": {"advisories": "critical"}},
        repository="main/py",
    )
    assert [(each["version"], each["requests"]) for each in found["refused"]] == [("2.28.1", 1)]
    assert [(each["requests"], each["versions"]) for each in found["rules"]] == [(1, 1), (0, 0)]


async def test_images_are_tried_by_what_is_known_of_their_inside(stack: Stack) -> None:
    await stack.add_repository("images", format="docker", config={"type": "Hosted"})
    registry = Registry(stack)
    for tag, settings in (("root", {}), ("app", {"User": "app"})):
        await registry.push(make_image(tag, settings=settings), tag)
    rule = {"name": "root", "match": {"contents": ["root_user"]}}
    found = await rehearse(stack, {**rule, "missing": "block"})
    assert sorted(each["version"] for each in found["stored"]) == ["app", "root"]  # they were not looked into
    await stack.ok("PUT", "/policy/rules", {"rules": [{**rule, "action": "warn"}]})
    for tag in ("root", "app"):
        assert (await stack.call("GET", f"/v2/main/images/app/manifests/{tag}")).status == 200
    found = await rehearse(stack, {**rule, "missing": "block"})
    assert [each["version"] for each in found["stored"]] == ["root"]


async def test_images_are_tried_by_tag_and_digest(stack: Stack) -> None:
    moving = {"type": "Hosted", "push_rules": {"allow_tag_overwrite": True}}
    await stack.add_repository("images", format="docker", config=moving)
    registry = Registry(stack)
    image, other = make_image("one"), make_image("two")
    await registry.push(image, "v1")
    await registry.push(other, "v2")
    for tag in ("v1", "v2"):
        await stack.call("GET", f"/v2/main/images/app/manifests/{tag}")
    found = await rehearse(stack, {"name": "tags", "match": {"versions": "v1"}})
    assert [(each["version"], each["requests"]) for each in found["refused"]] == [("v1", 1)]
    assert [each["version"] for each in found["stored"]] == ["v1"]
    found = await rehearse(stack, {"name": "digest", "match": {"digests": [other.digest]}})
    assert [each["version"] for each in found["refused"]] == ["v2"]
    await registry.push(make_index([image, other]), "both")
    found = await rehearse(stack, {"name": "digest", "match": {"digests": [other.digest]}})
    assert sorted(each["version"] for each in found["stored"]) == ["both", "v2"]
    await registry.push(other, "v1")  # who fetched it by this name got another one then
    found = await rehearse(stack, {"name": "digest", "match": {"digests": [other.digest]}})
    assert [each["version"] for each in found["refused"]] == ["v2"]
    found = await rehearse(stack, {"name": "tags", "match": {"versions": "v1"}})
    assert [(each["version"], each["requests"]) for each in found["refused"]] == [("v1", 1), ("v2", 1)]


@pytest.mark.parametrize(
    "body",
    [
        {"rules": []},
        {"rules": [{"name": "x"}, {"name": "X"}]},
        {"rules": [{"name": "x", "match": {"versions": "1||"}}]},
        {"rules": [{"name": "x"}], "days": 0},
        {"rules": [{"name": "x"}], "repository": "main/none"},
        {"rules": [{"name": "x", "action": "refuse"}]},
    ],
    ids=["none", "names", "range", "days", "repository", "action"],
)
async def test_wrong_rules_are_refused(stack: Stack, body: Any) -> None:
    assert (await stack.api("POST", PATH, body)).status == 422
    assert (await stack.ok("GET", "/job"))["items"] == []


async def test_a_version_that_differs_from_the_one_before_is_refused_as_far_as_its_bytes_were_read(
    stack: Stack,
) -> None:
    await stack.add_repository("js", format="npm", config={"type": "Hosted"})
    for version, more in (("1.0.0", {}), ("1.0.1", {"scripts": {"install": "x"}}), ("1.0.2", {})):
        tarball = make_tarball("demo", version, manifest=make_manifest("demo", version, **more))
        body = make_publish("demo", version, tarball=tarball, **more)
        assert (await stack.call("PUT", "/repositories/main/js/demo", raw=body, who="admin")).status == 201
    rule = {"name": "differs", "match": {"differs": ["install_script"]}, "missing": "quarantine"}
    paths = [f"/repositories/main/js/demo/-/demo-{version}.tgz" for version in ("1.0.0", "1.0.1", "1.0.2")]
    for path in paths:
        assert (await stack.call("GET", path, who="admin")).status == 200
    found = await rehearse(stack, rule, repository="main/js")
    assert {(each["version"], bool(each["missing"])) for each in found["stored"]} == {("1.0.1", True), ("1.0.2", True)}
    await stack.ok("PUT", "/repository/main%2Fjs/config/policy", {"rules": [rule]})
    assert [(await stack.call("GET", path, who="admin")).status for path in paths] == [200, 403, 200]
    found = await rehearse(stack, rule, repository="main/js")
    assert [(each["version"], each["missing"]) for each in found["stored"]] == [("1.0.1", "")]
    assert [(each["version"], each["requests"]) for each in found["refused"]] == [("1.0.1", 1)]
