"""Brakes on publishers, in every format: what they hold waits in a stage, and is seen once that is approved."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.model import Actor
from pkgrepo.repositories.publish.bursts import count
from pkgrepo.storage.catalog.people.users import find_user_by_name
from tests.support.matrix.checks import read
from tests.support.matrix.specimens import SPECIMENS, Specimen, plain
from tests.support.matrix.world import MatrixWorld, matrix_world


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("bursts")) as made:
        yield made


async def shows(world: MatrixWorld, specimen: Specimen, name: str) -> set[bool]:
    """Whether documents, or files where there are no documents, have what is published."""
    found = set()
    for path in specimen.documents:
        reply = await read(world, name, path)
        found |= {reply.status == 200 and each.marker in plain(reply.body) for each in specimen.items}
    return found


async def publish_another(world: MatrixWorld, name: str) -> None:
    """Count another package of the publisher, as if it had been published in this hour."""

    def command(tx: Any) -> None:
        repository = world.stack.assembly.core.registry.find("main", name)
        by = Actor(user_id=find_user_by_name(tx, "admin").id, address="192.0.2.1")
        actor = evolve(admit_server(Road.IMPORT, repository, by), road="")
        assert count(tx, repository, ["another"], actor, world.stack.assembly.core.clock.now_ms()) is None

    await world.stack.assembly.core.registry.refresh()
    await world.stack.assembly.core.catalog.write(command)


@pytest.mark.parametrize(
    ("burst", "why"),
    [({"new_networks": True}, "has published nothing from"), ({"packages_per_hour": 1}, "more than 1 packages")],
    ids=["network", "number"],
)
@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.id)
async def test_what_brakes_hold_waits_in_a_stage(
    world: MatrixWorld, specimen: Specimen, burst: dict[str, Any], why: str
) -> None:
    stack, name = world.stack, await world.repository(specimen, "hosted", empty=True)
    place = f"/repository/main%2F{name}"
    await stack.ok("PATCH", f"{place}/config/policy", {"burst": burst})
    if "packages_per_hour" in burst:
        await publish_another(world, name)
    replies: list[Any] = []

    async def send(method: str, path: str, body: bytes, media_type: str) -> Any:
        replies.append(await world.ask(name, method, path, body, media_type, who="admin"))
        return replies[-1]

    with suppress(Exception):  # of a push that is refused the next request makes no sense
        await specimen.publish(send)
    assert await shows(world, specimen, name) == {False}
    listed = (await stack.api("GET", f"/events?type=package.held&repository=main/{name}")).body.splitlines()
    events = [json.loads(each)["data"] for each in listed]
    [stage] = (await stack.ok("GET", f"{place}/stages?state=open"))["items"]
    assert {each["stage"] for each in events} == {stage["id"]}
    assert all(why in each["reason"] for each in events)
    if specimen.format == "docker":  # a push has several requests: no stage takes the last of them alone
        assert any(each.status == 403 and f"stage show {stage['id']}".encode() in each.body for each in replies)
        await specimen.publish(world.sender(f"{name}+stage-{stage['id']}"))
    else:
        assert {each.status for each in replies} <= {200, 201}
        told = [value for each in replies for key, value in each.headers.items() if key.lower() == "warning"]
        assert any("waits for an approval in the stage" in each for each in told), told
    await stack.ok("POST", f"/stages/{stage['id']}/approve", {})
    assert await shows(world, specimen, name) == {True}
