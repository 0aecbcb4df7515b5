"""The rules about a wheel hold for the conda package that is made of it: one decision is that of both."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.formats.conda.wheels import following
from pkgrepo.storage.catalog.usage_counts import DAY_MS
from tests.support.dated import now_exactly
from tests.support.memory_server import Stack, running_stacks
from tests.support.osv_records import write_folder
from tests.support.python_packages import make_wheel

from .test_following import ALWAYS, put, shown

CHANNEL = "/repositories/main/py/conda"
DOCUMENTS = ("noarch/repodata.json", "noarch/current_repodata.json", "noarch/run_exports.json")
MALWARE = {
    "id": "MAL-2026-1",
    "summary": "It steals keys",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [{"package": {"ecosystem": "PyPI", "name": "torch"}, "versions": ["1.0"]}],
}


@pytest_twisted.async_yield_fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(following, "EVERY_S", 0.005)
    async with running_stacks(tmp_path) as make:
        source = str(write_folder(tmp_path / "osv", [MALWARE]))
        stack = await make(advisories__source=source, advisories__block_malware=False)  # of which rules are asked
        await stack.add_repository("py", config=ALWAYS)
        yield stack


async def wheel(server: Stack, project: str, version: str = "1.0") -> bytes:
    made = make_wheel(project, version)
    await put(server, *made)
    await shown(server)
    return made[1]


async def block(server: Stack, package: str = "", repository: str = "main/py", **more: Any) -> Any:
    body = {"repository": repository, "package": package, "reason": "malware", **more}
    return await server.ok("POST", "/policy/blocks", body)


async def set_rules(server: Stack, *rules: Any, name: str = "py") -> None:
    await server.ok("PUT", f"/repository/main%2F{name}/config/policy", {"rules": list(rules)} if rules else {})


async def file(server: Stack, name: str, channel: str = CHANNEL) -> Any:
    return await server.call("GET", f"{channel}/noarch/{name}-py_0.conda", who=None)


async def check_hidden(server: Stack, name: str, channel: str = CHANNEL, why: bytes = b"malware") -> None:
    reply = await file(server, name, channel)
    assert (reply.status, why in reply.body) == (403, True), reply.body
    for document in DOCUMENTS:
        listed = await server.call("GET", f"{channel}/{document}", who=None)
        assert (listed.status, name.encode() in listed.body) == (200, False), document
    about = (await server.call("GET", f"{channel}/channeldata.json", who=None)).json["packages"]
    project, _, version = name.rpartition("-")
    assert about.get(project, {}).get("version") != version
    found = await server.call("GET", f"/api/explain?repository=main/py/conda&package={project}&version={version}")
    assert channel != CHANNEL or found.json["outcome"] in ("blocked", "quarantined"), found.body


async def check_shown(server: Stack, name: str, channel: str = CHANNEL) -> None:
    assert (await file(server, name, channel)).status == 200
    listed = await server.call("GET", f"{channel}/noarch/repodata.json", who=None)
    assert name.encode() in listed.body


@pytest.mark.parametrize(
    ("project", "named", "conda"),
    [
        ("demo", "demo", "demo-1.0"),
        ("EVIL_tool", "EVIL_tool", "evil-tool-1.0"),
        ("Under_Score", "under.score", "under-score-1.0"),
        ("dot.ted", "dot.ted", "dot-ted-1.0"),
        ("torch", "torch", "pytorch-1.0"),
        ("typing_extensions", "typing_extensions", "typing_extensions-1.0"),
    ],
)
async def test_a_block_by_name_holds_for_the_copy(server: Stack, project: str, named: str, conda: str) -> None:
    await wheel(server, project)
    await wheel(server, "other")
    await check_shown(server, conda)
    uid = (await block(server, named, versions="==1.0"))["id"]
    await check_hidden(server, conda)
    await check_shown(server, "other-1.0")
    await server.ok("DELETE", f"/policy/blocks/{uid}")
    await check_shown(server, conda)


async def test_a_block_by_the_digest_of_the_wheel_or_of_the_copy_holds(server: Stack) -> None:
    data = await wheel(server, "torch")
    copy = (await file(server, "pytorch-1.0")).body
    for each in (data, copy):
        uid = (await block(server, digests=[f"sha256:{hashlib.sha256(each).hexdigest()}"]))["id"]
        await check_hidden(server, "pytorch-1.0")
        await server.ok("DELETE", f"/policy/blocks/{uid}")
    await check_shown(server, "pytorch-1.0")


async def test_rules_around_the_parent_hold_around_the_copy(server: Stack) -> None:
    await wheel(server, "torch")
    await server.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    channel = "/repositories/main/all/conda"
    await check_shown(server, "pytorch-1.0", channel)
    await set_rules(server, {"name": "no", "match": {"packages": ["torch"]}, "reason": "malware"}, name="all")
    await check_hidden(server, "pytorch-1.0", channel)
    await check_shown(server, "pytorch-1.0")
    await set_rules(server, name="all")
    await server.ok("PUT", "/policy/rules", {"rules": [{"name": "no", "match": {"packages": ["torch"]}}]})
    await check_hidden(server, "pytorch-1.0", channel, b"'no'")
    await check_hidden(server, "pytorch-1.0", why=b"'no'")


async def test_the_names_of_the_channel_are_no_names_of_projects(server: Stack) -> None:
    await wheel(server, "torch")
    await set_rules(
        server,
        {"name": "others", "match": {"packages": ["pytorch"]}},
        {"name": "all", "match": {"packages": ["*"]}, "exempt": ["torch"]},
    )
    await check_shown(server, "pytorch-1.0")
    await set_rules(server)
    for where in ("main/py/conda", "main/py*"):
        uid = (await block(server, "pytorch", where))["id"]
        await check_hidden(server, "pytorch-1.0")
        assert (await server.call("GET", "/repositories/main/py/simple/torch/")).status == 200
        await server.ok("DELETE", f"/policy/blocks/{uid}")
    await check_shown(server, "pytorch-1.0")


async def waiting(server: Stack) -> list[Any]:
    await server.assembly._proxies.rule_matches.flush()
    found: list[Any] = (await server.ok("GET", "/policy/quarantine"))["items"]
    return found


async def test_one_decision_on_the_wheel_is_that_on_its_copy(server: Stack) -> None:
    await wheel(server, "torch")
    await set_rules(server, {"name": "look", "action": "quarantine", "match": {"packages": ["torch"]}})
    await check_hidden(server, "pytorch-1.0", why=b"'look'")
    [held] = await waiting(server)
    assert (held["repository"], held["package"], held["version"]) == ("main/py", "torch", "1.0")
    await server.ok("POST", f"/policy/quarantine/{held['id']}/approve", {"reason": "fine"})
    await check_shown(server, "pytorch-1.0")
    await server.ok("POST", f"/policy/quarantine/{held['id']}/deny", {"reason": "malware"})
    await check_hidden(server, "pytorch-1.0")
    await set_rules(server)
    await check_hidden(server, "pytorch-1.0")


async def test_advisories_on_the_project_are_on_its_copy(server: Stack) -> None:
    await wheel(server, "torch")
    await wheel(server, "torch", "2.0")
    while (await server.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    for wanted in ("critical", "MAL-2026-1"):
        await set_rules(server, {"name": "bad", "match": {"advisories": wanted}, "reason": "malware"})
        await check_hidden(server, "pytorch-1.0")
        await check_shown(server, "pytorch-2.0")


async def test_a_view_of_the_channel_is_as_then_after_a_yank_and_its_end(server: Stack) -> None:
    await wheel(server, "torch")
    await server.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    then = now_exactly()
    view = f"/repositories/main/py@{then}/conda"
    await check_shown(server, "pytorch-1.0", view)
    for change in ("yank", "unyank"):
        path = f"/repositories/main/py/pypi/torch/1.0/{change}"
        assert (await server.call("POST", path, {"reason": "bad"})).status < 300
        listed = await shown(server)
        assert listed == ([] if change == "yank" else ["pytorch-1.0-py_0.conda"])
        await check_shown(server, "pytorch-1.0", view)
        await check_shown(server, "pytorch-1.0", f"/repositories/main/all@{then}/conda")
        if change == "yank":
            yanked = f"/repositories/main/py@{now_exactly()}/conda"
    listed = await server.call("GET", f"{yanked}/noarch/repodata.json", who=None)
    assert b"pytorch" not in listed.body


async def test_a_rehearsal_tries_rules_on_what_a_copy_is_made_of(server: Stack) -> None:
    await wheel(server, "EVIL_tool")
    await wheel(server, "other")
    for rule in (
        {"packages": ["evil.tool"]},
        {"packages": ["EVIL_tool"], "versions": "~=1.0"},
        {"packages": ["evil-tool"], "install_scripts": False},
    ):
        rules = [{"name": "r", "match": rule}]
        found = await server.ok("POST", "/policy/rehearse?wait=true", {"rules": rules})
        would = {(each["repository"], each["package"].lower().replace("_", "-")) for each in found["stored"]}
        assert would == {("main/py", "evil-tool"), ("main/py/conda", "evil-tool")}, rule
        await server.ok("PUT", "/policy/rules", {"rules": rules})
        assert (await file(server, "evil-tool-1.0")).status == 403, rule
        assert (await file(server, "other-1.0")).status == 200
        await server.ok("PUT", "/policy/rules", {"rules": []})


async def test_a_rehearsal_tries_a_copy_as_old_as_it_was_when_it_was_fetched(server: Stack) -> None:
    await wheel(server, "torch", "2.0")  # of which the copy has another name
    assert (await file(server, "pytorch-2.0")).status == 200

    def move(tx: Any) -> None:
        tx.execute("UPDATE version SET published_at = published_at - ?", (20 * DAY_MS,))
        tx.execute("UPDATE download_log SET day = day - 20, first_at = first_at - ?", (20 * DAY_MS,))

    await server.assembly.core.downloads.flush()
    await server.assembly.core.catalog.write(move)
    rules = [{"name": "young", "match": {"packages": ["torch"], "age_days": 7}}]
    found = await server.ok("POST", "/policy/rehearse?wait=true", {"rules": rules})
    assert [(each["package"], each["version"]) for each in found["refused"]] == [("pytorch", "2.0")]
    assert found["stored"] == []
