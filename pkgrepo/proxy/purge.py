"""
Removes what proxy repositories keep of upstreams: on request, or over the limits of a cache.

The rows are removed, one unit in a transaction; garbage collection removes the bytes later. So clients that read a
file at the moment are not interrupted, and the next one to want it makes it be fetched again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from attrs import Factory, define, evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import Reader
from pkgrepo.model import SYSTEM, Actor, Repository, RepositoryType
from pkgrepo.proxy.caching.kept import KeptResponses
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.images.cached import evict_blob, evict_manifest
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.package_changes import EVICTED, remove_files
from pkgrepo.repositories.upkeep.jobs import NoProgress, Progress
from pkgrepo.storage.catalog.cached_units import (
    START,
    CachedUnit,
    cached_packages,
    cached_size,
    oldest_units,
    sizes_with_blobs,
    units_of_package,
)
from pkgrepo.storage.catalog.images.contents import content_digests
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.packages.pins import pinned_units

PURGE = "cache_purge"  # the kind of the jobs of requests
PAGE = 10_000  # units that are read at once, some MB; each page of the oldest takes 7 s for 1,000,000 files
DAY_MS = 86_400_000

EVERY_S: Final = 3600.0
DOCUMENTS_KEPT_MS: Final = 30 * DAY_MS  # after the last confirmation; a document is fetched again in one request
log = Logger()


@frozen
class Selection:
    """
    What a purge removes: everything, or what meets all conditions that are given.

    ``package`` is the key of a package, ``pattern`` a glob of ``fnmatch`` for keys. ``before_ms``: only what was last
    fetched, or confirmed by an upstream, before this time.
    """

    package: str | None = None
    pattern: str | None = None
    before_ms: int | None = None
    documents_only: bool = False

    def takes_package(self, key: str) -> bool:
        """Whether anything of a package is selected."""
        if self.package is not None and key != self.package:
            return False
        return self.pattern is None or fnmatchcase(key.casefold(), self.pattern.casefold())

    def takes(self, unit: CachedUnit) -> bool:
        """Whether a unit of such a package is selected."""
        if self.documents_only and unit.kind != "document":
            return False
        return self.before_ms is None or unit.fetched_ms < self.before_ms


@define
class PurgeReport:
    """
    What was removed, or would be.

    ``versions`` counts manifests, too, and ``files`` manifests and blobs. ``size`` is the bytes of files,
    ``document_size`` those of documents, which the catalog does not refer to any more. ``first`` are versions and
    manifests that exceed a limit of the cache, with the name of the limit, as many as were asked for.
    """

    packages: int = 0
    versions: int = 0
    files: int = 0
    size: int = 0
    documents: int = 0
    document_size: int = 0
    first: list[tuple[CachedUnit, str]] = Factory(list)

    def add(self, unit: CachedUnit) -> None:
        """Count a unit."""
        if unit.kind == "document":
            self.documents += 1
            self.document_size += unit.size
        else:
            self.versions += 1
            self.files += unit.files
            self.size += unit.size


class CachePurge:
    """
    Removes cached packages and documents.

    ``forget`` forgets what is only in memory about the files of a proxy, in all processes.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        *,
        content: ContentWriter,
        kept: KeptResponses,
        forget: Callable[[Repository], None],
    ) -> None:
        self._catalog = context.catalog
        self._clock = context.clock
        self._formats = context.formats
        self._content = content
        self._kept = kept
        self._forget = forget

    async def purge(
        self, repository: Repository, selection: Selection, actor: Actor, progress: Progress, *, dry_run: bool = False
    ) -> PurgeReport:
        """
        Remove what is selected. What clients make be fetched meanwhile may stay or go.

        :raises RepositoryInactive: the repository is switched off
        """
        report = PurgeReport()
        progress.begin(f"packages of {repository.path}", 0 if selection.package is None else 1)
        async for key in self._keys(repository, selection):
            units = await self._catalog.scan(units_of_package, repository.id, key)
            chosen = await self._sized(repository, [each for each in units if selection.takes(each)])
            for unit in chosen:
                report.add(unit)
            if any(each.kind != "document" for each in chosen):
                report.packages += 1
            if not dry_run:
                await self._remove(repository, chosen, actor)
                if len(chosen) == len(units) and not selection.documents_only:
                    await self._remove_loose_blobs(repository, key)
            progress.step()
        progress.end()
        if not dry_run:
            self._forget(repository)
        return report

    async def evict(
        self, repository: Repository, actor: Actor, progress: Progress, *, dry_run: bool = False, listed: int = 0
    ) -> PurgeReport:
        """
        Remove what exceeds the limits of the cache, beginning with what was not used for longest.

        Pinned versions stay, and what is known about their packages. The report lists up to ``listed`` units.

        :raises RepositoryInactive: the repository is switched off
        """
        config, report = proxy_config_of(repository), PurgeReport()
        before_ms = 0 if config.unused_days is None else self._clock.now_ms() - config.unused_days * DAY_MS
        excess = 0
        if config.max_bytes is not None:
            excess = await self._catalog.scan(cached_size, repository.id) - config.max_bytes
        packages: set[str] = set()
        pinned = await self._catalog.scan(pinned_units, repository.id)
        after, more = START, True
        progress.begin(f"what {repository.path} has not used for longest", 0)
        while more and (excess > 0 or before_ms):
            page = await self._catalog.scan(oldest_units, repository.id, after=after, limit=PAGE)
            more, chosen = len(page) == PAGE, []
            loose = [each for each in page if (each.package_key, _pin_name(each)) not in pinned]
            for unit in await self._sized(repository, loose):
                if excess <= 0 and unit.used_ms >= before_ms:
                    more = False
                    break
                if len(report.first) < listed and unit.kind != "document":
                    report.first.append((unit, "unused_days" if unit.used_ms < before_ms else "max_bytes"))
                excess -= unit.size
                chosen.append(unit)
                report.add(unit)
            packages.update(each.package_key for each in chosen if each.kind != "document")
            if not dry_run:
                await self._remove(repository, chosen, actor)
            progress.step(len(chosen))
            after = page[-1].position if page else after
        progress.end()
        report.packages = len(packages)
        return report

    async def _keys(self, repository: Repository, selection: Selection) -> AsyncIterator[str]:
        """The keys of the packages of which anything is selected; empty for documents about no package."""
        if selection.package is not None:
            yield selection.package
            return
        page = [""]
        while page:
            for key in page:
                if selection.takes_package(key):
                    yield key
            page = await self._catalog.scan(cached_packages, repository.id, after=page[-1], limit=PAGE)

    async def _sized(self, repository: Repository, units: Sequence[CachedUnit]) -> list[CachedUnit]:
        """The units, with what an image loses with each manifest, if they are removed in this order."""
        digests: dict[str, list[str]] = {}
        for each in units:
            if each.kind == "manifest":
                digests.setdefault(each.package_key, []).append(each.name)
        sizes = {
            (image, digest): found
            for image, names in digests.items()
            for digest, found in zip(
                names,
                await self._catalog.scan(sizes_with_blobs, repository.storage_id, repository.id, image, names),
                strict=True,
            )
        }
        found = []
        for each in units:
            files, size = sizes.get((each.package_key, each.name), (each.files, each.size))
            found.append(evolve(each, files=files, size=size))
        return found

    async def _remove(self, repository: Repository, units: Sequence[CachedUnit], actor: Actor) -> None:
        documents = [each.name for each in units if each.kind == "document"]
        if documents:
            await self._kept.forget(repository, documents)
        indexer = self._formats[repository.format].index
        for unit in units:
            with suppress(NotFound):  # it was removed meanwhile
                if unit.kind == "version":
                    command = partial(remove_files, kind=EVICTED)
                    place = (unit.package_key, unit.name, None)
                    await self._content.change(command, repository, *place, actor, indexer, False)
                elif unit.kind == "manifest":
                    await self._content.change(evict_manifest, repository, unit.package_key, unit.name, actor)

    async def _remove_loose_blobs(self, repository: Repository, key: str) -> None:
        """Remove the blobs of an image of which all manifests are gone."""
        for digest in await self._catalog.scan(_blobs_of, repository.id, key):
            await self._content.change(evict_blob, repository, key, digest)


