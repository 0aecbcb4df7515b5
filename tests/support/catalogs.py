"""The catalog engines for the contract suite and the fault tests, and functions that add rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet import reactor

from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Actor, BlobInfo, File, NewFile, Repository, Version
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.packages import files, packages, release_batches
from pkgrepo.storage.catalog.server import repositories, storages
from tests.support.delayed_catalog import DelayedCatalog

NOW = 1_800_000_000_000


class SqliteCase:
    """SQLite catalogs over one file, like those of several workers."""

    one_machine = True  # a commit is noticed by every catalog before its write returns

    def __init__(self, root: Path) -> None:
        self.path = root / "catalog" / "pkgrepo.db"
        self.started: list[SqliteCatalog] = []

    async def another(self) -> Any:
        """Return another started catalog on the same database, like that of another worker."""
        catalog = SqliteCatalog(self.path, reactor=reactor)
        await catalog.start()
        self.started.append(catalog)
        return catalog

    async def stop(self) -> None:
        while self.started:
            await self.started.pop().stop()


class DelayedCase(SqliteCase):
    """SQLite behind `DelayedCatalog`, so that the catalog of ``--catalog-delay`` passes the same contract."""

    async def another(self) -> DelayedCatalog:
        return DelayedCatalog(await super().another(), reactor, 0.002)


def add_repository(tx: Transaction, name: str = "py", *, storage: str = "main") -> Repository:
    """Add a repository in a storage, which is added if needed."""
    found = storages.find_storage(tx, storage)
    found = found or storages.add_storage(tx, name=storage, kind="Local", settings={}, now_ms=NOW)
    return repositories.add_repository(
        tx,
        storage_id=found.id,
        name=name,
        format="python",
        type="Hosted",
        visibility="public",
        config={"type": "Hosted"},
        now_ms=NOW,
    )


def make_blob(content: bytes, *, copy: int = 1, **digests: str) -> BlobInfo:
    """Return the info of a blob with these bytes; each ``copy`` has its own locator."""
    sha256 = hashlib.sha256(content).hexdigest()
    return BlobInfo(
        sha256=sha256, size=len(content), locator=f"{sha256[:2]}/{sha256}.{copy}", digests={"sha256": sha256, **digests}
    )


def publish(
    tx: Transaction,
    repository: Repository,
    path: str,
    content: bytes | None = None,
    *,
    package: str = "demo",
    version: str = "1.0",
    now_ms: int = NOW,
) -> File:
    """Add a file with its blob, package and version."""
    blob = blobs.claim_blob(tx, repository.storage_id, make_blob(content or path.encode()), now_ms)
    owner, _ = packages.ensure_package(tx, repository.id, key=package, name=package, serial=1, now_ms=now_ms)
    release, _ = ensure_version(
        tx, owner.id, key=version, text=version, sort=version.encode(), meta={}, publisher=SYSTEM, now_ms=now_ms
    )
    new = NewFile(path=path, blob=blob)
    return files.add_file(tx, repository.id, repository.storage_id, new, owner.id, release.id, now_ms)


def ensure_version(
    tx: Transaction,
    package_id: int,
    *,
    key: str,
    text: str,
    sort: bytes,
    meta: Mapping[str, Any],
    publisher: Actor,
    now_ms: int,
) -> tuple[Version, bool]:
    """Return the version with this key, added if it did not exist, and whether it was added."""
    at = (package_id, key)
    found = release_batches.find_versions(tx, [at])
    if found:
        return found[at], False
    new = release_batches.NewVersion(package_id, key, text, sort, meta)
    return release_batches.add_versions(tx, [new], publisher, now_ms)[at], True
