"""
Reads what files tell of themselves, and notes it in the catalog for all repositories.

Whether a file has to be read is decided by L{OwnFactsOfFiles}.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec
from attrs import define, field
from twisted.logger import Logger

from pkgrepo.archives.inside import Inside, Shape
from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import BlobMissing, Invalid, NotFound
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File
from pkgrepo.proxy.addressed.files import AddressedFiles
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import CONTENTS, INSIDE, SHAPE, TRUST
from pkgrepo.repositories.policy.facts import digests_of
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.storage.blobs.digester import Digester
from pkgrepo.storage.catalog.file_facts import (
    LOCKED,
    FileFacts,
    described_name,
    name_of,
    note_facts,
    place_of,
    strong_names,
)

from .attested_files import Inspect, beside
from .told import Wanted, asked_of_files, by_algorithm, digests_in, said_by

PIECE: Final = 1024 * 1024  # bytes that are read at once, to compute digests


@define(eq=False, kw_only=True)
class FactReading:
    """
    Reads and notes facts; ``formats`` and ``proxied`` are by name. ``inspect`` looks at the bytes of a kept file.

    Metadata are read in a ``pool``; whole files, for what they have inside and for digests, in ``inside``, where that
    keeps nobody else waiting.
    """

    _catalog: ICatalog
    _clock: Clock
    _pool: Pool
    _inside: Pool
    _formats: Mapping[str, StoredFormat]
    _proxied: Mapping[str, Proxied]
    _fetching: Fetching
    _addressed: AddressedFiles
    _inspect: Inspect
    _failures: FailureLog = field(
        factory=lambda: FailureLog(Logger(), "a file of an upstream is refused, as its metadata cannot be read")
    )

    def asked(self, judge: Judge) -> frozenset[Datum]:
        """The data that the rules of a judge ask for, and that only files tell of themselves."""
        return asked_of_files(judge.rules, judge.own) - TRUST

    async def read_listed(self, judge: Judge, remote: RemoteFile, wanted: Wanted) -> tuple[str, FileFacts]:
        """What is known of a listed file then, and by which name: what another file says is known here alone."""
        name = _name_of(remote)
        facts = judge.facts.get(name, FileFacts())
        inside = INSIDE & {*wanted.data}
        whole = wanted.algorithms or inside
        kept = await (self._fetching.finish if whole else self._fetching.find)(remote)
        if kept is not None:
            facts = msgspec.structs.replace(facts, digests=await self._digests_of(judge, kept, wanted.algorithms))
        if wanted.data:
            described = kept or await self._description_of(remote)
            facts = await self._read(judge, described, facts, wanted.data)
            if described.path != remote.source.path:
                name = described_name(name, remote.repository.id)
        if facts != judge.facts.get(name):
            await self.note(judge, name, facts, shown=self._shows(judge, remote, facts))
        if kept is not None and whole:  # by which it is asked for from now on
            strong = f"sha256:{kept.sha256}"
            known = facts if inside else judge.facts.get(strong, FileFacts())
            known = msgspec.structs.replace(known, digests=facts.digests)
            await self.note(judge, strong, known, shown=not wanted.algorithms)
        return name, facts

    async def _description_of(self, remote: RemoteFile) -> File:
        """The first that the upstream has of the files that describe a file, kept."""
        own = self._proxied[remote.repository.format].own_facts
        *others, last = [beside(remote, path) for path in own.described_by(remote.source.path)]
        for each in filter(None, others):
            try:
                return await self._fetching.finish(each)
            except NotFound:
                continue
        return await self._fetching.finish(last or remote)

    async def read_kept(self, judge: Judge, file: File, known: FileFacts | None, wanted: Wanted) -> FileFacts:
        """What is known of a kept file then: ``known``, its digests, and what it tells of what is wanted."""
        data, found = wanted.data, await self._digests_of(judge, file, wanted.algorithms)
        facts = await self._read(judge, file, msgspec.structs.replace(known or FileFacts(), digests=found), data)
        shown = not wanted.algorithms and not {*data} - CONTENTS and facts.contents == () and not facts.unreadable
        for name in (f"sha256:{file.sha256}", *([place_of(file.repository_id, file.path)] if _unnamed(file) else ())):
            await self.note(judge, name, facts, shown=shown)
        return facts

    async def read_described(self, judge: Judge, request: FileRequest, name: str) -> FileFacts:
        """What the file says that describes a version, if there is one; its name is that of its own bytes, too."""
        known = judge.facts.get(name, FileFacts())
        try:
            file = await self._addressed.keep(judge.member, request)
        except NotFound:
            return known
        own = judge.facts.get(f"sha256:{file.sha256}", FileFacts())
        if own == FileFacts(digests=own.digests):  # its digests may be all that was read of it
            own = await self._read(judge, file, own, self.asked(judge))
            await self.note(judge, f"sha256:{file.sha256}", own)
        facts = msgspec.structs.replace(
            known,
            licences=known.licences if own.licences is None else own.licences,
            install_scripts=known.install_scripts if own.install_scripts is None else own.install_scripts,
            published_ms=known.published_ms if own.published_ms is None else own.published_ms,
            unreadable=known.unreadable or own.unreadable,
        )
        if facts != known:
            await self.note(judge, name, facts)
        return facts

    async def _digests_of(self, judge: Judge, file: File, algorithms: Collection[str]) -> tuple[str, ...]:
        """
        The digests of a kept file that are known, and those by some algorithms, as rules name them.

        :raises BlobMissing: the stored bytes are others; :raises StorageFailed: they cannot be read
        """
        found = judge.digests_of_kept(file)
        missing = {*algorithms} - by_algorithm(found).keys()
        if missing:
            read = await self._inspect(self._inside, file.storage_id, file, lambda content: _digests(content, missing))
            if read["sha256"] != file.sha256:  # what is noted of these bytes stays when the copy is repaired
                raise BlobMissing(file.locator)
            found |= digests_of(read)
        return tuple(sorted(found))

    async def _read(self, judge: Judge, file: File, facts: FileFacts, data: Collection[str]) -> FileFacts:
        """The facts with what a kept file tells of the data that are asked for."""
        if INSIDE & {*data}:
            contents, shape = await self._look_inside(judge, file)
            facts = msgspec.structs.replace(facts, contents=contents, shape=shape)
        return await self._read_metadata(judge, file, facts) if {*data} - INSIDE else facts

    async def _look_inside(self, judge: Judge, file: File) -> tuple[tuple[str, ...], Shape | None]:
        look = self._formats[judge.member.format].inside
        assert look is not None, "rules ask for what there is"
        try:
            found: Inside = await self._inspect(
                self._inside, file.storage_id, file, lambda content: look(content, file.path)
            )
        except Invalid as error:
            self._failures.failed(error, reason=f"{judge.member.path}/{file.path}: {error}")
            return LOCKED, None
        return tuple(sorted(found.words)), found.shape

    async def _read_metadata(self, judge: Judge, file: File, facts: FileFacts) -> FileFacts:
        own = self._proxied[judge.member.format].own_facts
        try:
            meta = await self._inspect(
                self._pool, judge.member.storage_id, file, lambda content: own.read(content, file.path)
            )
        except Invalid as error:
            self._failures.failed(error, reason=f"{judge.member.path}/{file.path}: {error}")
            return msgspec.structs.replace(facts, unreadable=True)
        return msgspec.structs.replace(facts, **self._said(judge, meta))

    def _said(self, judge: Judge, meta: Mapping[str, Any]) -> dict[str, Any]:
        """What metadata say, as far as only files tell it."""
        return said_by(self._formats[judge.member.format], self._proxied[judge.member.format].own_facts, meta)

    def _shows(self, judge: Judge, remote: RemoteFile, facts: FileFacts) -> bool:
        """Whether the document says the same of a file: those that are made of it stay as they are."""
        if facts.unreadable or facts.contents or judge.rules.needs & (SHAPE | {"digests"}):
            return False
        if not self.asked(judge) - INSIDE:
            return True
        if judge.declares is None:
            return False
        try:
            said = judge.declares.read(remote.entry.fragments)
        except Invalid:
            return False
        return all(getattr(facts, name) == value for name, value in self._said(judge, said).items())

    async def note_digests(
        self, judge: Judge, path: str, digests: Mapping[str, str], version: str = "", *, lasting: bool = True
    ) -> None:
        """
        Note the digests (hex) of a file that may be refused by them, so that documents do not show it any more.

        The ``version`` is that of one of which documents list no files; it has the digests of all of these. What was
        noted of a path is replaced: a file that is not ``lasting`` has others by now, and its version, too.
        """
        found, place = digests_of(digests), place_of(judge.member.id, path)
        former = digests_in(judge, place)
        if not version or not lasting:
            await self._note_digests(judge, place, found, found)
        names = [place_of(judge.member.id, version)] if version else strong_names(digests)
        for name in names:
            await self._note_digests(judge, name, found, found | (digests_in(judge, name) - former))

    async def _note_digests(self, judge: Judge, name: str, found: frozenset[str], every: frozenset[str]) -> None:
        if not found <= digests_in(judge, name):
            known = judge.facts.get(name, FileFacts())
            await self.note(judge, name, msgspec.structs.replace(known, digests=tuple(sorted(every))))

    async def note(self, judge: Judge, name: str, facts: FileFacts, *, shown: bool = False) -> None:
        """Note what is known of a file by a name; ``shown``: documents that are made of it stay as they are."""
        place = (judge.member.format, judge.rules.package, name)
        await self._catalog.write(note_facts, *place, facts, self._clock.now_ms(), shown=shown)


def _name_of(remote: RemoteFile) -> str:
    return name_of(remote.source.digests, place_of(remote.repository.id, remote.source.path))


def _digests(content: int | bytes, algorithms: Collection[str]) -> dict[str, str]:
    """The digests (hex) of bytes, or of all that can be read from a descriptor, and their sha256. Blocks."""
    digester = Digester(algorithms)
    if isinstance(content, bytes):
        digester.update(content)
    else:
        while piece := os.pread(content, PIECE, digester.position):
            digester.update(piece)
    return digester.digests()


def _unnamed(file: File) -> bool:
    """Whether the upstream announced no digest of a kept file."""
    return bool(file.attrs.get("unverified"))
