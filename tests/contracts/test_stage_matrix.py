"""A stage has all that is made of what was published: every document and file of each format, for members alone."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted
from attrs import frozen

from tests.support.matrix.checks import documents_of, files_of, read
from tests.support.matrix.specimens import READ, SHARD, Specimen, plain
from tests.support.matrix.world import MatrixWorld, matrix_world


@frozen
class Member:
    """Somebody who sees what is staged."""

    world: MatrixWorld

    async def ask(self, name: str, method: str, path: str) -> Any:
        return await self.world.ask(name, method, path, who="admin")


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("stages")) as made:
        yield made


@pytest.mark.parametrize("word", ["stage", "staged"])
@pytest.mark.parametrize("specimen", READ, ids=lambda specimen: specimen.id)
async def test_a_stage_has_all_that_is_made_of_what_is_in_it(world: MatrixWorld, specimen: Specimen, word: str) -> None:
    stack, name, member = world.stack, await world.repository(specimen, "hosted", empty=True), Member(world)
    stage = await stack.ok("POST", f"/repository/main%2F{name}/stages", {"description": ""})
    await specimen.publish(world.sender(f"{name}+stage-{stage['id']}"))
    at = f"{name}+{word}-{stage['id']}"
    kind = "hosted" if word == "staged" else "around"  # what virtual repositories do not have, stages have not either
    documents = documents_of(specimen, kind)
    paths = [*documents, *(path for each in specimen.items for path in files_of(each, kind))]
    paths += [
        about.format(each.version, digest=each.digests()[0]) for each in specimen.items for about in specimen.abouts
    ]
    for path in paths:
        found = await read(member, at, path)
        if found.status == 404 and path in specimen.withheld:
            continue
        assert (path, found.status) == (path, 200), found.body
        assert path not in specimen.documents or all(each.marker in plain(found.body) for each in specimen.items), path
        anonymous = await world.ask(at, "GET", f"{path.removeprefix(SHARD)}/" if path.startswith(SHARD) else path)
        assert (path, anonymous.status) == (path, 401), anonymous.body
