"""What the master has ready for its workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from pkgrepo.composition import core
from pkgrepo.worker import preload
from tests.support.inprocess_server import server_config
from tests.support.memory_server import Stack


async def make_catalog(folder: Path, damage: str) -> None:
    """A catalog with one repository, and what this statement has made of it."""
    stack = Stack(folder)
    await stack.start()
    await stack.add_repository(format="raw")
    await stack.stop()
    connection = apsw.Connection(str(next(folder.rglob("pkgrepo.db"))))
    connection.execute(damage)
    connection.close()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the formats that are loaded."""
    found: list[str] = []

    def noting(name: str, make: Any) -> Any:
        def note(config: Any) -> Any:
            found.append(name)
            return make(config)

        return note

    monkeypatch.setattr(core, "FORMATS", [(facts, noting(facts.name, make)) for facts, make in core.FORMATS])
    return found


async def test_formats_of_repositories_are_loaded(tmp_path: Path, loaded: list[str]) -> None:
    await make_catalog(tmp_path, "SELECT 1")
    loaded.clear()
    wanted = [{"name": "js", "format": "node"}]  # an alias
    preload(server_config(tmp_path, bootstrap__repositories=wanted))
    assert sorted(loaded) == ["npm", "raw"]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE repository SET type = 'Unheard'",  # of a later release
        "UPDATE repository SET config = '[', settings = '['",
        "ALTER TABLE repository RENAME TO stock",
    ],
    ids=["type", "malformed", "schema"],
)
async def test_what_cannot_be_read_of_the_catalog_is_left_to_the_workers(
    tmp_path: Path, loaded: list[str], damage: str
) -> None:
    await make_catalog(tmp_path, damage)
    loaded.clear()
    preload(server_config(tmp_path))
    assert loaded == []
