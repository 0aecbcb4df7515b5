"""
The engine of mirrors: has a repository fetch what a lock names, as its clients would ask for it.

=======  =============================================================================================================
step     what happens
=======  =============================================================================================================
package  the document is asked for that clients read first, so that it is kept
find     the paths of the wanted files: made of name and version, or as the document lists them
fetch    each as a client gets it: its rules are asked, its bytes verified with what the upstream announced, and kept
compare  its digests with those of the lock
=======  =============================================================================================================

Nothing is noted: what is kept is not fetched again, so that the next run continues one that was interrupted. One file
that cannot be had does not stop the others; what the server itself cannot do ends the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

from attrs import Factory, define, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.together import together
from pkgrepo.errors import (
    Forbidden,
    Invalid,
    NotFound,
    PkgrepoError,
    QuotaExceeded,
    ReadOnly,
    RepositoryInactive,
    StorageFailed,
    StorageFull,
    UpstreamMismatch,
)
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, differs
from pkgrepo.gateway.mirrored.places import Needed, Needs, Place
from pkgrepo.gateway.package_files import find_package_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.context import reason_of
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.packages import files, release_batches

T = TypeVar("T")
log = Logger()

PACKAGES: Final = 6  # at a time
FILES: Final = 4  # of a package at a time
LISTED: Final = 1000  # problems that the result of the job lists; all are counted
LONGEST_REASON: Final = 500

FATAL: Final = (StorageFull, StorageFailed, QuotaExceeded, RepositoryInactive, ReadOnly, CancelledError)

REFUSED: Final = "refused"
NOT_FOUND: Final = "not_found"
DIFFERS: Final = "digest_differs"
FAILED: Final = "failed"
LEFT_OUT: Final = "left_out"
PROBLEMS: Final = (REFUSED, NOT_FOUND, DIFFERS, FAILED, LEFT_OUT)


@define
class Report:
    """What a mirror has done: ``fetched`` files with ``size`` bytes, those ``present`` before, and what is missing."""

    packages: int = 0
    fetched: int = 0
    size: int = 0
    present: int = 0
    counts: dict[str, int] = Factory(lambda: dict.fromkeys(PROBLEMS, 0))
    problems: list[dict[str, str]] = Factory(list)

    def add(self, kind: str, package: str, item: str, reason: str) -> None:
        """Count and list something that a site without internet will not have."""
        self.counts[kind] += 1
        if len(self.problems) < LISTED:
            self.problems.append({"kind": kind, "package": package, "item": item, "reason": reason[:LONGEST_REASON]})

    def to_json(self) -> dict[str, Any]:
        """The result of the job."""
        return {
            "packages": self.packages,
            "fetched": self.fetched,
            "fetched_bytes": self.size,
            "present": self.present,
            **self.counts,
            "problems_count": sum(self.counts.values()),
            "problems": sorted(self.problems, key=lambda each: (each["package"], each["item"])),
            "errors": [],
        }


@frozen
class _Fetched:
    """A file that a repository has now: ``file`` where it is kept, with its size and digests; whether it is new."""

    file: File | None
    size: int
    digests: Mapping[str, str]
    is_new: bool


class MirrorRun:
    """Has one repository fetch what a lock names; of files ``only`` those whose names match one of the globs."""

    def __init__(
        self, services: Services, repository: Repository, format_: Format, *, only: Sequence[str] = ()
    ) -> None:
        self._only = only
        self._services = services
        self._repository = repository
        self._format = format_
        self._mirrored = format_.mirrored
        self._report = Report()
        self._arrived: dict[str, tuple[str, str]] = {}  # package and label by path, of files that are being recorded
        self._unhashed: list[Place] = []  # whose digests are the format's own, and compared when they are kept

    async def run(self, lock: Lock, progress: Progress) -> Mapping[str, Any]:
        """Fetch everything that is missing. :raises PkgrepoError: the server cannot go on"""
        report = self._report
        for item, reason in lock.left_out:
            report.add(LEFT_OUT, "", item, reason)
        by_name: dict[str, list[Wanted]] = {}
        for each in lock.wanted:
            if not each.file or self._is_chosen(each.label):
                by_name.setdefault(each.name, []).append(each)
        report.packages = len(by_name)
        progress.begin("files", sum(map(len, by_name.values())))
        await self._keep_common(lock.wanted)
        work = self._take_images if self._format.keep_image is not None else self._take_package
        await self._take_all(by_name, work, progress)
        await self._services.proxy.settle()
        if self._mirrored.needs is not None:
            await self._take_needed(self._mirrored.needs, lock.wanted, progress)
        for place in self._unhashed:
            await self._compare_own(place)
        sizes = await self._services.catalog.scan(_sizes, self._members, [*self._arrived])
        report.size += sum(sizes.values())
        for path, (name, label) in self._arrived.items():
            if path not in sizes:
                report.fetched -= 1
                report.add(
                    FAILED, name, label, "it was fetched, and could not be kept; the server's log has the reason"
                )
        progress.end()
        return report.to_json()

    async def _take_all(
        self,
        by_name: Mapping[str, Sequence[Wanted]],
        work: Callable[[str, Sequence[Wanted], Progress], Awaitable[None]],
        progress: Progress,
    ) -> None:
        names = iter(by_name.items())

        async def worker() -> None:
            for name, wanted in names:
                await work(name, wanted, progress)

        await _all([worker() for _ in range(PACKAGES)])

    async def _take_needed(self, needs: Needs, wanted: Sequence[Wanted], progress: Progress) -> None:
        """Fetch what files that were fetched need, such as the parents of POMs, until there is no more."""
        needed, naming = needs.collect(), [each for each in wanted if each.file.endswith(needs.ending)]
        while naming:
            for some in _batches(naming, FILES):
                await together(self._add_needs(needed, needs.largest, each.file) for each in some)
            naming = await self._services.pools.cpu(needed.needed)
            await self._take_all({each.file: [each] for each in naming}, self._take_package, progress)
            await self._services.proxy.settle()

    async def _add_needs(self, needed: Needed, largest: int, path: str) -> None:
        file = await self._services.catalog.look(_find_kept, self._members, path)
        if file is not None and file.size <= largest:
            chunks = self._services.files.chunks(file.storage_id, file.locator, file.size)
            await self._services.pools.cpu(needed.add, path, b"".join([each async for each in chunks]))

    async def _keep_common(self, wanted: Sequence[Wanted]) -> None:
        """Have the documents kept that clients read whatever they want."""
        proxy = self._services.proxy
        for question in self._mirrored.common(wanted):
            for each in proxy.resolver.flat_members(self._repository):
                if each.type is not RepositoryType.PROXY or not each.active:
                    continue
                try:
                    await proxy.documents.answer(each, question, Trace())
                except PkgrepoError as error:
                    self._refuse(question.name, question.key, error)

    async def _take_images(self, name: str, wanted: Sequence[Wanted], progress: Progress) -> None:
        keep = self._format.keep_image
        assert keep is not None, "it is a format of images"
        for each in wanted:
            try:
                image = self._format.package_key(name)
                kept = await keep(self._services, self._repository, image, each.version, each.platforms)
            except Exception as error:  # noqa: BLE001 - one bad image does not stop the others
                self._refuse(name, each.label, error)
            else:
                self._report.fetched += kept.fetched
                self._report.present += kept.present
                self._report.size += kept.size
            progress.step()

    async def _take_package(self, name: str, wanted: Sequence[Wanted], progress: Progress) -> None:
        """Fetch the files of a package, and before that its document."""
        try:
            await self._keep_documents(wanted)
            assert self._mirrored.places is not None, "it is no format of images"
            places = await self._mirrored.places(self._services, self._repository, wanted)
            if missing := _without_places(wanted, places):
                # A lock file can be ahead of the documents that are kept.
                await self._keep_documents(missing, revalidate=True)
                places = [*places, *await self._mirrored.places(self._services, self._repository, missing)]
        except Exception as error:  # noqa: BLE001 - one bad package does not stop the others
            for each in wanted:
                self._refuse(name or each.file, each.label, error)
            progress.step(len(wanted))
            return
        for each in _without_places(wanted, places):
            self._report.add(NOT_FOUND, name, each.label, _why_not(each))
        places = [each for each in places if self._is_chosen(self._mirrored.split(each.path.rpartition("/")[2])[0])]
        for companions in (False, True):  # these may be in the files that they belong to
            for some in _batches([each for each in places if each.is_companion is companions], FILES):
                await together(self._take(each) for each in some)
        progress.step(len(wanted))

    def _is_chosen(self, name: str) -> bool:
        return not self._only or any(fnmatchcase(name, each) for each in self._only)

    async def _keep_documents(self, wanted: Sequence[Wanted], *, revalidate: bool = False) -> None:
        """Have the documents kept that clients read. :raises PkgrepoError: there are none"""
        for key in dict.fromkeys(key for each in wanted for key in self._mirrored.document_keys(each)):
            await self._services.proxy.resolver.state(self._repository, key, revalidate=revalidate)

    async def _take(self, place: Place) -> None:
        wanted, report = place.wanted, self._report
        name = wanted.name or place.key
        try:
            if place.is_document:
                await self._services.proxy.resolver.state(self._repository, place.key)
                report.present += 1
                return
            fetched = await self._fetch(place.key, place.path)
            own = not place.is_companion and bool(dict(wanted.digests).keys() & self._mirrored.hashes.keys())
            other = False if place.is_companion or own else await self._differs(wanted, fetched)
        except Exception as error:  # noqa: BLE001 - one bad file does not stop the others
            if not (place.is_companion and isinstance(error, NotFound)):
                self._refuse(name, place.path.rpartition("/")[2] if place.is_companion else wanted.label, error)
            return
        if place.uncounted:
            return  # it comes with another file
        self._unhashed += [place] if own else []
        report.fetched += fetched.is_new
        report.present += not fetched.is_new
        report.size += fetched.size if fetched.is_new else 0
        if fetched.is_new and fetched.file is None:
            self._arrived[place.path] = name, wanted.label
        if other:
            report.add(DIFFERS, name, wanted.label, "the repository has another file than the lock names")

    async def _fetch(self, key: str, path: str) -> _Fetched:
        """A file as the repository has it. :raises PkgrepoError: it cannot be had"""
        kept = await self._services.catalog.look(_is_kept, self._members, path)
        file = await self._find(key, path)
        if isinstance(file, RemoteFile) and file.source.digests and self._is_addressed:
            return _Fetched(None, 0, file.source.digests, not kept)
        if isinstance(file, RemoteFile):
            try:
                file = await self._services.proxy.fetching.finish(file)
            except UpstreamMismatch:  # its document is asked for once more
                again = await self._find(key, path)
                file = await self._services.proxy.fetching.finish(again) if isinstance(again, RemoteFile) else again
        return _Fetched(file, file.size, {**file.digests, "sha256": file.sha256}, not kept)

    async def _find(self, key: str, path: str) -> File | RemoteFile:
        found = await find_package_file(self._services, self._repository, key, path, Want.DIGESTS)
        if found is None:
            raise NotFound("file", path)
        return found.file

    @property
    def _members(self) -> list[int]:
        """The ids of the repositories that may keep a file."""
        return [each.id for each in self._services.proxy.resolver.flat_members(self._repository)]

    @property
    def _is_addressed(self) -> bool:
        """Whether upstreams are asked for files by their paths, and these are verified when they are found."""
        proxied = self._format.proxied
        return proxied is not None and proxied.file_request is not None

    async def _differs(self, wanted: Wanted, fetched: _Fetched) -> bool:
        """Whether a file is another one than the lock names; its bytes are read if no digest tells that."""
        other = differs(wanted.digests, fetched.digests)
        file = fetched.file
        if other is not None or file is None:
            return bool(other)
        algorithm = next(iter(sorted(wanted.digests)))[0]
        digest = hashlib.new(algorithm)
        async for chunk in self._services.files.chunks(file.storage_id, file.locator, file.size):
            await self._services.pools.cpu(digest.update, chunk)
        return bool(differs(wanted.digests, {algorithm: digest.hexdigest()}))

    async def _compare_own(self, place: Place) -> None:
        """Note that a kept file has another digest of the format's own than the lock names."""
        wanted, name, services = place.wanted, place.wanted.name or place.key, self._services
        file = await services.catalog.look(_find_kept, self._members, place.path)
        if file is None:
            return  # which is told
        for algorithm, digest in sorted(wanted.digests):
            compute = self._mirrored.hashes[algorithm]

            def look(content: int | bytes, compute: Callable[[int | bytes, str], str] = compute) -> str:
                return compute(content, place.path)

            try:
                found = await services.files.inspect(services.pools.cpu, file.storage_id, file, look)
            except Exception as error:  # noqa: BLE001 - one bad file does not stop the others
                self._refuse(name, wanted.label, error)
                continue
            if found != digest:
                reason = f"the lock names {digest}, and what the repository has is {found}"
                self._report.add(DIFFERS, name, wanted.label, reason)

    def _refuse(self, package: str, item: str, error: Exception) -> None:
        """Note why a file is missing. :raises Exception: the error, if no other file can be had either"""
        if isinstance(error, FATAL):
            raise error
        kind, reason = FAILED, "internal error; the server's log has it"
        if isinstance(error, RuleRefused | Forbidden):
            kind = REFUSED
        elif isinstance(error, NotFound | Invalid):
            kind = NOT_FOUND
        if isinstance(error, (PkgrepoError, Refusal, OSError)):
            reason = reason_of(error)
        else:
            log.failure("{item} of {package} was not mirrored", Failure(error), item=item, package=package)
        self._report.add(kind, package, item, reason)


