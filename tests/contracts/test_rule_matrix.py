"""Every kind of rule on every road by which something goes out, in every format and type of repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.matrix.checks import check_cell
from tests.support.matrix.kinds import RULES, RuleKind
from tests.support.matrix.specimens import READ, Specimen
from tests.support.matrix.world import KINDS, MatrixWorld, matrix_world

OPEN = frozenset((Path(__file__).parents[1] / "support/matrix/open_cells.txt").read_text().split())


def cell(specimen: Specimen, kind: str, rule: RuleKind) -> Any:
    """One test. Those in ``open_cells.txt`` are known to fail; a line is removed together with its fault."""
    name = f"{rule.name}-{specimen.id}-{kind}"
    marks = [pytest.mark.xfail(strict=True)] if name in OPEN else []
    return pytest.param(specimen, kind, rule, id=name, marks=marks)


CELLS = [
    cell(specimen, kind, rule)
    for specimen in READ
    for kind in KINDS
    for rule in RULES
    if kind in specimen.kinds and rule.applies(specimen)
]


@pytest_twisted.async_yield_fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with matrix_world(tmp_path_factory.mktemp("matrix")) as made:
        yield made


@pytest.mark.parametrize(("specimen", "kind", "rule"), CELLS)
async def test_a_rule_holds_on_every_road(world: MatrixWorld, specimen: Specimen, kind: str, rule: RuleKind) -> None:
    await check_cell(world, specimen, kind, rule)
