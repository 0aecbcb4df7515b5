"""Every rule about who may publish on every road by which something becomes visible, in every format."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from tests.support.matrix.incoming import ROADS, Road
from tests.support.matrix.specimens import SPECIMENS, Specimen
from tests.support.matrix.world import MatrixWorld, matrix_world

ACTIONS = ("read", "write", "overwrite", "delete")
RULES = ("requires_approval", "must_be_project_member", "limited_token", "reader")


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("gate")) as made:
        await made.stack.add_user("dan")
        yield made


async def closed(world: MatrixWorld, road: Road, rule: str) -> tuple[str, str]:
    """A repository with the specimen that the rule closes to somebody. Returns its name and who that is."""
    specimen, stack = road.specimen, world.stack
    name = await world.repository(specimen, "hosted", empty=road.empty)
    if road.prepare is not None:
        await road.prepare(world, name)
    config: dict[str, Any] = {"type": "Hosted"}
    if specimen.format == "docker":
        config["push_rules"] = {"allow_tag_overwrite": True}
    if rule in ("requires_approval", "must_be_project_member"):
        config["push_rules"] = {**config.get("push_rules", {}), rule: True}
    if "push_rules" in config:
        await stack.ok("PUT", f"/repository/main%2F{name}/config", config)
    if rule == "limited_token":
        limits = [{"repository": "main/*", "actions": [*ACTIONS], "packages": ["something-else"]}]
        return name, await stack.token(repositories=limits)
    repositories = [{"repository": f"main/{name}", "actions": ["read"] if rule == "reader" else [*ACTIONS]}]
    known = {each["name"] for each in (await stack.ok("GET", "/repository?limit=1000"))["items"]}
    if f"{name}-source" in known:
        repositories.append({"repository": f"main/{name}-source", "actions": [*ACTIONS]})
    await stack.ok("PUT", "/users/dan/permissions", {"repositories": repositories})
    return name, "dan"


async def shown(world: MatrixWorld, road: Road, name: str) -> list[tuple[int, bytes]]:
    """What readers see of the package."""
    paths = (*road.specimen.documents, *(path for item in road.specimen.items for path in item.paths))
    replies = [await world.ask(name, "GET", path) for path in paths]
    return [(each.status, each.body if each.status == 200 else b"") for each in replies]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.id)
async def test_a_rule_holds_on_every_road_in(world: MatrixWorld, road: Road, rule: str) -> None:
    name, who = await closed(world, road, rule)
    before = await shown(world, road, name)
    reply = await road.ask(world, name, who)
    expected = (403,) if rule in ("requires_approval", "must_be_project_member") else (401, 403, 404)
    assert reply.status in expected, (reply.status, reply.body)
    assert await shown(world, road, name) == before
    reply = await road.ask(world, name, "admin")
    assert reply.status in (200, 201, 202, 204), (reply.status, reply.body)


@pytest.mark.parametrize("how", ["approve", "reject"])
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.id)
async def test_a_token_for_other_packages_ends_no_stage(world: MatrixWorld, specimen: Specimen, how: str) -> None:
    stack, name = world.stack, await world.repository(specimen, "hosted", empty=True)
    stage = await stack.ok("POST", f"/repository/main%2F{name}/stages", {"description": ""})
    staged = stage["url"].rpartition("/")[2].replace(".stage-", "+stage-")  # addresses of images have no plus
    await specimen.publish(world.sender(staged))
    limits = [{"repository": "main/*", "actions": [*ACTIONS], "packages": ["something-else"]}]
    token = await stack.token(scopes=["api:read", "api:write"], repositories=limits)
    reply = await stack.api("POST", f"/stages/{stage['id']}/{how}", {}, who=token)
    assert reply.status in (403, 404), reply.body
    assert specimen.name.encode() not in reply.body
    assert (await stack.ok("GET", f"/stages/{stage['id']}"))["state"] == "open"
