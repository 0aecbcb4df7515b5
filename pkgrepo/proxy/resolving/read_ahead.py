"""
Reads what rules ask of the newest files of a package before its document is made.

Documents of upstreams do not tell all of that, so that a client could choose a file that is then refused. One file of
the newest version is read; if a rule refuses it, the other files of that version are, and then the version before. Of a
hosted repository all files are, which are here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as LateError
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.states import STALE_RETRY_MS
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.packages.files import files_of_package
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial

from .flat_members import FlatMember
from .own_facts import OwnFactsOfFiles
from .rules import PolicyJudges
from .serving import UpstreamMember

MOST_FILES: Final = 40  # of one version
AT_ONCE: Final = 8
LARGEST: Final = 16 * 1024 * 1024  # bytes of a file that is fetched whole
LONGEST_S: Final = 10  # that a document waits; after that no more are read, but for those that are under way
MOST_KEPT: Final = 2048  # packages of which is known that they were read
READ: Final = sys.maxsize  # the time (ms) of the next reading of what was read whole

Newest = list[tuple[str, list[Entry]]]  # versions, the newest first, with the entries of each


@define(eq=False, kw_only=True)
class ReadAhead:
    """Reads them; ``versions`` is how many of a package at most, 0 for none. ``formats``, ``proxied`` are by name."""

    _catalog: ICatalog
    _own: OwnFactsOfFiles
    _judges: PolicyJudges
    _documents: Documents
    _clock: Clock
    _formats: Mapping[str, StoredFormat]
    _proxied: Mapping[str, Proxied]
    _versions: int
    _reactor: IReactorTime
    _done: StampCache[tuple[int, str], int] = field(factory=lambda: StampCache(MOST_KEPT))

    async def read(self, flat: FlatMember, member: UpstreamMember, judge: Judge) -> Judge:
        """
        The judge of a member, with what is known of its newest files then.

        That is less while an upstream fails, or takes long: what is being read of it then is known the next time, and
        the rest is read some time later.
        """
        file_of = self._proxied[member.repository.format].own_facts.file_of
        if not self._versions or not self._own.reads(judge) or (judge.rules.at_ms is not None and file_of is None):
            return judge
        stamp = (member.serial, judge.rules.stamp)
        place = member.repository.id, member.request.key
        due_ms = self._done.find(place, stamp)
        if due_ms is not None:
            if self._clock.now_ms() < due_ms:
                return judge
            self._done.forget(place)
        read = self._read_newest if file_of is None else partial(self._read_described, file_of=file_of)
        work = self._done.get(place, stamp, partial(read, member, judge))
        with suppress(LateError):
            await Deferred.fromCoroutine(work).addTimeout(LONGEST_S, self._reactor)
        return await self._judges.of(flat, judge.rules.package, (member.request, member.held)) or judge

    async def read_stored(self, flat: FlatMember, judge: Judge) -> Judge:
        """
        The judge of a hosted repository, with what is known of its files when all were read; less if that takes long.

        What is left is read the next time, and when it is asked for.
        """
        repository, package = flat.repository, judge.rules.package
        if not self._own.reads(judge):
            return judge
        serial = await self._catalog.look(package_serial, repository.id, package) or 0
        place, stamp = (repository.id, package), (serial, judge.rules.stamp)
        if self._done.find(place, stamp) is not None:
            return judge
        work = self._done.get(place, stamp, partial(self._read_kept, judge))
        with suppress(LateError):
            await Deferred.fromCoroutine(work).addTimeout(LONGEST_S, self._reactor)
        return await self._judges.of(flat, package) or judge

    async def _read_kept(self, judge: Judge) -> int:
        kept: Sequence[File] = await self._catalog.scan(_files_of, judge.member.id, judge.rules.package)
        for number in range(0, len(kept), AT_ONCE):
            await together(self._read_one(judge, each) for each in kept[number : number + AT_ONCE])
        return READ

    async def _read_one(self, judge: Judge, file: File) -> None:
        with suppress(PkgrepoError):  # the file is shown, and judged when it is asked for
            await self._own.of_kept(judge, file)

    async def _read_newest(self, member: UpstreamMember, judge: Judge) -> int:
        """Read them. Returns when it is to be tried again (ms), as far as it could not be done now."""
        route, until_ms = member.held.document.route, self._clock.now_ms() + round(LONGEST_S * 1000)
        find = partial(self._newest, judge=judge, section=member.request.section, route=route)
        newest: Newest = await self._documents.read(member.repository, member.request, member.held, find)
        for _, entries in newest:
            for number in (0, *range(1, len(entries), AT_ONCE)):
                some = entries[number : number + (AT_ONCE if number else 1)]
                served = await together(self._is_served(member, judge, each) for each in some)
                if None in served or self._clock.now_ms() > until_ms:
                    return self._clock.now_ms() + STALE_RETRY_MS
                if not number and served[0]:
                    return READ
        return READ

    async def _read_described(self, member: UpstreamMember, judge: Judge, file_of: Callable[[str, str], str]) -> int:
        """Read the files that describe versions. The result is that of the other way."""
        repository, package = member.repository, judge.rules.package
        whole = judge.rules.at_ms is not None
        until_ms = self._clock.now_ms() + round(LONGEST_S * 1000)
        ask = self._proxied[repository.format].file_request
        assert ask is not None, "files are found by their paths"

        async def is_served(entry: Entry) -> bool | None:
            try:
                known = await self._own.of_version(judge, ask(package, file_of(package, entry.version)))
            except NotFound:
                return False
            except PkgrepoError:  # the version is shown, and judged when it is asked for
                return None
            return known.of_entry(entry, member.held.document.route).served

        find = partial(self._order, judge=judge, section=member.request.section)
        order: list[Entry] = await self._documents.read(repository, member.request, member.held, find)
        order = order if whole else order[: self._versions]
        for number in range(0, len(order), AT_ONCE if whole else 1):
            served = await together(is_served(each) for each in order[number : number + (AT_ONCE if whole else 1)])
            if None in served or self._clock.now_ms() > until_ms:
                return self._clock.now_ms() + STALE_RETRY_MS
            if not whole and served[0]:
                break
        return READ

    def _order(self, parts: PartsFile, judge: Judge, section: bytes) -> list[Entry]:
        """The versions that a document lists, the newest first; prereleases after all others."""
        kinds = self._formats[judge.member.format].versions
        entries = [*parts.entries((), section)]
        if kinds is not None:
            entries.sort(key=lambda each: (not kinds.prerelease(each.version), kinds.sort(each.version)))
        return entries[::-1]

    async def _is_served(self, member: UpstreamMember, judge: Judge, entry: Entry) -> bool | None:
        """Whether a file is there, and no rule refuses it; None if that cannot be found out now."""
        document = member.held.document
        remote = RemoteFile(
            member.repository, judge.rules.package, document.route, entry.files[0], entry, document.checked_ms
        )
        try:
            judge = await self._own.of_listed(judge, remote, digests=False, largest=LARGEST)
        except NotFound:
            return False
        except PkgrepoError:  # the file is shown, and judged when it is asked for
            return None
        return judge.of_entry(entry, document.route).served

    def _newest(self, parts: PartsFile, judge: Judge, section: bytes, route: str) -> Newest:
        """The newest versions that are shown, as far as that is known; prereleases only where there are no others."""
        versions: dict[str, list[Entry]] = {}
        for each in parts.entries(judge.kinds, section):
            if each.files and judge.of_entry(each, route).served:
                versions.setdefault(each.version, []).append(each)
        kinds = self._formats[judge.member.format].versions
        order = [*versions]
        if kinds is not None:
            order = [each for each in order if not kinds.prerelease(each)] or order
            order.sort(key=kinds.sort)
        newest = order[: -self._versions - 1 : -1]
        found: Newest = []
        for version in newest:
            paths = [each.files[0].path for each in sorted(versions[version], key=_size)[:MOST_FILES]]
            entries = (parts.find_path(each, section) for each in paths)  # with all that keeping a file needs
            found.append((version, [each[0] for each in entries if each is not None]))
        return [each for each in found if each[1]]


def _files_of(r: Reader, repository_id: int, key: str) -> Sequence[File]:
    """The files of a package (a key), without those beside them."""
    package = find_package(r, repository_id, key)
    return () if package is None else [each for each in files_of_package(r, package.id) if each.role is None]


def _size(entry: Entry) -> tuple[bool, int]:
    """Files that have their metadata beside them come first, then small ones."""
    return len(entry.files) == 1, entry.files[0].size or 0
