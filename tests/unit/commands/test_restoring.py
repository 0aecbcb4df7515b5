"""A backup that somebody else has made leads nowhere but into the new data folder."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.commands.restoring import relocate
from pkgrepo.errors import Invalid
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository


@pytest.mark.parametrize("table", ["storage", "repository"])
@pytest.mark.parametrize("name", ["../../../evil", "..", "/evil", "a/../../evil"])
async def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_made(table: str, name: str) -> None:
    catalog = MemoryCatalog()
    catalog.do(add_repository)
    catalog.do(lambda tx: tx.execute(f"UPDATE {table} SET name = ?", (name,)))
    made: list[Any] = []

    async def disk(*given: Any) -> None:
        made.append(given)

    folders = SimpleNamespace(locate_new=lambda each: Path("/new") / each, make=None, spell=str)
    core: Any = SimpleNamespace(catalog=catalog, folders=folders, pools=SimpleNamespace(disk=disk))
    with pytest.raises(Invalid, match="no name of one"):
        await relocate(core, readable=True)
    assert made == []
