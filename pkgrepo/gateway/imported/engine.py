"""
The engine of imports: compares a source with the catalog, fetches what is missing, verifies and publishes it.

=======  ===============================================================  ===========================================
step     what happens                                                     left by a crash
=======  ===============================================================  ===========================================
list     the names of the packages of the source, one after the other     nothing
compare  what the source says of a package, by its fingerprint with the   nothing
         journal, and by paths and digests with the catalog
fetch    some missing files, with the digests that the source announced   nothing; their bytes are swept
publish  these files, in one transaction                                  all of them or none: the next run compares
facts    yanks, deprecations and tags of the package, in another one,     the next run sets them
         and its download counts
note     the package in the journal, and what was left out                the next run compares the package again
=======  ===============================================================  ===========================================

One file that is refused, or one package, does not stop the others. What the server itself cannot do ends the import:
its disk is full, the repository was switched off, a quota leaves no room.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, cast

import msgspec
from attrs import Factory, define, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import (
    DigestMismatch,
    PkgrepoError,
    QuotaExceeded,
    ReadOnly,
    RepositoryInactive,
    SizeMismatch,
    StorageFailed,
    StorageFull,
    UpstreamFailed,
)
from pkgrepo.gateway.imported.items import Source, SourcePackage
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.context import reason_of
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.imported_downloads import keep_downloads
from pkgrepo.storage.catalog.server import imports
from pkgrepo.storage.catalog.server.imports import LeftOut

log = Logger()

WORKERS: Final = 4  # packages at a time
# Of a folder, in a process that serves: its threads keep the interpreter from readers, and nothing waits for a network.
# 2,000 wheels of 10 KB: with four the p99 of readers is 2.3 to 2.6 times as long, with one 1.7 times, at 280 files/s.
WORKERS_BESIDE_READERS: Final = 1
LISTED: Final = 1000  # things left out that the result of the job lists; the journal has all
LONGEST_REASON: Final = 500

FATAL: Final = (StorageFull, StorageFailed, QuotaExceeded, RepositoryInactive, ReadOnly)
PASSING: Final = (UpstreamFailed, OSError, DigestMismatch, SizeMismatch)  # another run may succeed


@define
class Report:
    """
    What an import has done: the numbers of packages and files, and ``size`` in bytes.

    ``unchanged`` are packages of which the source says what it said when they were taken in. ``facts`` are yanks,
    deprecations, tags and download counts that were set. ``left_out`` lists the first ``LISTED`` of ``left_out_count``.
    """

    packages: int = 0
    unchanged: int = 0
    files: int = 0
    size: int = 0
    present: int = 0
    facts: int = 0
    left_out_count: int = 0
    left_out: list[LeftOut] = Factory(list)

    def leave_out(self, left: Sequence[LeftOut]) -> None:
        """Count and list what is left out."""
        self.left_out_count += len(left)
        self.left_out += left[: max(0, LISTED - len(self.left_out))]

    def to_json(self, *, dry_run: bool) -> dict[str, Any]:
        """The result of the job."""
        return {
            "dry_run": dry_run,
            "packages": self.packages,
            "unchanged": self.unchanged,
            "files": self.files,
            "size_bytes": self.size,
            "present": self.present,
            "facts": self.facts,
            "left_out_count": self.left_out_count,
            "left_out": [
                {"package": each.package, "item": each.item, "reason": each.reason}
                for each in sorted(self.left_out, key=lambda each: (each.package, each.item))
            ],
            "errors": [],
        }


@frozen(kw_only=True)
class Order:
    """
    What is to be taken in, on whose behalf.

    ``place`` is the address or the folder, without credentials. ``only`` are globs of names; none: all packages. With
    ``again`` packages are compared although the source says what it said before.
    """

    kind: str
    place: str
    repository: Repository
    actor: Admitted
    only: Sequence[str] = ()
    dry_run: bool = False
    again: bool = False

    def wants(self, name: str) -> bool:
        """Whether a package is to be taken in."""
        return not self.only or any(fnmatchcase(name.casefold(), each.casefold()) for each in self.only)


@frozen(kw_only=True)
class Tools:
    """What the engine works with, in every repository. ``serves``: this process answers requests meanwhile."""

    catalog: ICatalog
    content: ContentWriter
    pools: Pools
    clock: Clock
    max_upload: int
    serves: bool = False


@define
class Taken:
    """
    What has become of one package, called ``name`` by its source.

    ``passing``: something failed that may succeed another time. ``tags_before`` are what tags stood for at the source
    when the package was noted last: one that stands for something else here was moved here. The counts are those of
    L{Report}.
    """

    name: str
    report: Report
    progress: Progress
    left_out: list[LeftOut] = Factory(list)
    passing: bool = False
    tags_before: Mapping[str, str] = Factory(dict)

    def may_move(self, tag: str, present: str | None) -> bool:
        """Whether a tag, which stands for ``present`` here, may be set to what it stands for at the source now."""
        return present is None or self.tags_before.get(tag) == present

    def refuse(self, item: str, error: Exception) -> None:
        """
        Note why a file, or with an empty name the package, is left out.

        :raises Exception: the error, if no other file can be taken in either
        """
        if isinstance(error, (*FATAL, CancelledError)):
            raise error
        self.passing |= isinstance(error, PASSING)
        if isinstance(error, (PkgrepoError, Refusal, OSError)):
            reason = reason_of(error)
        else:
            self.passing = True
            log.failure("{item} of {package} was not taken in", Failure(error), item=item or "all", package=self.name)
            reason = "internal error; the server's log has it"
        self.leave_out(item, reason)

    def leave_out(self, item: str, reason: str) -> None:
        """Note a reason."""
        self.left_out.append(LeftOut(self.name, item, reason[:LONGEST_REASON]))
        self.progress.step()

    def count(self, files: int, size: int) -> None:
        """Count files that were taken in."""
        self.report.files += files
        self.report.size += size
        self.progress.step(files)

    def count_present(self, files: int) -> None:
        """Count files that were there already."""
        self.report.present += files
        self.progress.step(files)


TakePackage = Callable[[SourcePackage, Taken], Awaitable[None]]  # of what is missing of a package


class Import:
    """Takes in the packages of one source, each by ``take``."""

    def __init__(self, tools: Tools, order: Order, source: Source, take: TakePackage) -> None:
        self._catalog = tools.catalog
        self._clock = tools.clock
        self._order = order
        self._source = source
        self._take = take
        local = not order.place.startswith(("http://", "https://"))
        self._workers = WORKERS_BESIDE_READERS if tools.serves and local else WORKERS
        self._report = Report()
        self._listing = DeferredLock()
        self._failed = False
        self._journal: int | None = None  # None: nothing is noted

    async def run(self, progress: Progress) -> Mapping[str, Any]:
        """Take in everything that is missing. :raises PkgrepoError: the source cannot be listed, or see above"""
        order = self._order
        if not order.dry_run:
            self._journal = await self._catalog.write(
                imports.ensure_import, order.repository.id, order.kind, order.place
            )
        progress.begin("files", 0)
        names = self._source.names()
        works = [Deferred.fromCoroutine(self._work(names, progress)) for _ in range(self._workers)]
        try:
            for ended, result in await DeferredList(works, consumeErrors=True):
                if not ended:
                    cast("Failure", result).raiseException()
        except CancelledError:
            self._failed = True
            for each in works:
                each.cancel()
            await DeferredList(works, consumeErrors=True)
            raise
        progress.end()
        return self._report.to_json(dry_run=order.dry_run)

    async def _work(self, names: AsyncIterator[str], progress: Progress) -> None:
        try:
            while not self._failed and (name := await self._next(names)) is not None:
                if self._order.wants(name):
                    await self._take_package(name, progress)
        except BaseException:
            self._failed = True
            raise

    async def _next(self, names: AsyncIterator[str]) -> str | None:
        """The next name; a generator cannot run for two workers at a time."""
        await self._listing.acquire()
        try:
            return await anext(names)  # with a default, Python 3.11 cannot be resumed by a Deferred
        except StopAsyncIteration:
            return None
        finally:
            self._listing.release()

    async def _take_package(self, name: str, progress: Progress) -> None:
        """Take in one package, and note it. :raises PkgrepoError: the server cannot go on"""
        taken = Taken(name, self._report, progress)
        noted, files = None, 0
        self._report.packages += 1
        try:
            source_package = await self._source.package(name)
            mark, taken.tags_before = await self._find_noted(name)
            if mark == source_package.fingerprint and self._journal is not None and not self._order.again:
                left_out = await self._catalog.look(imports.left_out_of, self._journal, name)
                self._report.unchanged += 1
                self._report.leave_out(left_out)
                return
            for item, reason in source_package.left_out:
                taken.leave_out(item, reason)
            await self._take(source_package, taken)
            if source_package.downloads is not None and not self._order.dry_run:
                taken.report.facts += await self._catalog.write(
                    keep_downloads, self._order.repository.id, source_package.key, source_package.downloads
                )
            mark = "" if taken.passing else source_package.fingerprint  # no package has an empty one
            noted, files = f"{mark} {msgspec.json.encode(source_package.tags).decode()}", len(source_package.items)
        except Exception as error:  # noqa: BLE001 - one bad package does not stop the others
            taken.refuse("", error)
        self._report.leave_out(taken.left_out)
        if self._journal is not None:
            now_ms = self._clock.now_ms()
            await self._catalog.write(imports.note_package, self._journal, name, noted, files, taken.left_out, now_ms)

    async def _find_noted(self, name: str) -> tuple[str, Mapping[str, str]]:
        """The fingerprint of a package when it was taken in, and its tags then; both are empty if it was not."""
        if self._journal is None:
            return "", {}
        noted = await self._catalog.look(imports.find_fingerprint, self._journal, name)
        mark, _, tags = ("" if noted is None else noted[0]).partition(" ")
        return mark, msgspec.json.decode(tags or "{}", type=dict[str, str])
