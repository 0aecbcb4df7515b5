"""
The file of an air-gap bundle: a tar archive (POSIX ustar) in which files are named by their digests.

===================================  ==================================================================================
``pkgrepo-bundle``                   the first member: what the file is
``blobs/<sha256>``                   the bytes of a file, once, whatever repositories have it
``repositories/<number>.list``       the signed list of the files of a repository, with their paths; see
                                     ``pkgrepo.untrusted.signed_lists``
``repositories/<number>.json``       the manifest of the list, with its signature
===================================  ==================================================================================

Two files of each list are about the bundle: ``FACTS`` has what is known of the packages, and ``BEFORE`` lists the files
that earlier bundles have, without those of this one. No member of the archive has a path from outside, so that nothing
in it can lead anywhere; paths are those of lists, and are checked when these are read.

Nothing of a file is used before all of it was read: each blob has the digest that is its name, each list the signature
of a trusted key, and there is nothing else in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import msgspec
from attrs import Factory, define, field, frozen

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.signed_lists import Listed, Manifest, find_problem, is_plain_path, iter_list
from pkgrepo.untrusted.strict_json import ERRORS

FORM: Final = "pkgrepo bundle 1"
HEAD: Final = "pkgrepo-bundle"
FACTS: Final = ".bundle/facts.json"
BEFORE: Final = ".bundle/before.list"
OWN: Final = ".bundle/"

BLOCK: Final = 512  # bytes; of the archive
PIECE: Final = 1024 * 1024  # bytes that are read at a time
MOST_MEMBERS: Final = 5_000_000
MOST_REPOSITORIES: Final = 1000
LARGEST_LIST: Final = 1024 * 1024 * 1024  # bytes, and of all lists with their manifests, which are held in memory
LARGEST_FACTS: Final = 1024 * 1024 * 1024
LARGEST_MANIFEST: Final = 64 * 1024

_BLOB: Final = re.compile(r"blobs/([0-9a-f]{64})")
_REPOSITORY: Final = re.compile(r"repositories/(\d{1,4})\.(list|json)")
_OCTAL: Final = re.compile(rb"([0-7]+)[ \0]*")


class VersionFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a version: when it was published by whom, and what it is instead of live."""

    published_ms: int | None = None
    publisher: str = ""
    state: str = ""
    reason: str = ""


class PackageFacts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of the versions of a package."""

    versions: dict[str, VersionFacts] = {}


class Facts(msgspec.Struct, kw_only=True):
    """What a bundle knows of a repository; ``times`` are those of files by path, in ms since the epoch."""

    format: str
    packages: dict[str, PackageFacts] = {}
    times: dict[str, int] = {}


@frozen
class Stored:
    """Where a blob is in the archive."""

    offset: int
    size: int


@define(kw_only=True)
class Content:
    """What a bundle has of a repository: its files by path, those of earlier bundles, and what is known of them."""

    manifest: Manifest
    files: Mapping[str, Listed]
    before: Mapping[str, Listed]
    facts: Facts
    key: str  # the sha256 of the key, in hex


class Writer:
    """Writes the archive into ``out``, member after member."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._written: set[str] = set()
        self.add(HEAD, f"{FORM}\n".encode())

    def has(self, sha256: str) -> bool:
        """Whether a blob is there already."""
        return sha256 in self._written

    def add_blob(self, data: bytes) -> Listed:
        """Add a blob that is in memory, unless it is there."""
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 not in self._written:
            self._written.add(sha256)
            self.add(f"blobs/{sha256}", data)
        return Listed(len(data), sha256)

    def add_file(self, sha256: str, size: int, source: IO[bytes]) -> Listed:
        """Add a blob of a file, unless it is there. :raises Invalid: the file has other bytes than it should have"""
        if sha256 in self._written:
            return Listed(size, sha256)
        self._out.write(_header(f"blobs/{sha256}", size))
        digest, left = hashlib.sha256(), size
        while piece := source.read(PIECE):
            digest.update(piece)
            left -= len(piece)
            self._out.write(piece)
        if left or digest.hexdigest() != sha256:
            raise Invalid(f"a file has not the digest {sha256}")
        self._out.write(bytes(-size % BLOCK))
        self._written.add(sha256)
        return Listed(size, sha256)

    def add(self, name: str, data: bytes) -> None:
        """Add a member."""
        self._out.write(_header(name, len(data)))
        self._out.write(data + bytes(-len(data) % BLOCK))

    def finish(self) -> None:
        """End the archive."""
        self._out.write(bytes(2 * BLOCK))


