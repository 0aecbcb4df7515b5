"""
Keeps the readable layout in step with the catalog.

It follows the version events: each names a package and a version, and whatever that version is *now* is what its
directory is made to show, so that an event may be seen twice and none is needed in its order. The last event that
was followed is kept in the catalog; a crash repeats some work and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat, Reader
from pkgrepo.model import File, Package, Repository, Version
from pkgrepo.storage.readable import ReadableLayout
from pkgrepo.storage.catalog import events, files, packages, settings, versions
from pkgrepo.storage.pools import Pools

from .registry import Registry
from .sidecar import PACKAGE, REPOSITORY, FileSidecar, PackageSidecar, RepositorySidecar, VersionSidecar, encode
from .stores import Stores

log = Logger()

CURSOR = "readable_layout_cursor"
BATCH = 200


@frozen
class Shown:
    """A version as it is now; ``version`` is None when it is gone, ``package`` when no version is left."""

    package: Package | None
    version: Version | None
    files: tuple[File, ...]


def read_version(reader: Reader, repository_id: int, package_key: str, version_key: str) -> Shown:
    """What the directory of a version has to show."""
    package = packages.find_package(reader, repository_id, package_key)
    if package is None:
        return Shown(package=None, version=None, files=())
    version = versions.find_version(reader, package.id, version_key) if version_key else None
    if version is None:
        return Shown(package=package, version=None, files=())
    return Shown(package=package, version=version, files=tuple(files.files_of_version(reader, version.id)))


class LayoutWriter:
    """Writes what a version is into the readable layout; every method blocks, so call it in a thread."""

    def __init__(self, layout: ReadableLayout, repository: Repository, format_: IFormat) -> None:
        self._layout = layout
        self._repository = repository
        self._format = format_

    def show(self, package_key: str, version_key: str, shown: Shown) -> int:
        """Make one version's directory show it; how many files that changed."""
        top = f"{self._repository.name}/{package_key}"
        if shown.package is None:
            return self._clear(top, keep=frozenset()) + self._clear(f"{top}/{version_key}", keep=frozenset())
        self._layout.write(f"{top}/{PACKAGE}", encode(PackageSidecar.of(shown.package)))
        if not version_key:
            return 0
        directory = f"{top}/{version_key}"
        if shown.version is None:
            return self._clear(directory, keep=frozenset())
        changed = 0
        entries: list[FileSidecar] = []
        for file in shown.files:
            place = f"{self._repository.name}/{self._format.readable_path(file.path)}"
            changed += self._layout.link(file.locator, place)
            entries.append(FileSidecar.of(file, place))
        sidecar = f"{package_key.rsplit('/', 1)[-1]}-{version_key}.json"
        self._layout.write(f"{directory}/{sidecar}", encode(VersionSidecar.of(shown.package, shown.version, entries)))
        kept = frozenset({entry.place.rsplit("/", 1)[-1] for entry in entries} | {sidecar})
        return changed + self._clear(directory, keep=kept)

    def show_repository(self) -> None:
        """Write what the repository itself is."""
        data = encode(RepositorySidecar.of(self._repository))
        place = f"{self._repository.name}/{REPOSITORY}"
        if self._layout.read(place) != data:
            self._layout.write(place, data)

    def _clear(self, directory: str, keep: frozenset[str]) -> int:
        doomed = [name for name in self._layout.files(directory) if name not in keep]
        for name in doomed:
            self._layout.remove(f"{directory}/{name}")
        return len(doomed)


class LayoutFollower(Service):
    """Follows the events of all repositories, a batch at a time, whenever it is poked."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        pools: Pools,
        formats: Mapping[str, IFormat],
        layout_of: Callable[[IBlobStore], ReadableLayout | None],
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._pools = pools
        self._formats = formats
        self._layout_of = layout_of
        self._following: Deferred[None] | None = None
        self._again = False
        self._configuration = -1

    def startService(self) -> None:
        """Catch up with what happened since the last run."""
        super().startService()
        self.poke()

    def stopService(self) -> Deferred[None] | None:
        """Finish the batch in hand."""
        super().stopService()
        return self._following

    def poke(self, _repository: Repository | None = None) -> None:
        """Something changed: follow soon."""
        self._again = True
        if self._following is None and self.running:
            following = self._following = Deferred.fromCoroutine(self._follow())
            following.addErrback(lambda failure: log.failure("the readable layout fell behind", failure=failure))
            following.addCallback(self._done)

    def _done(self, _: object) -> None:
        self._following = None

    async def _follow(self) -> None:
        while self._again and self.running:
            self._again = False
            await self._show_repositories()
            cursor = int(self._catalog.look(settings.get, CURSOR) or 0)
            while self.running:
                batch = await self._catalog.scan(events.events_after, cursor, BATCH)
                if not batch:
                    break
                cursor = batch[-1].seq
                for touched in dict.fromkeys((e.repository_id, e.package_key, e.version_key) for e in batch):
                    await self._show(*touched)
                await self._catalog.write(settings.put, CURSOR, str(cursor))

    async def _show_repositories(self) -> None:
        if self._registry.serial == self._configuration:
            return
        self._configuration = self._registry.serial
        for repository in self._registry.all():
            writer = await self.writer(repository)
            if writer is not None:
                await self._pools.disk(writer.show_repository)

    async def _show(self, repository_id: int, package_key: str, version_key: str) -> None:
        repository = self._registry.find_id(repository_id)
        if repository is None or not package_key:
            return
        writer = await self.writer(repository)
        if writer is None:
            return
        shown = await self._catalog.scan(read_version, repository_id, package_key, version_key)
        try:
            await self._pools.disk(writer.show, package_key, version_key, shown)
        except (OSError, BlobMissing):
            log.failure(
                "{package} {version} of {repository} is not in the readable layout; run verify --repair",
                package=package_key,
                version=version_key,
                repository=repository.path,
            )

    async def writer(self, repository: Repository) -> LayoutWriter | None:
        """The writer for a repository, or None where its storage has no files."""
        format_ = self._formats.get(repository.format)
        store = await self._stores.of(self._registry.storage(repository.storage_id))
        layout = self._layout_of(store)
        if format_ is None or layout is None:
            return None
        return LayoutWriter(layout, repository, format_)