def _pin_name(unit: CachedUnit) -> str:
    """The name of a unit in the set of those that are pinned; documents are pinned with their package."""
    return "" if unit.kind == "document" else unit.name


def _blobs_of(reader: Reader, repository_id: int, key: str) -> list[str]:
    package = find_package(reader, repository_id, key)
    return [] if package is None else content_digests(reader, package.id)[1]


class CacheLimits(PeriodicTask):
    """Runs at the start and every hour; several processes may run it at the same time."""

    def __init__(
        self, context: MaintenanceContext, *, purge: CachePurge, kept: KeptResponses, reactor: IReactorTime
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="keeping caches within their limits")
        self._registry = context.registry
        self._clock = context.clock
        self._purge = purge
        self._kept = kept

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._registry.refresh()
        for repository in self._registry.all():
            if repository.type is RepositoryType.PROXY and repository.active:
                try:
                    await self._limit(repository)
                except PkgrepoError:
                    log.failure("the cache of {repository} could not be limited", repository=repository.path)

    async def _limit(self, repository: Repository) -> None:
        await self._kept.forget_unused(repository, self._clock.now_ms() - DOCUMENTS_KEPT_MS)
        config = proxy_config_of(repository)
        if config.max_bytes is None and config.unused_days is None:
            return
        found = await self._purge.evict(repository, SYSTEM, NoProgress())
        if found.versions or found.documents:
            log.info(
                "evicted {versions} versions and {documents} documents of {size} bytes from {repository}",
                versions=found.versions,
                documents=found.documents,
                size=found.size + found.document_size,
                repository=repository.path,
            )
