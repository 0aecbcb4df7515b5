"""A Ruby repository in a catalog in memory."""

from __future__ import annotations

import datetime as dt
import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.formats.rubygems.gemspec import RUNTIME, Dependency, GemSpec, meta_of
from pkgrepo.formats.rubygems.index.indexing import index_gem, read_parts, splice
from pkgrepo.formats.rubygems.index.info import INFO
from pkgrepo.formats.rubygems.index.requests import IndexCaches
from pkgrepo.formats.rubygems.names import sort_key
from pkgrepo.model import SYSTEM, BlobInfo, NewFile, Repository, VersionState
from pkgrepo.repositories.publish.package_changes import remove_files, set_version_state
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.storage.catalog.server import repositories
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalog import add_repository as add_to

NOW = 1_800_000_000_000


def make_spec(name: str, number: str = "1.0", platform: str = "ruby", **fields: Any) -> GemSpec:
    return GemSpec(
        name=name,
        number=number,
        platform=platform,
        original_platform=platform,
        rubygems_version="3.3.15",
        date=dt.date(2024, 1, 2),
        summary="s",
        authors=("A",),
        **fields,
    )


async def at_once(work: Any, *args: Any) -> Any:
    return work(*args)


class Gems:
    """The repository, as one process sees it."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        add_to(self.catalog, 1, format="ruby")
        self.caches = IndexCaches()
        self.pools: Any = SimpleNamespace(cpu=at_once)
        self.now = NOW

    @property
    def repository(self) -> Repository:
        found: Repository = self.catalog.peek(repositories.get_repository, 1)
        return found

    def push(self, spec: GemSpec) -> str:
        """Publish a gem. Returns its sha256."""
        sha256 = hashlib.sha256(spec.full_name.encode()).hexdigest()
        blob = BlobInfo(sha256=sha256, size=10, locator=spec.full_name, digests={"sha256": sha256})
        release = Release(
            package_key=spec.name,
            package_name=spec.name,
            version_key=spec.full_version,
            version_text=spec.full_version,
            sort=sort_key(spec.number, spec.platform),
            files=(NewFile(path=f"gems/{spec.full_name}.gem", blob=blob),),
            meta=meta_of(spec),
        )
        self.now += 1000
        self.catalog.do(publish_release, self.repository, release, admitted(self.repository), index_gem, self.now)
        return sha256

    def change(self, name: str, version: str, state: VersionState) -> None:
        self.catalog.do(
            set_version_state, self.repository, name, version, state, "", admitted(self.repository), index_gem, self.now
        )

    def yank(self, name: str, version: str) -> None:
        self.change(name, version, VersionState.YANKED)

    def restore(self, name: str, version: str) -> None:
        self.change(name, version, VersionState.LIVE)

    def delete(self, name: str, version: str) -> None:
        self.catalog.do(remove_files, self.repository, name, version, None, SYSTEM, index_gem, True, self.now)

    def info(self, name: str) -> bytes:
        parts, package = self.catalog.peek(read_parts, 1, name, INFO)
        return splice(name, INFO, package.serial, [parts]).joined()

    async def versions(self) -> bytes:
        found = await self.caches.versions.get(self.catalog, self.repository)
        body = found.file.read()
        assert hashlib.md5(body).digest() == found.file.md5.digest()
        assert hashlib.sha256(body).digest() == found.file.sha256.digest()
        return body

    async def listed(self, form: str) -> bytes:
        document = await self.caches.lists.get(self.catalog, self.pools, self.repository, form)
        return document.body


def needs(*dependencies: tuple[str, *tuple[tuple[str, str], ...]]) -> dict[str, Any]:
    return {"dependencies": tuple(Dependency(name, RUNTIME, pairs) for name, *pairs in dependencies)}


@pytest.fixture
def gems() -> Gems:
    return Gems()
