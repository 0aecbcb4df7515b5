"""The channel of a stage is made of its wheels, on top of that of the repository, for members, and only read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.formats.conda.wheels import following
from pkgrepo.storage.catalog import download_log
from pkgrepo.storage.catalog.server import repositories
from tests.support.conda_packages import make_conda
from tests.support.inprocess_server import turn
from tests.support.memory_server import OTHER_PASSWORD, Stack, running_stacks
from tests.support.python_packages import make_wheel

HERE = "/repositories/main/py"
ALWAYS = {"type": "Hosted", "conda": {"from_wheels": True}}
INDEX = "conda/noarch/repodata.json"


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stack]:
    monkeypatch.setattr(following, "EVERY_S", 0.005)
    async with running_stacks(tmp_path) as make:
        made = await make()
        await made.add_repository("py", config=ALWAYS)
        yield made


async def put(stack: Stack, at: str, version: str) -> None:
    filename, data = make_wheel("demo", version)
    reply = await stack.call("PUT", f"{at}/demo/{version}/{filename}", raw=data)
    assert reply.status == 201, reply.body


async def shown(stack: Stack, at: str, *wanted: str) -> Any:
    """The answer of a channel, once it has these packages and no other ones; the test's time limit ends the wait."""
    while True:
        reply = await stack.call("GET", f"{at}/{INDEX}")
        found = sorted(reply.json["packages.conda"]) if reply.status == 200 else None
        if found == [f"demo-{each}-py_0.conda" for each in wanted]:
            return reply
        await turn()


async def opened(stack: Stack, of: str = "py") -> tuple[str, str, str]:
    """The id of a new stage, its address and that of what is staged alone."""
    stage = await stack.ok("POST", f"/repository/main%2F{of}/stages", {"description": ""})
    return stage["id"], *(f"/repositories/main/{of}+{each}-{stage['id']}" for each in ("stage", "staged"))


async def test_wheels_of_a_stage_are_in_its_channel_and_after_the_approval_in_that_of_the_repository(
    stack: Stack,
) -> None:
    await put(stack, HERE, "1.0")
    await shown(stack, HERE, "1.0")
    id_, stage, staged = await opened(stack)
    await put(stack, stage, "2.0")
    await shown(stack, stage, "1.0", "2.0")
    await shown(stack, staged, "2.0")
    file = "conda/noarch/demo-2.0-py_0.conda"
    assert [(await stack.call("GET", f"{each}/{file}")).status for each in (stage, staged, HERE)] == [200, 200, 404]
    await shown(stack, HERE, "1.0")
    await stack.ok("POST", f"/stages/{id_}/approve", {})
    await shown(stack, HERE, "1.0", "2.0")
    assert (await stack.call("GET", f"{stage}/{INDEX}")).status == 404


async def test_who_fetched_from_the_channel_of_a_stage_is_found_with_that_of_the_repository(stack: Stack) -> None:
    _, stage, _ = await opened(stack)
    await put(stack, stage, "1.0")
    await shown(stack, stage, "1.0")

    def names(reader: Any) -> Any:
        [id_] = reader.one("SELECT id FROM file WHERE path LIKE '%.conda'")
        return reader.one(download_log._NAMES["file"], (id_,))

    assert (await stack.assembly.core.catalog.look(names))[1:4] == ("main/py/conda", "conda", "demo")


async def test_the_channel_of_a_stage_is_for_members_alone(stack: Stack) -> None:
    _, stage, staged = await opened(stack)
    await put(stack, stage, "1.0")
    await shown(stack, stage, "1.0")
    await stack.add_user("eve", OTHER_PASSWORD)
    for each in (INDEX, "conda/noarch/demo-1.0-py_0.conda", "conda/", "conda/unconverted.json"):
        for at in (stage, staged):
            assert (await stack.call("GET", f"{at}/{each}", who=None)).status == 401, each
            assert (await stack.call("GET", f"{at}/{each}", who="eve")).status == 404, each
    listed = (await stack.api("GET", "/repository?limit=100")).json["items"]
    assert not any("+" in each["name"] for each in listed)


async def test_nothing_is_published_to_the_channel_of_a_stage(stack: Stack) -> None:
    _, stage, staged = await opened(stack)
    data = make_conda("more", "1.0")
    for at in (stage, staged):
        for method, path in (
            ("PUT", "conda/noarch/more-1.0-py_0.conda"),
            ("POST", "conda/api/channels/main/upload/more-1.0-py_0.conda"),
            ("POST", "conda/api/v1/upload/main"),
            ("POST", "conda/stage/main/more/1.0/noarch/more-1.0-py_0.conda"),
        ):
            reply = await stack.call(method, f"{at}/{path}", raw=data)
            assert reply.status in (404, 405), (method, path, reply.status, reply.body)
    await put(stack, stage, "1.0")
    await shown(stack, stage, "1.0")


async def test_a_rule_of_the_repository_holds_in_the_channel_of_its_stage(stack: Stack) -> None:
    _, stage, _ = await opened(stack)
    await put(stack, stage, "1.0")
    await put(stack, stage, "2.0")
    await shown(stack, stage, "1.0", "2.0")
    block = {"repository": "main/py", "package": "demo", "versions": "2.0", "reason": "bad"}
    await stack.ok("POST", "/policy/blocks", block)
    await shown(stack, stage, "1.0")
    refused = await stack.call("GET", f"{stage}/conda/noarch/demo-2.0-py_0.conda")
    assert (refused.status, b"bad" in refused.body) == (403, True)


async def test_a_stage_of_a_virtual_repository_has_the_channel_of_its_members(stack: Stack) -> None:
    config = {"type": "Virtual", "members": ["main/py"], "publish_to": "main/py"}
    await stack.add_repository("all", config=config)
    await put(stack, HERE, "1.0")
    id_ = (await stack.ok("POST", "/repository/main%2Fall/stages", {"description": ""}))["id"]
    stage = f"/repositories/main/all+stage-{id_}"
    await put(stack, stage, "2.0")
    await shown(stack, stage, "1.0", "2.0")
    await stack.ok("POST", f"/stages/{id_}/reject", {"reason": "no"})
    await shown(stack, HERE, "1.0")
    assert (await stack.call("GET", f"{stage}/{INDEX}")).status == 404


async def test_a_rename_and_the_end_of_the_repository_take_the_channels_of_its_stages_along(stack: Stack) -> None:
    id_, stage, _ = await opened(stack)
    await put(stack, stage, "1.0")
    await shown(stack, stage, "1.0")
    found = stack.assembly.core.registry.find("main", "py")
    await stack.assembly.core.catalog.write(
        lambda tx: repositories.update_repository(tx, found.id, name="other", now_ms=1)
    )
    renamed = f"/repositories/main/other+stage-{id_}"
    await shown(stack, renamed, "1.0")
    assert (await stack.api("DELETE", "/repository/main%2Fother?purge=true&confirm=other")).status == 200

    def left(reader: Any) -> int:
        return int(reader.one("SELECT COUNT(*) FROM repository WHERE deleted_at IS NULL")[0])

    while await stack.assembly.core.catalog.look(left):
        await turn()
