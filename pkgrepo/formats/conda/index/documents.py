"""
Which documents a channel has, and how each is made of its packages.

=====================================  ==========================================================================
document                               content
=====================================  ==========================================================================
``<subdir>/repodata.json``             all records
``.../repodata_from_packages.json``    the same: no record is changed after its upload
``.../current_repodata.json``          those of the newest versions, and what these need
``.../run_exports.json``               the run exports of all files (CEP 12)
``.../repodata_shards.msgpack.zst``    the digests of shards, each with the records of one package (CEP 16)
``channeldata.json``                   a summary of each package (CEP 38)
=====================================  ==========================================================================

JSON documents are also there with the endings ``.zst`` and ``.bz2``. A form is the name of a document and a coding.

They are kept as they are sent, the long ones in temporary files.
"""

from __future__ import annotations

import bz2
import hashlib
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import zstandard
from attrs import Factory, evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.formats.conda.index import packages as channel
from pkgrepo.formats.conda.index.packages import PackageRecords, Shard, make_index
from pkgrepo.formats.conda.index.texts import channeldata_text, current_text, exports_text, repodata_text
from pkgrepo.gateway.responses.long_bodies import TemporaryFile
from pkgrepo.http.responses import Content
from pkgrepo.repositories.publish.package_lists import PackageList, PackageLists
from pkgrepo.storage.catalog.server import repositories

SMALL: Final = 16 * 1024  # bytes; up to this a document is kept in memory
ZSTD_LEVEL: Final = 3
GZIP_LEVEL: Final = 3
BZ2_CACHE_SIZE: Final = 16 * 1024 * 1024  # bytes of compressed pieces of all channels

PLAIN: Final = ""
GZIP: Final = "gzip"
ZSTD: Final = "zstd"
BZ2: Final = "bz2"

Coding = Callable[[Iterable[bytes], int], Iterator[bytes]]  # texts and their size -> the bytes of a document


@frozen(eq=False)
class StoredDocument:
    """
    A document in one coding, which shows a channel at a serial.

    ``digest`` (hex) is that of what it shows, so that it differs whenever the document does. The index of shards has
    them too, by their own digests, and in ``superseded`` those that the index before had and that are not saved yet.
    """

    serial: int
    digest: str
    body: bytes | Content
    shards: Mapping[bytes, Shard] = Factory(dict)
    superseded: list[Shard] = Factory(list)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return len(self.body) if isinstance(self.body, bytes) else 0


def store(pieces: Iterable[bytes]) -> bytes | Content:
    """Pieces as the body of a response. Blocks. :raises StorageFull: there is no room for temporary files"""
    file: TemporaryFile | None = None
    written, waiting = 0, bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) > SMALL:
            file = file or TemporaryFile()
            file.write(bytes(waiting), written)
            written += len(waiting)
            waiting.clear()
    if file is None:
        return bytes(waiting)
    file.write(bytes(waiting), written)
    return file.content(written + len(waiting))


