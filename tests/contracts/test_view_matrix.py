"""Every document and file of a repository, on every road, is in a view of the present day, too: in each format."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_twisted

from tests.support.matrix.checks import documents_of, files_of, read
from tests.support.matrix.specimens import READ, Specimen, plain
from tests.support.matrix.world import MatrixWorld, matrix_world

KINDS = ("hosted", "around", "cold", "virtual")


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("views")) as made:
        yield made


@pytest.mark.parametrize(
    ("specimen", "kind"),
    [
        pytest.param(specimen, kind, id=f"{specimen.id}-{kind}")
        for specimen in READ
        for kind in KINDS
        if kind in specimen.kinds and specimen.format != "docker"  # which has no views
    ],
)
async def test_a_view_of_this_day_has_all_that_there_is(world: MatrixWorld, specimen: Specimen, kind: str) -> None:
    name = await world.repository(specimen, kind)
    view = f"{name}@{datetime.now(UTC):%Y-%m-%d}"
    paths = documents_of(specimen, kind)
    for item in specimen.items:
        paths += files_of(item, kind)
        paths += [each.format(item.version, digest=item.digests()[0]) for each in specimen.abouts]
    assert paths
    for path in paths:
        await world.settle()  # lists of folders show what is kept, and that is recorded after it was sent
        live, then = await read(world, name, path), await read(world, view, path)
        if then.status == 404 and path in specimen.withheld:  # also where rules are about the package
            continue
        assert (path, then.status) == (path, live.status), then.body
        markers = [each.marker for each in specimen.items]
        shown, before = ([each in plain(found.body) for each in markers] for found in (live, then))
        # The newest packages alone are a smaller answer to the same question, which views do not give.
        assert (path, before) in ((path, shown), (path, [path in specimen.newest] * len(markers)))
