"""What another person changes between the comparison of a file and its application is not taken back unseen."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from twisted.internet import reactor

from pkgrepo.client.api import Client
from pkgrepo.client.apply.definitions import read_definitions
from pkgrepo.client.apply.rights import Change, plan_rights
from pkgrepo.client.apply.upkeep import plan_upkeep
from pkgrepo.client.http import Failed
from pkgrepo.client.profiles import Target
from pkgrepo.errors import Conflict
from tests.support.inprocess_server import PASSWORD

pytestmark = pytest.mark.server

FILE = """
[[groups]]
name = "team"
description = "ours"
grants = [{repository = "main/*", actions = ["read", "write"]}]

[[users]]
username = "ann"
grants = [{repository = "main/*", actions = ["read", "write"]}]

[retention]
rules = [{name = "ours", match = {versions = "0.*"}, keep = {last = 3}}]
"""
THEIRS = {"repositories": [{"repository": "main/theirs-*", "actions": ["read"]}]}


async def planned(client: Client, folder: Path) -> list[Change]:
    (path := folder / "state.toml").write_text(FILE)
    given = read_definitions(path)
    return [*await plan_rights(client, given), *await plan_upkeep(client, given)]


@pytest.fixture
def client(server: Any) -> Client:
    basic = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    return Client(reactor, Target(server.url, f"Basic {basic}"))


async def test_a_file_is_applied_whose_groups_have_its_users(client: Client, tmp_path: Path) -> None:
    await client.change("POST", "users", body={"username": "ann"})
    await client.change("POST", "groups", body={"name": "team"})
    await client.change("POST", "groups", "team", "members", body={"user": "ann"})
    for each in await planned(client, tmp_path):
        await each.carry_out()
    assert [each.verb for each in await planned(client, tmp_path)] == ["unchanged"] * 3
    await client.close()


async def test_what_was_changed_after_the_comparison_stays(client: Client, tmp_path: Path) -> None:
    await client.change("POST", "users", body={"username": "ann"})
    await client.change("POST", "groups", body={"name": "team"})
    group, user, retention = await planned(client, tmp_path)
    await client.change("PUT", "groups", "team", "permissions", body=THEIRS)
    await client.change("PUT", "users", "ann", "permissions", body=THEIRS)
    theirs = {"rules": [{"name": "theirs", "match": {"versions": "1.*"}, "keep": {"last": 1}}]}
    await client.change("PUT", "system", "retention", body={"retention": theirs})
    for change in (group, retention):
        with pytest.raises(Failed) as refused:
            await change.carry_out()
        assert refused.value.status == 412
    with pytest.raises(Conflict, match="the rights of ann were changed meanwhile"):
        await user.carry_out()
    for kind, name in (("groups", "team"), ("users", "ann")):
        place = (kind, name) if kind == "groups" else (kind, name, "permissions")
        assert [each["repository"] for each in (await client.get(*place))["repositories"]] == ["main/theirs-*"]
    assert (await client.get("system", "retention"))["retention"]["rules"][0]["name"] == "theirs"
    await client.close()