def _without_places(wanted: Sequence[Wanted], places: Sequence[Place]) -> list[Wanted]:
    """What a lock names of which no place is known."""
    found = {id(each.wanted) for each in places}
    return [each for each in wanted if id(each) not in found]


def _why_not(wanted: Wanted) -> str:
    """Why there is nothing for what a lock file names."""
    if wanted.version and not wanted.file and wanted.digests:
        return "it does not exist, or no file of it has one of the digests that the lock names"
    return f"version or file {wanted.label!r} does not exist"


async def _all(works: Iterable[Any]) -> None:
    """Wait for works; the first error, or the end of the job, cancels the others."""
    running = [Deferred.fromCoroutine(each) for each in works]
    try:
        await DeferredList(running, fireOnOneErrback=True, consumeErrors=True)
    except BaseException as error:
        for each in running:
            each.cancel()
        await DeferredList(running, consumeErrors=True)
        first = getattr(error, "subFailure", None)
        if first is not None:
            first.raiseException()
        raise


def _batches(places: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(places), count):
        yield places[at : at + count]


def _is_kept(r: Reader, repository_ids: Sequence[int], path: str) -> bool:
    return _find_kept(r, repository_ids, path) is not None


def _find_kept(r: Reader, repository_ids: Sequence[int], path: str) -> File | None:
    found = (files.find_file(r, each, path) for each in repository_ids)
    return next((each for each in found if each is not None), None)


def _sizes(r: Reader, repository_ids: Sequence[int], paths: Sequence[str]) -> dict[str, int]:
    """The sizes in bytes of those files at these paths that are kept."""
    found = (release_batches.find_files(r, each, paths) for each in repository_ids)
    return {path: file.size for some in found for path, file in some.items()}
