"""Rules about what packages declare and what is known of them, and who may do what, by API."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.storage.catalog.server import policy, repositories
from tests.support.conda_packages import make_conda
from tests.support.gems import make_gem
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish
from tests.support.osv_records import REQUESTS, write_folder
from tests.support.upstreams.python import PythonUpstream

BAD = "requests-2.28.1-"


async def set_rule(stack: Stack, repository: str, **fields: Any) -> None:
    rules = {"rules": [{"name": "no", **fields}]}
    await stack.ok("PUT", f"/repository/main%2F{repository}/config/policy", rules)


async def shown(stack: Stack, path: str) -> str:
    return (await stack.call("GET", f"/repositories/main/{path}")).body.decode()


async def test_advisories_of_a_severity_hide_versions_as_soon_as_they_are_loaded(
    make_stack: Any, tmp_path: Path
) -> None:
    stack = await make_stack(advisories__source=str(write_folder(tmp_path / "osv", [REQUESTS])))
    await stack.add_repository("py")
    for version in ("2.28.1", "2.31.0"):
        await stack.publish("main/py", "requests", version)
    await set_rule(stack, "py", match={"advisories": "moderate"}, missing="allow")
    await shown(stack, "py/simple/requests/")  # they may be loaded already
    while (await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    page = await shown(stack, "py/simple/requests/")
    assert (BAD in page, "requests-2.31.0-" in page) == (False, True)
    refused = await stack.call("GET", "/repositories/main/py/requests/2.28.1/requests-2.28.1-py3-none-any.whl")
    assert refused.status == 403
    await set_rule(stack, "py", match={"advisories": "CVE-0000-1"}, missing="block")
    assert BAD in await shown(stack, "py/simple/requests/")  # what is known has another id, and is complete


@pytest.mark.parametrize("status", ["active", "archived"])
async def test_a_python_project_of_which_rules_hide_all_is_quarantined_and_says_why(stack: Stack, status: str) -> None:
    await stack.add_repository("py", visibility="private")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    await stack.publish("main/py", "requests", "2.28.1")
    await stack.publish("main/py", "requests", "2.31.0")
    body = {"status": status, "reason": "ours"}
    headers = {"Accept": "application/vnd.pypi.simple.v1+json", "Content-Type": "application/json"}
    changed = await stack.call("PUT", "/repositories/main/py/pypi/requests/status", body, headers=headers)
    assert changed.status == 200
    block = {"repository": "main/py", "package": "requests", "versions": "<2.30", "reason": "steals keys"}
    await stack.ok("POST", "/policy/blocks", block)

    async def status_in(name: str) -> dict[str, str]:
        reply = await stack.call("GET", f"/repositories/main/{name}/simple/requests/", headers=headers)
        found: dict[str, str] = reply.json["project-status"]
        return found

    assert await status_in("py") == {"status": status, "reason": "ours"}
    made = await stack.ok("POST", "/policy/blocks", {**block, "versions": "*"})
    for name, where in (("py", "main/py"), ("all", "a member of main/all")):
        found = await status_in(name)
        page = await shown(stack, f"{name}/simple/requests/")
        if status == "active":
            why = f"every version of requests is hidden: 2.31.0 is blocked by a block of {where}: steals keys"
            assert (found["status"], why in found["reason"]) == ("quarantined", True), found
            assert f'<meta name="pypi:project-status-reason" content="{why}' in page
        else:
            assert found == {"status": status, "reason": "ours"}
        assert "<a " not in page
    stranger = await stack.call("GET", "/repositories/main/py/simple/requests/", who=None)
    assert (stranger.status, b"steals" in stranger.body) == (401, False)
    await stack.ok("DELETE", f"/policy/blocks/{made['id']}")
    assert await status_in("py") == {"status": status, "reason": "ours"}


async def test_what_is_not_known_decides_by_the_rule_and_is_named(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.publish("main/py", "requests", "2.28.1")
    await set_rule(stack, "py", match={"advisories": "any"}, missing="allow")
    assert BAD in await shown(stack, "py/simple/requests/")
    found = await stack.ok("GET", "/explain?repository=main/py&package=requests&version=2.28.1")
    assert found["version"]["not_known"] == [
        {"repository": "main/py", "rule": "no", "missing": "whether it has vulnerabilities"}
    ]
    await set_rule(stack, "py", match={"advisories": "any"})
    assert BAD not in await shown(stack, "py/simple/requests/")
    found = await stack.ok("GET", "/explain?repository=main/py&package=requests&version=2.28.1")
    assert "whether it has vulnerabilities is not known" in found["sentence"]


@pytest.mark.parametrize(
    ("licence", "hidden"), [("GPL-3.0-only", True), ("(MIT OR GPL-3.0-only)", True), ("MIT", False)]
)
async def test_licences_and_install_scripts_of_npm_packages(stack: Stack, licence: str, hidden: bool) -> None:
    await stack.add_repository("npm", format="npm")
    body = make_publish("demo", "1.0.0", license=licence, scripts={"postinstall": "x"})
    headers = {"Content-Type": "application/json"}
    assert (await stack.call("PUT", "/repositories/main/npm/demo", raw=body, headers=headers)).status == 201
    await set_rule(stack, "npm", match={"licences": ["GPL-*"]})
    assert ('"1.0.0":' not in await shown(stack, "npm/demo")) is hidden
    await set_rule(stack, "npm", match={"install_scripts": True, "licences": ["MIT"]})
    assert ('"1.0.0":' not in await shown(stack, "npm/demo")) is ("MIT" in licence)


async def test_licences_of_conda_packages(stack: Stack) -> None:
    await stack.add_repository("channel", format="conda")
    data = make_conda("demo", "1.0", license="GPL-2.0-or-later")
    assert (await stack.call("PUT", "/repositories/main/channel/noarch/demo-1.0-py_0.conda", raw=data)).status == 201
    await set_rule(stack, "channel", match={"licences": ["gpl*"]})
    assert "demo-1.0" not in await shown(stack, "channel/noarch/repodata.json")


async def test_only_admins_of_a_repository_change_its_rules(stack: Stack) -> None:
    await stack.add_repository("py", config={"type": "Hosted", "policy": {"rules": [{"name": "no"}]}})
    for name, actions in (("ann", ("edit", "admin")), ("bob", ("edit",))):
        await stack.add_user(name)
        await stack.grant(name, "main/py", "read", *actions)
    path = "/repository/main%2Fpy/config/policy"
    for method, given in (
        ("PATCH", {"rules": []}),
        ("PUT", {}),
        ("PUT", {"rules": [{"name": "no", "action": "warn"}]}),
    ):
        refused = await stack.api(method, path, given, who="bob")
        assert (refused.status, b"action admin in main/py" in refused.body) == (403, True), (method, given)
    refused = await stack.api("PATCH", "/repository/main%2Fpy", {"config": {"type": "Hosted"}}, who="bob")
    assert refused.status in (403, 422)
    assert (await stack.ok("GET", path, who="bob"))["rules"] == [{"name": "no"}]
    same = {"rules": [{"name": "no"}], "allow_overwrite": True}
    assert (await stack.api("PUT", path, same, who="bob")).status == 200
    assert (await stack.api("PATCH", path, {"rules": []}, who="ann")).status == 200


async def test_rights(stack: Stack) -> None:
    await stack.add_repository("py", visibility="private")
    await stack.add_repository("other", visibility="private")
    await stack.add_user("ann")
    await stack.add_user("bob")
    await stack.grant("ann", "main/py", "read", "edit", "admin")
    await stack.grant("bob", "main/py", "read", "edit")
    body = {"repository": "main/py", "package": "demo"}

    async def block(who: str | None, **more: Any) -> int:
        return int((await stack.api("POST", "/policy/blocks", body | more, who=who)).status)

    assert await block(None) == 401
    assert await block("bob") == 403
    assert [await block("ann", repository=each) for each in ("main/*", "main/other", "main/none")] == [403, 404, 404]
    assert await block("ann") == 201
    assert await block("admin", repository="main/*") == 201
    seen = {who: await stack.ok("GET", "/policy/blocks", who=who) for who in ("ann", "bob", "admin")}
    assert {who: len(each) for who, each in seen.items()} == {"ann": 1, "bob": 0, "admin": 2}
    both = [each["id"] for each in seen["admin"]]
    for who, index, status in (("bob", 0, 404), ("ann", 1, 404), ("ann", 0, 204), ("admin", 1, 204)):
        assert (await stack.api("DELETE", f"/policy/blocks/{both[index]}", who=who)).status == status
    assert (await stack.api("GET", "/policy/rules", who="ann")).status == 403
    await stack.publish("main/py", "demo", "1.0")
    await set_rule(stack, "py", action="quarantine")
    await shown(stack, "py/simple/demo/")
    await stack.assembly._proxies.rule_matches.flush()
    [held] = (await stack.ok("GET", "/policy/quarantine", who="ann"))["items"]
    assert (await stack.ok("GET", "/policy/quarantine", who="bob"))["items"] == []
    assert b'"subject":"main/py/demo@1.0"' in (await stack.api("GET", "/events?type=package.quarantined")).body
    path = f"/policy/quarantine/{held['id']}/approve"
    assert (await stack.api("POST", path, {}, who="bob")).status == 404
    assert (await stack.api("POST", path, {"reason": "fine"}, who="ann")).status == 200
    actions = [each["action"] for each in await stack.audited()]
    assert {"policy.block", "policy.unblock", "policy.approve"} <= {*actions}


@pytest.mark.parametrize("extensions", ["extensions: []\n", "extensions:\n- ext/extconf.rb\n", ""])
async def test_gems_with_extensions_run_a_program(stack: Stack, extensions: str) -> None:
    await stack.add_repository("gems", format="ruby")
    gem = make_gem("demo", "1.0.0", extra=extensions.rstrip("\n"))
    headers = {"Content-Type": "application/octet-stream"}
    assert (await stack.call("POST", "/repositories/main/gems/api/v1/gems", raw=gem, headers=headers)).status == 200
    await set_rule(stack, "gems", match={"install_scripts": True}, missing="allow")
    assert ("1.0.0 " not in await shown(stack, "gems/info/demo")) is ("conf" in extensions)
    await set_rule(stack, "gems", match={"install_scripts": True})
    assert ("1.0.0 " not in await shown(stack, "gems/info/demo")) is ("[]" not in extensions)


@pytest.mark.parametrize(
    ("format", "given", "package", "versions"),
    [
        ("conda", "demo==1.2", "demo", "1.2"),
        ("npm", "@acme/x@1.*", "@acme/x", "1.*"),
        ("maven", "com.example:demo:1.2", "com.example:demo", "1.2"),
        ("python", "Demo", "Demo", ""),
        ("docker", "team/app@v1", "team/app", "v1"),
        ("npm", "left-*", "left-*", ""),
    ],
)
async def test_a_block_is_of_what_was_named(stack: Stack, format: str, given: str, package: str, versions: str) -> None:
    await stack.add_repository("it", format=format)
    made = await stack.ok("POST", "/policy/blocks", {"repository": "main/it", "package": given})
    assert (made["package"], made["versions"]) == (package, versions)


async def test_a_block_ends_in_the_future_or_never(stack: Stack) -> None:
    await stack.add_repository("py")
    given = {"repository": "main/py", "package": "demo"}
    refused = await stack.api("POST", "/policy/blocks", {**given, "until": "2020-01-01T00:00:00Z"})
    assert (refused.status, refused.pointer) == (422, "/until")
    assert await stack.ok("GET", "/policy/blocks") == []
    made = await stack.ok("POST", "/policy/blocks", {**given, "until": "2999-01-01T00:00:00Z"})
    assert str(made["until"]).startswith("2999-01-01")


async def test_no_rule_is_about_what_cannot_be_a_name(stack: Stack) -> None:
    """Else who writes it believes that something is refused."""
    await stack.add_repository("channel", format="conda")
    for repository in ("main/channel", "*"):
        given = {"repository": repository, "package": "demo//1.2"}
        refused = await stack.api("POST", "/policy/blocks", given)
        assert (refused.status, b"no package can be called 'demo//1.2'" in refused.body) == (422, True)
        assert b'"pointer":"/package"' in refused.body
    rule = {"name": "no", "match": {"packages": ["demo-*", "demo//2"]}}
    refused = await stack.api("PUT", "/repository/main%2Fchannel/config/policy", {"rules": [rule]})
    assert (refused.status, b"/rules/0/match/packages/1" in refused.body) == (422, True)
    assert (await stack.api("PUT", "/policy/rules", {"rules": [rule]})).status == 422


@pytest.mark.parametrize("of_server", [False, True])
async def test_a_stored_rule_that_is_refused_now_is_named_and_stops_no_other_change(
    stack: Stack, *, of_server: bool
) -> None:
    old = {"name": "old", "match": {"packages": ["no//name"]}}
    new = {"name": "new", "match": {"packages": ["demo"]}}
    await stack.add_repository("py")
    core = stack.assembly.core
    if of_server:
        path, shown_at = "/policy/rules", "/policy/rules"
        await core.catalog.write(policy.set_server_rules, [old])
    else:
        path, shown_at = "/repository/main%2Fpy/config/policy", "/repository/main%2Fpy"
        repository = core.registry.find_path("main/py")
        assert repository is not None
        change = {"settings": {"policy": {"rules": [old]}}, "now_ms": 1}
        await core.catalog.write(repositories.update_repository, repository.id, **change)
    (warning,) = (await stack.ok("GET", shown_at))["warnings"]
    assert "the rule 'old' would be refused now: no package can be called 'no//name'" in warning
    await stack.ok("PUT", path, {"rules": [old, new]})
    if not of_server:
        for shown in (await stack.ok("GET", shown_at, who=None), (await stack.ok("GET", "/repository"))["items"][0]):
            assert shown["warnings"] == ["policy: rules of the repository that would be refused now: 1"]
        await stack.ok("PUT", "/repository/main%2Fpy/config/page", "# Packages")
    rehearsed = {"rules": [old, new], "repository": "" if of_server else "main/py"}
    await stack.ok("POST", "/policy/rehearse", rehearsed)
    for changed in ({**old, "reason": "other"}, {**old, "name": "NEW"}):
        refused = await stack.api("PUT", path, {"rules": [changed, new]})
        assert refused.status == 422
    await stack.ok("PUT", path, {"rules": [new]})
    assert (await stack.ok("GET", shown_at))["warnings"] == []
    assert (await stack.api("PUT", path, {"rules": [old, new]})).status == 422


MISSING = {"age": {"age_days": 7}, "licences": {"licences": ["GPL-*"]}, "scripts": {"install_scripts": True}}


@pytest.mark.parametrize("place", ["repository", "server"])
async def test_a_new_rule_says_what_missing_data_mean(stack: Stack, place: str) -> None:
    await stack.add_repository(
        "py", config={"type": "Hosted", "policy": {"rules": [{"name": "s", "match": {"age_days": 1}}]}}
    )
    path, key = "/repository/main%2Fpy/config/policy", "rules"
    if place == "repository":
        assert [each["missing"] for each in (await stack.ok("GET", path))[key]] == ["block"]
    else:
        path = "/policy/rules"
    rules = [
        {"name": "names", "match": {"packages": ["demo"]}},
        {"name": "digests", "match": {"digests": [f"sha256:{'a' * 64}"]}},
        *({"name": name, "match": match} for name, match in MISSING.items()),
        {"name": "lax", "match": {"age_days": 7}, "missing": "allow"},
    ]
    await stack.ok("PUT", path, {"rules": rules})
    stored = (await stack.ok("GET", path))["rules"]
    assert [each.get("missing") for each in stored] == [None, None, "block", "block", "block", "allow"]


async def test_a_stored_rule_that_says_nothing_of_missing_data_keeps_its_meaning(stack: Stack) -> None:
    await stack.add_repository("py")
    old = {"name": "old", "match": {"licences": ["GPL-*"]}}
    core = stack.assembly.core
    repository = core.registry.find_path("main/py")
    assert repository is not None
    await core.catalog.write(
        repositories.update_repository, repository.id, settings={"policy": {"rules": [old]}}, now_ms=1
    )
    path = "/repository/main%2Fpy/config/policy"
    for changed, missing in (
        (old, None),
        ({**old, "reason": "ask us", "action": "warn"}, None),
        ({**old, "match": {"licences": ["AGPL-*"]}}, "block"),
    ):
        await stack.ok("PUT", path, {"rules": [changed]})
        (found,) = (await stack.ok("GET", path))["rules"]
        assert found.get("missing") == missing


@pytest.mark.parametrize(
    ("format", "match", "pointer"),
    [
        ("docker", {"licences": ["GPL-*"]}, "/rules/0/match/licences"),
        ("docker", {"advisories": "critical"}, "/rules/0/match/advisories"),
        ("conda", {"advisories": "critical"}, "/rules/0/match/advisories"),
        ("maven", {"install_scripts": True}, "/rules/0/match/install_scripts"),
        ("python", {"labels": {"stage": "dev"}}, "/rules/0/match/labels"),
        ("python", {"versions": "^1.2"}, "/rules/0/match/versions"),
    ],
)
async def test_a_condition_that_can_never_be_met_is_refused_in_one_repository(
    stack: Stack, format: str, match: Any, pointer: str
) -> None:
    await stack.add_repository("it", format=format)
    refused = await stack.api("PUT", "/repository/main%2Fit/config/policy", {"rules": [{"name": "no", "match": match}]})
    assert (refused.status, pointer.encode() in refused.body) == (422, True)
    found = await stack.ok("PUT", "/policy/rules", {"rules": [{"name": "no", "match": match}]})
    (where,) = found["formats"]
    assert where["formats"]
    assert format not in where["formats"]


@pytest.mark.parametrize("exempt", ["demo@^1.2", "demo@>=x"])
async def test_an_exemption_of_versions_that_cannot_be_read_is_refused(stack: Stack, exempt: str) -> None:
    await stack.add_repository("py")
    rule = {"name": "no", "exempt": ["demo", exempt]}
    refused = await stack.api("PUT", "/repository/main%2Fpy/config/policy", {"rules": [rule]})
    assert (refused.status, b"/rules/0/exempt/1" in refused.body) == (422, True)


@pytest.mark.parametrize(
    ("versions", "stored"),
    [("1.5", 2), ("==1.5", 2), ("<=1.5", 3), ("~=1.5", 3), ("1.5.*", 3), ("==1.5.*", 3), ("1.5.2", 1), ("9.*", 0)],
)
async def test_a_block_tells_what_it_is_about_and_refuses_that(stack: Stack, versions: str, stored: int) -> None:
    await stack.add_repository("py")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    files = {each: await stack.publish("main/py", "demo", each) for each in ("1.4", "1.5", "1.5+local", "1.5.2")}
    made = await stack.ok("POST", "/policy/blocks", {"repository": "main/all", "package": "Demo", "versions": versions})
    assert (made["stored"], made["known"], bool(made["warning"])) == (stored, None, not stored)
    page = await shown(stack, "all/simple/demo/")
    assert sum(f">{each}<" not in page for each in files.values()) == stored


@pytest.mark.parametrize(
    ("block", "stored"),
    [
        ({"package": "de*", "versions": "1.4"}, 1),
        ({"package": "nothing"}, 0),
        ({"package": "demo", "repository": "main/*"}, 2),
    ],
    ids=str,
)
async def test_a_block_counts_by_patterns_of_names_and_repositories(stack: Stack, block: Any, stored: int) -> None:
    await stack.add_repository("py")
    await stack.add_repository("other", format="npm")
    for version in ("1.4", "1.5"):
        await stack.publish("main/py", "demo", version)
    made = await stack.ok("POST", "/policy/blocks", {"repository": "main/py", **block})
    assert (made["stored"], bool(made["warning"])) == (stored, not stored)


async def test_a_block_by_digest_counts_what_has_it(stack: Stack) -> None:
    await stack.add_repository("py")
    filename = await stack.publish("main/py", "demo", "1.4")
    data = (await stack.call("GET", f"/repositories/main/py/demo/1.4/{filename}")).body
    digests = [f"sha256:{hashlib.sha256(data).hexdigest()}"]
    made = await stack.ok("POST", "/policy/blocks", {"repository": "main/py", "digests": digests})
    assert made["stored"] == 1
    made = await stack.ok("POST", "/policy/blocks", {"repository": "main/py", "digests": [f"sha256:{'0' * 64}"]})
    assert (made["stored"], made["warning"] != "") == (0, True)


@pytest.mark.parametrize(("missing", "status"), [("allow", 200), ("block", 403)])
async def test_an_undated_file_of_an_upstream_is_missing_its_date_before_and_after_it_is_kept(
    make_stack: Any, missing: str, status: int
) -> None:
    stack = await make_stack(proxy__allow_private=["127.0.0.1"])
    with PythonUpstream() as up:
        filename, _ = up.add("demo", "1.0", **{"upload-time": None})
        config = {"type": "Proxy", "proxy": {"routes": [{"url": up.simple, "name": "up"}]}}
        await stack.add_repository("mirror", config=config)
        await set_rule(stack, "mirror", match={"age_days": 7}, missing="allow")
        path = f"mirror/packages/demo/1.0/{filename}"
        for kept in (False, True):
            await set_rule(stack, "mirror", match={"age_days": 7}, missing=missing)
            assert (f">{filename}<" in await shown(stack, "mirror/simple/demo/")) is (status == 200), kept
            assert (await stack.call("GET", f"/repositories/main/{path}")).status == status, kept
            await set_rule(stack, "mirror", match={"age_days": 7}, missing="allow")
            assert (await stack.call("GET", f"/repositories/main/{path}")).status == 200


async def test_a_block_counts_what_kept_documents_of_upstreams_list(make_stack: Any) -> None:
    stack = await make_stack(proxy__allow_private=["127.0.0.1"])
    with PythonUpstream() as up:
        for version in ("1.4", "1.5", "1.5+local"):
            up.add("demo", version)
        config = {"type": "Proxy", "proxy": {"routes": [{"url": up.simple, "name": "up"}]}}
        await stack.add_repository("mirror", config=config)
        block = {"repository": "main/mirror", "package": "demo", "versions": "1.5"}
        made = await stack.ok("POST", "/policy/blocks", block)
        assert (made["stored"], made["known"], made["warning"] != "") == (0, None, True)
        await shown(stack, "mirror/simple/demo/")
        made = await stack.ok("POST", "/policy/blocks", block)
        assert (made["stored"], made["known"], made["warning"]) == (0, 2, "")
