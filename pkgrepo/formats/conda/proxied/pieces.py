"""
Documents of channels that have several members: each member's part is written apart, and kept while it stays the same.

=============================  ===================================  ===============================================
document                       of an upstream it has                of hosted members
=============================  ===================================  ===============================================
``repodata.json``              all records                          all records
``current_repodata.json``      those in the upstream's own          all records: more than clients need
``run_exports.json``           the entries in the upstream's own    the entries of all files
the index of shards            shards made from the records         the shards of all packages
``channeldata.json``           the entries in the upstream's own    the entries of all packages
=============================  ===================================  ===============================================

Parts are in temporary files, so that memory is needed for the records of one package at a time, and 500 bytes for each
shard. All functions block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from attrs import Factory, define, evolve, field, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.formats.conda.index.documents import CHANNELDATA, RUN_EXPORTS
from pkgrepo.formats.conda.index.packages import PackageRecords, make_shard
from pkgrepo.formats.conda.index.texts import CHANNELDATA_HEAD, EXPORTS_TAIL, TAIL, channeldata_entry, folder_head
from pkgrepo.formats.conda.names import CONDA, SUBDIRS, TAR_BZ2
from pkgrepo.formats.conda.proxied.members import Selection
from pkgrepo.gateway.responses.long_bodies import TemporaryFile
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import name_in

from .normaliser import ABOUT, EXPORTS, RECORD
from .normaliser import SUBDIRS as SUBDIRS_KEY

PIECE: Final = 1024 * 1024  # bytes that are read at a time
BUFFER: Final = 256 * 1024  # bytes of a text that are kept in memory until they are written

_SECTIONS: Final = (TAR_BZ2, CONDA)

_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Texts = Mapping[str, bytes]  # by section: members of a JSON object, a comma before each


@define(eq=False)
class Spool:
    """A text that is written at its end: a short one in memory, a long one in a temporary file."""

    size: int = 0
    sha256: Any = Factory(hashlib.sha256)
    _file: TemporaryFile | None = None
    _buffer: bytearray = Factory(bytearray)

    def add(self, data: bytes) -> None:
        """Add bytes. :raises StorageFull: there is no room for temporary files"""
        self._buffer += data
        self.size += len(data)
        self.sha256.update(data)
        if len(self._buffer) >= BUFFER:
            if self._file is None:
                self._file = TemporaryFile()
            self._file.write(bytes(self._buffer), self.size - len(self._buffer))
            self._buffer.clear()

    def read(self, start: int, end: int) -> bytes:
        """The bytes between two offsets."""
        written = self.size - len(self._buffer)
        found = b"" if self._file is None or start >= written else self._file.read(start, min(end, written) - start)
        return found + bytes(self._buffer[max(start - written, 0) : max(end - written, 0)])

    def pieces(self, start: int = 0) -> Iterator[bytes]:
        """The bytes from an offset on."""
        for at in range(start, self.size, PIECE):
            yield self.read(at, min(at + PIECE, self.size))


@frozen
class ShardPlace:
    """Where in a part the shard of a package is; ``source`` is the digest of what it was made of."""

    name: str
    source: bytes
    start: int
    end: int


@define(eq=False)
class Part:
    """
    What one member has of a document: ``texts`` by section, or shards in ``bodies`` by their digests.

    ``subdirs`` are those that the data of a channel names. At ``opens_ms`` (None: never) it must be made again.
    ``split`` are the records of packages of which other members have some, too, and which are in no shard yet.
    """

    texts: dict[str, Spool] = Factory(dict)
    bodies: Spool = field(factory=Spool)
    shards: dict[bytes, ShardPlace] = Factory(dict)
    digests: dict[str, bytes] = Factory(dict)  # of the shards, by package
    subdirs: set[str] = Factory(set)
    opens_ms: int | None = None
    split: dict[str, dict[str, bytes]] = Factory(dict)

    def is_current(self, now_ms: int) -> bool:
        """Whether it shows all that may be shown by now."""
        return self.opens_ms is None or now_ms < self.opens_ms

    def add_texts(self, texts: Texts) -> None:
        """Add the members of a package."""
        for section, text in texts.items():
            if text:
                self.texts.setdefault(section, Spool()).add(text)

    def add_shard(self, name: str, texts: Texts, before: Part | None) -> None:
        """Add the shard of a package, which is taken from the part ``before`` if it is the same there."""
        source = hashlib.sha256(b"\x00".join((name.encode(), texts[TAR_BZ2], texts[CONDA]))).digest()
        known = None if before is None else before.digests.get(name)
        if before is not None and known is not None and before.shards[known].source == source:
            digest, body = known, before.shard(known)
        else:
            made = make_shard(name, texts[TAR_BZ2], texts[CONDA])
            digest, body = made.digest, made.body
        start = self.bodies.size
        self.bodies.add(body)
        self.shards[digest] = ShardPlace(name, source, start, self.bodies.size)
        self.digests[name] = digest

    def shard(self, digest: bytes) -> bytes:
        """The shard with a digest, which the part has."""
        place = self.shards[digest]
        return self.bodies.read(place.start, place.end)


@frozen(eq=False)
class PartPlan:
    """
    Which document a part is of. ``subdir`` is empty for that of a channel. With ``shards`` it is the index of shards.

    ``before`` is the part that it replaces, ``shared`` are the names of packages of which several members have records.
    """

    subdir: str
    document: str
    shards: bool = False
    before: Part | None = None
    shared: frozenset[str] = frozenset()

    def write_upstream(self, parts: PartsFile, selection: Selection) -> Part:
        """The part of an upstream, from the parts of its document."""
        made = Part(opens_ms=selection.hidden.opens_ms)
        if self.document == CHANNELDATA:
            made.subdirs |= {each for each in parts.top.get(SUBDIRS_KEY, ()) if each in SUBDIRS}
            kinds = {ABOUT: ABOUT}
        else:
            start = EXPORTS if self.document == RUN_EXPORTS else RECORD
            kinds = {ending: f"{start}{ending}" for ending in _SECTIONS}
        for name, files in packages_of(parts, kinds):
            if not selection.takes_package(name):
                continue
            if selection.named is None:
                texts = {section: _join(selection, some) for section, some in files.items()}
            else:
                shown = [(key, selection.shown_about(key, body)) for key, body in files[ABOUT]]
                texts = {ABOUT: _join(selection, shown)}
            self._add(made, name, texts)
        return made

    def write_hosted(self, members: Iterable[Iterable[tuple[str, PackageRecords]]]) -> Part:
        """The part of all hosted members; a file of several is that of the first one."""
        made = Part()
        packages: dict[str, Texts] = {}
        summaries: dict[str, PackageRecords] = {}  # of the channel, by name
        gil = GilReleaser()
        for name, package in chain.from_iterable(members):
            gil.release_if_due()
            if self.document == CHANNELDATA:
                if not package.folders:
                    continue
                made.subdirs |= package.folders.keys()
                first = summaries.get(name, package)
                summaries[name] = evolve(first, folders={**package.folders, **first.folders})
            elif self.subdir in package.folders:
                folder = package.folders[self.subdir]
                texts = folder.exports if self.document == RUN_EXPORTS else folder.records
                packages[name] = _with_more(packages[name], texts) if name in packages else texts
        packages |= {name: {ABOUT: channeldata_entry(each)} for name, each in summaries.items()}
        for name, texts in packages.items():
            gil.release_if_due()
            self._add(made, name, texts)
        return made

    def write_split(self, parts: Iterable[Part]) -> Part:
        """The shards of the packages that are split over parts."""
        made = Part()
        names = sorted({name for part in parts for name in part.split})
        for name in names:
            found = [part.split[name] for part in parts if name in part.split]
            texts = {section: b"".join(each[section] for each in found) for section in _SECTIONS}
            made.add_shard(name, texts, self.before)
        return made

    def _add(self, part: Part, name: str, texts: Texts) -> None:
        if not any(texts.values()):
            return
        if not self.shards:
            part.add_texts(texts)
        elif name in self.shared:
            split = part.split.setdefault(name, dict.fromkeys(_SECTIONS, b""))
            for section in _SECTIONS:
                split[section] += texts[section]
        else:
            part.add_shard(name, texts, self.before)


def packages_of(parts: PartsFile, kinds: Mapping[str, str]) -> Iterator[tuple[str, dict[str, list[tuple[str, bytes]]]]]:
    """The packages in a document in order, with their files and fragments by section; ``kinds`` are by section."""
    current, found = "", dict[str, list[tuple[str, bytes]]]()
    for group in parts.fragment_groups(kinds.values()):
        packages: dict[str, dict[str, list[tuple[str, bytes]]]] = {}
        for section, kind in kinds.items():
            for sort, key, body in group[kind]:
                package = packages.setdefault(name_in(sort), {each: [] for each in kinds})
                package[section].append((key, body))
        for name in sorted(packages):
            if name != current:
                if found:
                    yield current, found
                current, found = name, packages[name]
            else:
                for section, some in packages[name].items():
                    found[section] += some
    if found:
        yield current, found


def text_pieces(subdir: str, document: str, parts: Sequence[Part]) -> Iterator[bytes]:
    """A JSON document of parts."""
    if document == CHANNELDATA:
        yield CHANNELDATA_HEAD
        yield from _members(parts, ABOUT)
        found = {each for part in parts for each in part.subdirs}
        subdirs = [each for each in SUBDIRS if each in found or each == SUBDIRS[0]]
        yield b'},"subdirs":%b}' % msgspec.json.encode(subdirs)
        return
    yield folder_head(subdir)
    yield from _members(parts, TAR_BZ2)
    yield b'},"packages.conda":{'
    yield from _members(parts, CONDA)
    yield EXPORTS_TAIL if document == RUN_EXPORTS else TAIL


def text_size(subdir: str, document: str, parts: Sequence[Part]) -> int:
    """The bytes of such a document."""
    spools = [spool for part in parts for spool in part.texts.values()]
    empty = sum(map(len, text_pieces(subdir, document, [Part(subdirs=part.subdirs) for part in parts])))
    sections = {section for part in parts for section, spool in part.texts.items() if spool.size}
    return empty + sum(each.size for each in spools) - len(sections)  # without the first comma of each section


def text_digest(subdir: str, document: str, parts: Sequence[Part]) -> bytes:
    """The digest of what such a document shows."""
    digest = hashlib.sha256(b"".join(text_pieces(subdir, document, [Part(subdirs=part.subdirs) for part in parts])))
    for part in parts:
        for section, spool in sorted(part.texts.items()):
            digest.update(b"%b %d " % (section.encode(), spool.size) + spool.sha256.digest())
    return digest.digest()


def _members(parts: Sequence[Part], section: str) -> Iterator[bytes]:
    first = 1  # without the comma before the first member
    for part in parts:
        spool = part.texts.get(section)
        if spool is not None and spool.size:
            yield from spool.pieces(first)
            first = 0


def _join(selection: Selection, files: Sequence[tuple[str, bytes]]) -> bytes:
    return b"".join(b',"%b":%b' % (file.encode(), body) for file, body in files if selection.takes_file(file))


def _with_more(texts: Texts, more: Texts) -> Texts:
    """Members, and those of more files."""
    found = {}
    for section, text in texts.items():
        known = _read_members(b"{%b}" % text[1:])
        new = _read_members(b"{%b}" % more[section][1:])
        added = (b',"%b":%b' % (file.encode(), bytes(raw)) for file, raw in new.items() if file not in known)
        found[section] = text + b"".join(added)
    return found