def plain(texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
    """The texts themselves."""
    return iter(texts)


def gzipped(texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
    """Compressed with gzip."""
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31)
    yield from map(packer.compress, texts)
    yield packer.flush()


def zstandardised(texts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Compressed with zstd, in one frame with its size: clients read only the first frame."""
    packer = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj(size=size)
    yield from map(packer.compress, texts)
    yield packer.flush()


class BzippedPieces:
    """
    Compresses texts with bzip2, each as a stream of its own, and keeps the results for the texts that do not change.

    A megabyte takes 100 ms. Several threads may use it.
    """

    def __init__(self) -> None:
        self._cache: SizedCache[bytes] = SizedCache(BZ2_CACHE_SIZE)
        self._lock = threading.Lock()

    def __call__(self, texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
        """The streams, which are one document together."""
        return map(self._stream, texts)

    def _stream(self, text: bytes) -> bytes:
        digest = hashlib.sha256(text).digest()
        with self._lock:
            found = self._cache.get(digest)
        if found is None:
            found = bz2.compress(text)
            with self._lock:
                self._cache.put(digest, found, size=len(found))
        return found


CODINGS: Final[Mapping[str, Coding]] = {PLAIN: plain, GZIP: gzipped, ZSTD: zstandardised, BZ2: BzippedPieces()}


REPODATA: Final = "repodata.json"
FROM_PACKAGES: Final = "repodata_from_packages.json"
CURRENT: Final = "current_repodata.json"
RUN_EXPORTS: Final = "run_exports.json"
SHARDS_INDEX: Final = "repodata_shards.msgpack.zst"
CHANNELDATA: Final = "channeldata.json"

_FOLDER_TEXTS: Final[dict[str, Callable[[PackageList[PackageRecords], str], list[bytes]]]] = {
    REPODATA: repodata_text,
    CURRENT: current_text,
    RUN_EXPORTS: exports_text,
}
FOLDER_DOCUMENTS: Final = frozenset(_FOLDER_TEXTS)

_EDITION: Final = b"1"  # changes with what documents of the same packages look like


@frozen
class Form:
    """A document of a folder, or with an empty ``subdir`` of the channel, in a coding."""

    subdir: str
    document: str
    coding: str = PLAIN

    @property
    def key(self) -> str:
        """The form as a text."""
        return f"{self.subdir}/{self.document}/{self.coding}"

    @classmethod
    def of(cls, key: str) -> Form:
        """The form with this key."""
        return cls(*key.split("/"))


class ChannelSource:
    """The source of the documents of hosted channels; see L{Source}."""

    serial = staticmethod(repositories.content_serial)
    read_all = staticmethod(channel.read_all)
    read_one = staticmethod(channel.read_one)

    def render(
        self, listed: PackageList[PackageRecords], serial: int, form: str, before: StoredDocument | None
    ) -> StoredDocument:
        """A document; one that shows what ``before`` did has its body. Blocks: 200 ms for 30,000 records."""
        made = Form.of(form)
        digest = _digest(listed, made)
        if before is not None and before.digest == digest:
            return evolve(before, serial=serial)
        if made.document == SHARDS_INDEX:
            return _shards_index(listed, serial, made.subdir, digest, before)
        texts = _texts(listed, made)
        size = sum(map(len, texts))
        return StoredDocument(serial, digest, store(CODINGS[made.coding](texts, size)))


ChannelLists = PackageLists[PackageRecords, StoredDocument]  # the documents of hosted channels


def _digest(listed: PackageList[PackageRecords], form: Form) -> str:
    """The digest of what a document shows in each coding, from the digests of packages."""
    digest = hashlib.sha256(b"%b %b/%b" % (_EDITION, form.subdir.encode(), form.document.encode()))
    gil = GilReleaser()
    for package in listed.values():
        gil.release_if_due()
        if not form.subdir:
            digest.update(b"%b %b" % (hashlib.sha256(package.about).digest(), " ".join(package.folders).encode()))
        elif form.subdir in package.folders:
            digest.update(package.folders[form.subdir].digest)
    return digest.hexdigest()[:32]


def _texts(listed: PackageList[PackageRecords], form: Form) -> Sequence[bytes]:
    if form.document == CHANNELDATA:
        return channeldata_text(listed)
    return _FOLDER_TEXTS[form.document](listed, form.subdir)


def _shards_index(
    listed: PackageList[PackageRecords], serial: int, subdir: str, digest: str, before: StoredDocument | None
) -> StoredDocument:
    shards: dict[bytes, Shard] = {}
    digests: dict[str, bytes] = {}
    gil = GilReleaser()
    for package in listed.values():
        gil.release_if_due()
        if subdir in package.folders:
            shard = package.folders[subdir].shard
            shards[shard.digest] = shard
            digests[package.name] = shard.digest
    superseded = list[Shard]()
    if before is not None:
        superseded += before.superseded
        superseded += (before.shards[each] for each in before.shards.keys() - shards.keys())
    return StoredDocument(serial, digest, store([make_index(subdir, digests)]), shards, superseded)
