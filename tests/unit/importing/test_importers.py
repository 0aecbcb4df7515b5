"""The folders from which the server imports, and the repositories into which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Forbidden, Invalid, RepositoryInactive
from pkgrepo.gateway.imported.engine import Tools
from pkgrepo.importing.importers import Importers
from pkgrepo.model import SYSTEM, Repository, RepositoryType
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.repositories.upkeep.jobs import NoProgress
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository
from tests.support.repositories import InlinePools

UNUSED: Any = None


class Scene:
    """Imports of Python into a repository, from some folders alone; None: from all."""

    def __init__(self, folders: Sequence[Path] | None) -> None:
        self.catalog = MemoryCatalog()
        self.repository: Repository = self.catalog.do(add_repository)
        pools: Any = InlinePools()
        tools = Tools(catalog=self.catalog, content=UNUSED, pools=pools, clock=SystemClock(), max_upload=1)
        self.importers = Importers(
            tools=tools,
            jobs=UNUSED,
            formats=make_formats(Config()),
            upstreams=UNUSED,
            folders=folders,
            keys=[],
            reactor=UNUSED,
        )

    async def run(self, source: Path | str, **changes: Any) -> Mapping[str, Any]:
        into = evolve(self.repository, **changes)
        request = ImportRequest(kind="python", source=str(source))
        return await self.importers.run(into, request, SYSTEM, NoProgress())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "allowed" / "below").mkdir(parents=True)
    return Scene([tmp_path / "also", tmp_path / "allowed"])


async def test_only_folders_of_the_settings_are_read(scene: Scene, tmp_path: Path) -> None:
    for each in ("allowed", "allowed/below", "allowed/../allowed"):
        assert (await scene.run(tmp_path / each))["packages"] == 0
    (tmp_path / "allowed-not").mkdir()
    (tmp_path / "allowed/link").symlink_to(tmp_path)
    for each in ("", "allowed-not", "allowed/..", "allowed/link", "nowhere"):
        with pytest.raises(Forbidden, match="the server reads no such folder"):
            await scene.run(tmp_path / each)
    (tmp_path / "allowed/file").write_bytes(b"")
    for each in ("allowed/file", "allowed/nowhere"):
        with pytest.raises(Invalid, match="the source is no folder"):
            await scene.run(tmp_path / each)
    with pytest.raises(Invalid, match="absolute path"):
        await scene.run("allowed")


async def test_without_a_setting_every_folder_is_read(tmp_path: Path) -> None:
    assert (await Scene(None).run(tmp_path))["packages"] == 0
    with pytest.raises(Invalid, match="the source is no folder"):
        await Scene(None).run(tmp_path / "nowhere")
    with pytest.raises(Forbidden):
        await Scene([]).run(tmp_path)


async def test_an_import_is_into_a_hosted_repository_that_is_on(scene: Scene, tmp_path: Path) -> None:
    authority = SimpleNamespace(config={}, settings={}, stage=None)
    owner: Any = SimpleNamespace(path="main/x", authority=authority, stage=None)
    for changes in ({"type": RepositoryType.PROXY}, {"parent": owner}, {"stage": "s"}):
        with pytest.raises(Invalid, match="no hosted repository"):
            await scene.run(tmp_path / "allowed", **changes)
    with pytest.raises(RepositoryInactive):
        await scene.run(tmp_path / "allowed", active=False)
