"""Documents that clients write back remove nothing that rules, or the view of a time, have hidden from them."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from tests.support.dated import now_exactly
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish

VERSIONS = ("1.0.0", "1.1.0", "1.2.0", "1.3.0")
BLOCK = {"name": "bad", "match": {"packages": ["x"], "versions": "<1.3"}, "reason": "malware"}
HOLD = {**BLOCK, "action": "quarantine"}


class Npm:
    """What npm sends to one repository."""

    def __init__(self, stack: Stack, name: str = "own") -> None:
        self.stack = stack
        self.url = f"/repositories/main/{name}"

    async def ask(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        return await self.stack.call(method, f"{self.url}{path}", body, **rest)

    async def document(self, query: str = "?write=true", **rest: Any) -> Any:
        reply = await self.ask("GET", f"/x{query}", **rest)
        assert reply.status == 200, reply.body
        return reply.json

    async def unpublish(self, version: str) -> None:
        """The requests of ``npm unpublish x@VERSION`` of npm 11."""
        sent = await self.document()
        if version not in sent["versions"]:
            return
        if len(sent["versions"]) == 1:
            assert (await self.ask("DELETE", f"/x/-rev/{sent['_rev']}")).status == 200
            return
        file = sent["versions"].pop(version)["dist"]["tarball"].partition(self.url)[2]
        sent["dist-tags"] = {tag: each for tag, each in sent["dist-tags"].items() if each != version}
        sent["dist-tags"].setdefault("latest", max(sent["versions"]))
        assert (await self.ask("PUT", f"/x/-rev/{sent['_rev']}", sent)).status == 200
        rev = (await self.document())["_rev"]
        assert (await self.ask("DELETE", f"{file}/-rev/{rev}")).status == 200

    async def stored(self) -> list[str]:
        found = await self.stack.ok("GET", "/package/main%2Fown/x/versions")
        return sorted(each["version"] for each in found["items"])


@pytest_twisted.async_yield_fixture
async def npm(stack: Stack) -> Any:
    await stack.add_repository("own", format="npm")
    found = Npm(stack)
    for each in VERSIONS:
        reply = await found.ask("PUT", "/x", raw=make_publish("x", each))
        assert reply.status == 201, reply.body
    yield found


async def set_rules(npm: Npm, *rules: Any, name: str = "own") -> None:
    await npm.stack.ok("PUT", f"/repository/main%2F{name}/config/policy", {"rules": list(rules)} if rules else {})


@pytest.mark.parametrize("rule", [BLOCK, HOLD], ids=["blocked", "in quarantine"])
@pytest.mark.parametrize(("version", "left"), [("1.3.0", VERSIONS[:3]), ("1.0.0", VERSIONS[1:])])
async def test_unpublishing_a_version_removes_no_other(npm: Npm, rule: Any, version: str, left: Any) -> None:
    await set_rules(npm, rule)
    assert list((await npm.document(""))["versions"]) == ["1.3.0"]
    await npm.unpublish(version)
    assert await npm.stored() == list(left)
    await set_rules(npm)
    assert list((await npm.document())["versions"]) == list(left)


async def test_the_same_through_a_virtual_repository_with_rules_of_its_own(npm: Npm) -> None:
    config = {"type": "Virtual", "members": ["main/own"], "publish_to": "main/own"}
    await npm.stack.add_repository("all", format="npm", config=config)
    await set_rules(npm, BLOCK, name="all")
    through = Npm(npm.stack, "all")
    assert list((await through.document(""))["versions"]) == ["1.3.0"]
    await through.unpublish("1.3.0")
    assert await npm.stored() == list(VERSIONS[:3])


async def test_others_see_nothing_of_what_is_hidden(npm: Npm) -> None:
    await set_rules(npm, BLOCK)
    await npm.stack.add_user("reader")
    for who in ("admin", None, "reader", None, "admin"):
        shown = ["1.3.0"] if who != "admin" else list(VERSIONS)
        assert list((await npm.document(who=who))["versions"]) == shown, who
    reader = await npm.document("", who="reader")
    assert list(reader["versions"]) == ["1.3.0"]


@pytest.mark.parametrize("rule", [BLOCK, HOLD], ids=["blocked", "in quarantine"])
async def test_what_was_read_in_part_is_not_written_back(npm: Npm, rule: Any) -> None:
    await set_rules(npm, rule)
    sent = await npm.document("")
    for method, body in (("PUT", sent), ("DELETE", None)):
        refused = await npm.ask(method, f"/x/-rev/{sent['_rev']}", body)
        assert (refused.status, "?write=true" in refused.json["error"]) == (409, True)
    assert await npm.stored() == list(VERSIONS)


async def test_what_was_read_in_a_view_is_not_written_back(npm: Npm) -> None:
    reply = await npm.ask("PUT", "/-/package/x/dist-tags/beta", "1.0.0")
    assert reply.status == 201, reply.body
    sent = await Npm(npm.stack, f"own@{now_exactly()}").document("")
    refused = await npm.ask("PUT", f"/x/-rev/{sent['_rev']}", sent)
    assert refused.status == 409


async def test_tags_messages_and_owners_are_those_of_hidden_versions_too(npm: Npm) -> None:
    await set_rules(npm, BLOCK)
    assert (await npm.ask("PUT", "/-/package/x/dist-tags/old", "1.0.0")).status == 201
    sent = await npm.document()
    assert sent["dist-tags"] == {"latest": "1.3.0", "old": "1.0.0"}
    sent["versions"]["1.0.0"]["deprecated"] = "malware"
    assert (await npm.ask("PUT", "/x", sent)).status == 201
    sent = await npm.document()
    owners = {"_id": "x", "_rev": sent["_rev"], "maintainers": [*sent["maintainers"], {"name": "bob", "email": ""}]}
    assert (await npm.ask("PUT", f"/x/-rev/{sent['_rev']}", owners)).status == 200
    found = await npm.document()
    assert (found["versions"]["1.0.0"]["deprecated"], found["maintainers"][-1]["name"]) == ("malware", "bob")
    assert await npm.stored() == list(VERSIONS)