def _header(name: str, size: int) -> bytes:
    """The header of a member (POSIX ustar); sizes above 8 GiB are in base 256, as GNU tar writes them."""
    written = b"%011o\0" % size if size < 8**11 else b"\x80" + size.to_bytes(11, "big")
    head = b"".join(
        (
            name.encode().ljust(100, b"\0"),
            b"0000644\0" + b"0000000\0" * 2,
            written,
            b"00000000000\0",
            b" " * 8,
            b"0",
            bytes(100),
            b"ustar\x0000",
            bytes(247),
        )
    )
    return head[:148] + b"%06o\0 " % sum(head) + head[156:]


@define
class Reading:
    """
    The reading of the archive at a path, a step at a time; ``keys`` are those that are trusted (PEM).

    Each step reads ``PIECE`` bytes at most. Every method blocks.
    """

    path: str
    keys: tuple[str, ...]
    blobs: dict[str, Stored] = Factory(dict)
    size: int = 0
    read: int = 0
    _documents: dict[tuple[int, str], bytes] = Factory(dict)
    _file: IO[bytes] | None = field(default=None, init=False)
    _members: int = field(default=0, init=False)
    _digest: Any = field(default=None, init=False)
    _name: str = field(default="", init=False)
    _left: int = field(default=0, init=False)
    _pieces: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)

    def open(self) -> None:
        """:raises Invalid: it is no regular file; :raises OSError: it cannot be read"""
        self._file = open(self.path, "rb", buffering=0, opener=_opener)  # noqa: SIM115 - closed by ``close``
        self.size = os.fstat(self._file.fileno()).st_size
        if self._next_member() != HEAD or self._left > BLOCK:
            raise Invalid("it is no bundle")
        if self._take(self._left) != f"{FORM}\n".encode():
            raise Invalid(f"it is no bundle of this form, {FORM!r}")
        self._skip_padding()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def step(self) -> bool:
        """
        Read on; whether there is more.

        :raises Invalid: the archive is malformed or truncated, or a blob has another digest than its name says
        """
        if not self._name:
            self._name = self._next_member()
            if not self._name:
                return False
            self._begin()
        piece = self._take(min(self._left, PIECE))
        if self._digest is not None:
            self._digest.update(piece)
        else:
            self._pieces.append(piece)
        if not self._left:
            self._end()
        return True

    def contents(self) -> list[Content]:
        """
        What the bundle has, by repository.

        :raises Invalid: a list is damaged, not signed by a trusted key, or names what is not there; or something is
            there that no list names
        """
        numbers = sorted({number for number, _ in self._documents})
        if not numbers:
            raise Invalid("the bundle has no list: it is not complete")
        found = [self._content(number) for number in numbers]
        listed = {each.sha256 for content in found for each in content.files.values()}
        if self.blobs.keys() - listed:
            raise Invalid("the bundle has files that no signed list names")
        return found

    def blob(self, sha256: str, largest: int) -> bytes:
        """The bytes of a blob. :raises Invalid: it is too large"""
        stored = self.blobs[sha256]
        if stored.size > largest:
            raise Invalid("a document of the bundle is too large")
        assert self._file is not None, "it is open"
        return os.pread(self._file.fileno(), stored.size, stored.offset)

    # Below

    def _begin(self) -> None:
        """Decide what becomes of a member."""
        blob = _BLOB.fullmatch(self._name)
        if blob is not None:
            if blob[1] in self.blobs:
                raise Invalid("the bundle has a file twice")
            self.blobs[blob[1]] = Stored(self.read, self._left)
            self._digest = hashlib.sha256()
            return
        document = _REPOSITORY.fullmatch(self._name)
        largest = LARGEST_MANIFEST if self._name.endswith(".json") else LARGEST_LIST
        if document is None or len(self._documents) >= 2 * MOST_REPOSITORIES or self._left > largest:
            raise Invalid("the bundle has something that no bundle has")
        self._held += self._left
        if self._held > LARGEST_LIST:
            raise Invalid("the lists of the bundle are too large")
        self._digest, self._pieces = None, []

    def _end(self) -> None:
        if self._digest is not None:
            if self._name != f"blobs/{self._digest.hexdigest()}":
                raise Invalid(f"a file of the bundle has other bytes than its digest says ({self._name[6:22]}...)")
        else:
            document = _REPOSITORY.fullmatch(self._name)
            assert document is not None, "others were refused"
            key = (int(document[1]), document[2])
            if key in self._documents:
                raise Invalid("the bundle has a list twice")
            self._documents[key] = b"".join(self._pieces)
        self._name = ""
        self._skip_padding()

    def _next_member(self) -> str:
        """The name of the next member, whose size is in ``_left``; empty at the end of the archive."""
        block = self._take(BLOCK, counted=False)
        if block == bytes(BLOCK):
            if self._take(BLOCK, counted=False) != bytes(BLOCK) or self.read != self.size:
                raise Invalid("the bundle has something after its end")
            return ""
        self._members += 1
        checksum = _OCTAL.match(block[148:156])
        size = _OCTAL.fullmatch(block[124:136])
        large = int.from_bytes(block[125:136], "big") if block[124] == 0x80 else None
        if self._members > MOST_MEMBERS:
            raise Invalid(f"the bundle has more than {MOST_MEMBERS} files")
        if (
            checksum is None
            or int(checksum[1], 8) != sum(block[:148]) + 8 * 32 + sum(block[156:])
            or (size is None and large is None)
            or block[156:157] not in (b"0", b"\0")
            or any(block[345:500])
        ):
            raise Invalid("the archive is malformed")
        self._left = int(size[1], 8) if large is None and size is not None else large or 0
        if self.read + self._left > self.size:
            raise Invalid("the bundle is truncated")
        return block[:100].rstrip(b"\0").decode("ascii", "replace")

    def _take(self, count: int, *, counted: bool = True) -> bytes:
        assert self._file is not None, "it is open"
        pieces, missing = [], count
        while missing and (piece := self._file.read(missing)):
            pieces.append(piece)
            missing -= len(piece)
        if missing:
            raise Invalid("the bundle is truncated")
        self.read += count
        if counted:
            self._left -= count
        return b"".join(pieces)

    def _skip_padding(self) -> None:
        if any(self._take(-self.read % BLOCK, counted=False)):
            raise Invalid("the archive is malformed")

    def _content(self, number: int) -> Content:
        raw, text = self._documents.get((number, "json")), self._documents.get((number, "list"))
        if raw is None or text is None:
            raise Invalid("the bundle is not complete: a list or its signature is missing")
        try:
            manifest = msgspec.json.decode(raw, type=Manifest)
        except ERRORS:
            raise Invalid("a manifest of the bundle is damaged") from None
        if manifest.form != FORM or hashlib.sha256(text).hexdigest() != manifest.list_sha256:
            raise Invalid("a list of the bundle is damaged")
        key = self._trusted_key(manifest)
        files = dict(_checked(text, "the list"))
        for path, each in files.items():
            stored = self.blobs.get(each.sha256)
            if stored is None or stored.size != each.size:
                raise Invalid(f"the bundle lacks {path[:200]}, which its list names")
        facts, before = files.get(FACTS), files.get(BEFORE)
        if facts is None or before is None:
            raise Invalid("the list of the bundle is not that of a bundle")
        try:
            known = msgspec.json.decode(self.blob(facts.sha256, LARGEST_FACTS), type=Facts)
        except ERRORS:
            raise Invalid("what the bundle says of its packages is damaged") from None
        earlier = dict(_checked(self.blob(before.sha256, LARGEST_LIST), "the list of earlier files"))
        return Content(manifest=manifest, files=files, before=earlier, facts=known, key=key)

    def _trusted_key(self, manifest: Manifest) -> str:
        """The sha256 of the trusted key that has signed a list. :raises Invalid: none has"""
        if not manifest.signature:
            raise Invalid("the bundle is not signed")
        for each in self.keys:
            if not find_problem(manifest, each.encode()):
                return key_digest(each)
        said = key_digest(manifest.key)
        if not self.keys:
            raise Invalid(f"no key is trusted: give that of the server which wrote the bundle, whose sha256 is {said}")
        raise Invalid(
            f"the bundle is signed by none of the trusted keys, or was changed; it says that its key is {said}"
        )


def key_digest(pem: str) -> str:
    """The sha256 of a public key (PEM), as ``twin verify`` prints it."""
    return hashlib.sha256(pem.strip().encode()).hexdigest()


def read_whole(path: str, keys: tuple[str, ...]) -> Reading:
    """Read an archive at once; the caller closes it. :raises Invalid, OSError: see L{Reading}"""
    reading = Reading(path, keys)
    try:
        reading.open()
        while reading.step():
            pass
    except BaseException:
        reading.close()
        raise
    return reading


def _checked(text: bytes, what: str) -> Iterator[tuple[str, Listed]]:
    """The files of a list. :raises Invalid: a path leads out of the repository, or is there twice"""
    seen: set[str] = set()
    for path, each in iter_list(text):
        if not is_plain_path(path) or path in seen:
            raise Invalid(f"{what} of the bundle has the path {path[:200]!r}, which no file can have")
        seen.add(path)
        yield path, each


def _opener(path: str, _flags: int) -> int:
    # Without O_NONBLOCK opening a FIFO would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid("it is no regular file")
    return descriptor
