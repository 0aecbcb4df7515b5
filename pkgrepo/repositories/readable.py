"""
Keeps the readable layout in step with the catalog.

It follows the version events: each names a package and a version, and whatever that version is *now* is what its
directory is made to show, so that an event may be seen twice and none is needed in its order. The last event that
was followed is kept in the catalog; a crash repeats some work and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from attrs import frozen
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import BlobMissing
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat, Reader
from pkgrepo.model import File, Package, Repository, Version
from pkgrepo.storage.catalog import events, files, packages, settings, versions
from pkgrepo.storage.pools import Pools
from pkgrepo.storage.readable import ReadableLayout

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


@frozen
class Plan:
    """What has to change on the disk: links as (locator, place), documents as (place, bytes), and what has to go."""

    links: tuple[tuple[str, str], ...] = ()
    documents: tuple[tuple[str, bytes], ...] = ()
    doomed: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.links) + len(self.documents) + len(self.doomed)


class LayoutWriter:
    """Holds what a version is against the readable layout; every method blocks, so call it in a thread."""

    def __init__(self, layout: ReadableLayout, repository: Repository, format_: IFormat) -> None:
        self._layout = layout
        self._repository = repository
        self._format = format_

    def show(self, package_key: str, version: str, shown: Shown) -> int:
        """Make one version's directory show it; how many changes that took."""
        plan = self.plan(package_key, version, shown)
        self.apply(plan)
        return len(plan)

    def plan(self, package_key: str, version: str, shown: Shown) -> Plan:
        """
        What it would take to make one version's directory show it.

        ``version`` is how the version is written, which names its directory; empty to look at the package only.
        """
        top = f"{self._repository.name}/{package_key}"
        directory = f"{top}/{version}"
        if shown.package is None:
            doomed = self._others(top, frozenset()) + (self._others(directory, frozenset()) if version else ())
            return Plan(doomed=doomed)
        documents = {f"{top}/{PACKAGE}": encode(PackageSidecar.of(shown.package))}
        if not version:
            return Plan(documents=self._different(documents))
        if shown.version is None:
            return Plan(documents=self._different(documents), doomed=self._others(directory, frozenset()))
        entries = [
            FileSidecar.of(file, f"{self._repository.name}/{self._format.readable_path(file.path)}")
            for file in shown.files
        ]
        sidecar = f"{directory}/{package_key.rsplit('/', 1)[-1]}-{version}.json"
        documents[sidecar] = encode(VersionSidecar.of(shown.package, shown.version, entries))
        links = tuple(
            (entry.locator, entry.place) for entry in entries if not self._layout.is_linked(entry.locator, entry.place)
        )
        kept = frozenset({entry.place for entry in entries} | {sidecar})
        return Plan(links=links, documents=self._different(documents), doomed=self._others(directory, kept))

    def plan_repository(self) -> Plan:
        """What it would take to have the repository's own document right."""
        place = f"{self._repository.name}/{REPOSITORY}"
        return Plan(documents=self._different({place: encode(RepositorySidecar.of(self._repository))}))

    def plan_rest(self, known: Mapping[str, Collection[str]]) -> Plan:
        """What shows packages and versions that do not exist; ``known`` are the texts of the versions by package."""
        top = self._repository.name
        expected = {top, *(f"{top}/{key}" for key in known)}
        expected.update(f"{top}/{key}/{version}" for key, versions in known.items() for version in versions)
        return Plan(doomed=tuple(p for p in self._layout.walk(top) if p.rpartition("/")[0] not in expected))

    def apply(self, plan: Plan) -> None:
        """Do what was planned."""
        for locator, place in plan.links:
            self._layout.link(locator, place)
        for place, data in plan.documents:
            self._layout.write(place, data)
        for place in plan.doomed:
            self._layout.remove(place)

    def show_repository(self) -> None:
        """Write what the repository itself is."""
        self.apply(self.plan_repository())

    def _different(self, documents: Mapping[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        return tuple((place, data) for place, data in documents.items() if self._layout.read(place) != data)

    def _others(self, directory: str, kept: frozenset[str]) -> tuple[str, ...]:
        places = (f"{directory}/{name}" for name in self._layout.files(directory))
        return tuple(place for place in places if place not in kept)


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
        self.layout_of = layout_of
        self._following: Deferred[None] | None = None
        self._again = False
        self._configuration = -1

    def startService(self) -> None:
        """Catch up with what happened since the last run."""
        super().startService()  # type: ignore[no-untyped-call]
        self.poke()

    def stopService(self) -> Deferred[None] | None:
        """Finish the batch in hand."""
        super().stopService()  # type: ignore[no-untyped-call]
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
                touched = ((e.repository_id, e.package_key, e.version_key, e.data.get("version", "")) for e in batch)
                for each in dict.fromkeys(touched):
                    await self._show(*each)
                await self._catalog.write(settings.put, CURSOR, str(cursor))

    async def _show_repositories(self) -> None:
        if self._registry.serial == self._configuration:
            return
        self._configuration = self._registry.serial
        for repository in self._registry.all():
            writer = await self.writer(repository)
            if writer is not None:
                await self._pools.disk(writer.show_repository)

    async def _show(self, repository_id: int, package_key: str, version_key: str, version: str) -> None:
        repository = self._registry.find_id(repository_id)
        if repository is None or not package_key:
            return
        writer = await self.writer(repository)
        if writer is None:
            return
        shown = await self._catalog.scan(read_version, repository_id, package_key, version_key)
        try:
            await self._pools.disk(writer.show, package_key, version, shown)
        except (OSError, BlobMissing):
            log.failure(
                "{package} {version} of {repository} is not in the readable layout; run verify --repair",
                package=package_key,
                version=version,
                repository=repository.path,
            )

    async def writer(self, repository: Repository) -> LayoutWriter | None:
        """The writer for a repository, or None where its storage has no files."""
        format_ = self._formats.get(repository.format)
        store = await self._stores.of(self._registry.storage(repository.storage_id))
        layout = self.layout_of(store)
        if format_ is None or layout is None:
            return None
        return LayoutWriter(layout, repository, format_)
