"""The repository services over a catalog in memory and a blob store on the disk, without a server."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet import reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from pkgrepo.concurrency.pools import Pools
from pkgrepo.formats.python.format import python
from pkgrepo.formats.python.names import METADATA, file_path, parse_filename
from pkgrepo.formats.python.upload.inspection import inspect
from pkgrepo.formats.python.upload.metadata import meta_json
from pkgrepo.model import SYSTEM, Actor, NewFile, Repository, Storage
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.integrity import FirstReads
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.layout.marker import MARKER, CatalogStatus, LayoutMarker
from pkgrepo.repositories.layout.sidecars import encode
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.repositories.upkeep.mending import Mender
from pkgrepo.repositories.upkeep.reindex import Reindexer, ReindexReport
from pkgrepo.repositories.upkeep.verify import Verifier, VerifyReport
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.catalog.server import repositories, storages
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog

T = TypeVar("T")

NOW = 1_800_000_000_000


class FixedClock:
    """A clock that advances by a second whenever it is read."""

    def __init__(self, now_ms: int = NOW) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        self.ms += 1000
        return self.ms


class RepositoryServices:
    """
    One storage below ``root`` with one repository, by default ``main/py``; call ``start`` and ``stop``.

    ``release`` and ``publish`` are for Python repositories. Subclasses publish what other formats have.
    """

    def __init__(
        self, root: Path, pools: Any, catalog: Any = None, *, format: StoredFormat | None = None, name: str = "py"
    ) -> None:
        self.root = root
        self.pools = pools
        self.catalog = catalog or MemoryCatalog()
        self.clock = FixedClock()
        self.format = format or python()
        self.name = name
        self.registry = Registry(self.catalog)
        self.stores = Stores(self._open)
        self.poked: list[Repository] = []
        self.context = MaintenanceContext(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            pools=pools,
            clock=self.clock,
            formats={self.format.name: self.format},
        )
        self.mender = Mender(self.context)
        self.first_reads = FirstReads(pools, self.mender.told)
        self.follower = LayoutFollower(self.context)
        self.content = ContentWriter(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            clock=self.clock,
            on_change=self.poked.append,
        )

    async def start(self, *, repository: bool = True) -> None:
        await self.catalog.write(
            storages.add_storage, name="main", kind="Local", settings={}, now_ms=NOW, uid="the-storage"
        )
        self.store: FilesystemBlobStore = await self.stores.of(self.storage)  # type: ignore[assignment]
        if repository:
            await self.add_repository(self.name)

    async def stop(self) -> None:
        """Stop following, and wait until nothing is written any more."""
        if self.follower.running:
            following = self.follower.stopService()
            if following is not None:
                await following

    async def add_repository(self, name: str, *, parent_id: int | None = None, **settings: Any) -> Repository:
        return await self.catalog.write(
            repositories.add_repository,
            storage_id=self.storage.id,
            name=name,
            format=self.format.name,
            type="Hosted",
            visibility="public",
            config={"type": "Hosted"},
            settings=settings,
            now_ms=self.clock.now_ms(),
            parent_id=parent_id,
        )

    @property
    def storage(self) -> Storage:
        return self.registry.storages()[0]

    @property
    def repository(self) -> Repository:
        found = self.registry.find("main", self.name)
        assert found is not None
        return found

    @property
    def layout(self) -> LayoutFolder:
        return LayoutFolder(self.root)

    async def release(self, staged: Staged, filename: str, data: bytes, **changes: Any) -> Release:
        """Stage a distribution, and return its release as the Python format makes it."""
        name = parse_filename(filename)
        blob = await staged.receive(chunks(data))
        with io.FileIO(await staged.as_file(blob)) as file:
            inspected = inspect(file.fileno(), name)
        path = file_path(name.project_key, changes.pop("text", name.version_text), filename)
        attrs = {"packagetype": name.kind, "requires_python": inspected.metadata.requires_python}
        companions = []
        if name.kind == "bdist_wheel":
            metadata = await staged.store(inspected.metadata_bytes)
            attrs["core_metadata"] = metadata.sha256
            companions.append(NewFile(path=path + METADATA, blob=metadata, attrs={"role": METADATA}))
        values = {
            "package_key": name.project_key,
            "package_name": inspected.metadata.name,
            "version_key": name.version_key,
            "version_text": path.split("/")[2],
            "sort": name.version_sort,
            "files": (NewFile(path=path, blob=blob, attrs=attrs), *companions),
            "meta": meta_json(inspected.metadata),
        }
        return Release(**(values | changes))

    async def publish(
        self, filename: str, data: bytes, *, actor: Actor = SYSTEM, where: Repository | None = None, **changes: Any
    ) -> Published:
        """Receive, inspect and publish a distribution."""
        repository = where or self.repository
        async with self.content.stage(repository) as staged:
            release = await self.release(staged, filename, data, **changes)
            return await self.content.publish(
                repository, release, staged, admitted(repository, actor), self.format.index
            )

    async def follow(self) -> None:
        """Bring the readable layout up to date."""
        if not self.follower.running:
            self.follower.startService()
        else:
            self.follower.notify()
        following = self.follower._following
        if following is not None:
            await following

    async def verify(self, *, repair: bool = False) -> VerifyReport:
        return await Verifier(self.context, progress=NoProgress(), repair=repair, mender=self.mender).run()

    async def reindex(self, *, stopped: bool = True) -> ReindexReport:
        """Run a reindex; ``stopped`` means that the server with the lost catalog had stopped cleanly."""
        if stopped:
            status = CatalogStatus(at=datetime.now(UTC), missing=0)
            self.layout.write(MARKER, encode(LayoutMarker(catalogs={"lost": status})))
        return await Reindexer(self.context, progress=NoProgress()).run()

    def copies(self) -> list[str]:
        """Return the locators of all copies in the store."""
        below = self.root / "blobs"
        return sorted(each.relative_to(below).as_posix() for each in below.rglob("*") if each.is_file())

    def shown(self) -> list[str]:
        """Return every path of the readable layout."""
        return sorted(self.layout.walk())

    def shown_of_repository(self) -> set[str]:
        """Return the paths in the folder of the repository, relative to it."""
        folder = f"{self.name}/"
        return {place.removeprefix(folder) for place in self.shown() if place.startswith(folder)}

    def count(self, table: str) -> int:
        """Return the number of rows of a table of the catalog."""
        row = self.catalog.peek(lambda reader: reader.one(f"SELECT COUNT(*) FROM {table}"))
        return int(row[0])

    async def _open(self, storage: Storage) -> FilesystemBlobStore:
        store = FilesystemBlobStore(
            self.root, name=storage.name, pools=self.pools, uid=storage.uid, low_water=0, fsync="never"
        )
        await store.start()
        return store


async def chunks(data: bytes, size: int = 64 * 1024) -> AsyncIterator[bytes]:
    """Yield bytes in chunks, like a request body."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


class InlinePool:
    """A pool without threads, which runs calls at once."""

    def __call__(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Deferred[Any]:
        return maybeDeferred(func, *args, **kwargs)

    def deliver(self, outcome: Deferred[Any], result: Any) -> None:
        outcome.callback(result)


class InlinePools:
    """Pools without threads, so that coroutines never wait."""

    def __init__(self) -> None:
        self.disk = self.cpu = InlinePool()


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    outcome: list[Any] = []
    Deferred.fromCoroutine(coroutine).addBoth(outcome.append)
    assert outcome, "it waits for something"
    if isinstance(outcome[0], Failure):
        outcome[0].raiseException()
    result: T = outcome[0]
    return result


def started_pools() -> Pools:
    """Return running pools; the caller stops them."""
    pools = Pools(reactor, disk_threads=2, cpu_threads=1)
    pools.start()
    return pools
