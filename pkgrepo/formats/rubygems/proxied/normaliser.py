"""
The normalisers of documents of the compact and legacy index of an upstream. They run in a child process.

The lines of ``/info/<gem>`` become entries, with the files that they stand for. The large lists are kept as they are:
cut into pieces, which are the fragments of a parts file.

``/versions`` also has a table of the MD5 of each gem's ``/info``, found without reading the list: 16 bytes for each
name, 64 bits of BLAKE2b of the name and half of the MD5. It is cut into fragments by the first bits of the hashes. What
was appended to a list since has no table and is searched, from its end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Final
from urllib.parse import quote

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.index.info import HEAD, INFO
from pkgrepo.formats.rubygems.names import check_full_version, full_name
from pkgrepo.formats.rubygems.paths import GEM_TYPE, gem_path, quick_path
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised

INFO_NORMALISER: Final = f"{__name__}:normalise_info"
VERSIONS_NORMALISER: Final = f"{__name__}:keep_versions"
TAIL_NORMALISER: Final = f"{__name__}:keep_tail"
GZIP_NORMALISER: Final = f"{__name__}:keep_gzip"

_CHECKSUM: Final = re.compile(rb"[|,]checksum:([0-9a-f]{64})(?:,|$)")
_CREATED: Final = re.compile(rb",created_at:([0-9TZ:+.-]{20,32})(?:,|$)")

SUMS: Final = "sums"  # the kind of the fragments of a table
BITS: Final = "sum_bits"  # in ``top``: how many bits of a hash are the number of its fragment
_NAMES_IN_FRAGMENT: Final = 512  # 8 KiB
_HASH: Final = 8  # bytes
_ROW: Final = 2 * _HASH
_MD5_DIGITS: Final = 32
_PREFIX: Final = b"\xff"  # of the places of these fragments: behind those of all pieces
PIECE: Final = "piece"  # the kind of these fragments
PIECES_HEAD: Final = "head"  # in ``top``: what comes before the first piece
LONGEST_PIECE: Final = 256 * 1024  # bytes


def normalise_info(source: bytes, context: Context) -> Normalised:
    """
    The parts of ``/info/<gem>``, see L{pkgrepo.proxy.parts.values.NormaliserFunction}.

    :raises Invalid: it is no such document
    """
    if not source.startswith(HEAD) or not source.endswith(b"\n"):
        raise Invalid("it is no document of a compact index")
    text = source[len(HEAD) : -1]
    return Normalised(top={}, entries=info_entries(text.split(b"\n") if text else (), context))


def keep_versions(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The list ``/versions`` in pieces, and a table of the sums in it. :raises Invalid: it is no such list"""
    head, mark, lines = source.partition(HEAD)
    named = not head or head.startswith(b"created_at:")  # Gitea's list begins with the mark
    if not mark or not named or head.count(b"\n") > 16 or not source.endswith(b"\n"):
        raise Invalid("it is no list of versions of a compact index")
    start = len(head) + len(mark)
    bits, table = table_entries(lines)
    return Normalised(
        top={PIECES_HEAD: source[:start].decode("utf-8", "replace"), BITS: bits},
        entries=chain(cut_pieces(source, start, lines=True), table),
    )


def keep_tail(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """What was appended to the list ``/versions``. :raises Invalid: it has no end of a line"""
    if not source.endswith(b"\n"):
        raise Invalid("it ends within a line")
    return Normalised(top={}, entries=cut_pieces(source, lines=True))


def keep_gzip(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """A gzip file in pieces. :raises Invalid: the bytes are no gzip file"""
    if not source.startswith(b"\x1f\x8b\x08"):
        raise Invalid("it is no gzip file")
    return Normalised(top={}, entries=cut_pieces(source, lines=False))


def info_entries(lines: Iterable[bytes], context: Context) -> Iterator[Entry]:
    """The entries for lines of ``/info``. :raises Invalid: a line is none"""
    name, base = context.name, context.url.rpartition("/info/")[0]
    for number, line in enumerate(lines):
        version = _version(line)
        checksum = _CHECKSUM.search(line)
        digests = {} if checksum is None else {"sha256": checksum[1].decode()}
        full = full_name(name, version)
        sources: tuple[tuple[str, dict[str, str]], ...] = ((gem_path(full), digests), (quick_path(full), {}))
        yield Entry(
            sort=number.to_bytes(8, "big"),
            key=version,
            version=version,
            published_ms=_published_ms(line),
            first_seen=False,
            fragments={INFO: line},
            files=[FileSource(path, f"{base}/{quote(path)}", None, sums, GEM_TYPE, {}) for path, sums in sources],
        )


def _version(line: bytes) -> str:
    """:raises Invalid: the line is not one of ``/info``"""
    version, blank, rest = line.partition(b" ")
    if not blank or b"|" not in rest:
        raise Invalid("a line has no version and requirements")
    try:
        return check_full_version(version.decode("ascii"))
    except UnicodeDecodeError:
        raise Invalid("a line has no version") from None


def _published_ms(line: bytes) -> int | None:
    found = _CREATED.search(line)
    if found is None:
        return None
    try:
        return int(datetime.fromisoformat(found[1].decode()).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def table_entries(lines: bytes) -> tuple[int, Iterator[Entry]]:
    """The number of bits and the entries of the table for the lines of a list."""
    sums: dict[bytes, bytes] = {}
    for line in lines.splitlines():
        name, _, rest = line.partition(b" ")
        sums[name] = rest[-_MD5_DIGITS:]
    bits = max(0, (len(sums) // _NAMES_IN_FRAGMENT).bit_length())
    return bits, _table(sums, bits)


def confirms(name: str, md5: str, base: PartsFile, tail: PartsFile | None = None) -> bool | None:
    """
    Whether a list names a gem with this MD5 (hex) of its ``/info``; None if it does not name the gem, or has no table.

    ``tail`` are the parts of what was appended to the list.
    """
    raw_name = name.encode()
    appended = None if tail is None else _last_sum(tail, raw_name)
    if appended is not None:
        return appended == md5.encode()
    bits = base.top.get(BITS)
    if bits is None:
        return None
    hashed = _hash(raw_name)
    entry = base.find(_place(hashed, bits), "")
    table = b"" if entry is None else entry.fragments.get(SUMS, b"")
    at = table.find(hashed)
    while at % _ROW and at >= 0:
        at = table.find(hashed, at + 1)
    return None if at < 0 else table[at + _HASH : at + _ROW] == bytes.fromhex(md5)[:_HASH]


def _table(sums: dict[bytes, bytes], bits: int) -> Iterator[Entry]:
    fragments: dict[bytes, bytearray] = {}
    for name, digits in sums.items():
        hashed = _hash(name)
        try:
            md5 = bytes.fromhex(digits.decode("ascii"))
        except ValueError:
            continue
        if len(md5) == _ROW:
            fragments.setdefault(_place(hashed, bits), bytearray()).extend(hashed + md5[:_HASH])
    for sort, rows in fragments.items():
        yield plain_entry(sort, {SUMS: bytes(rows)})


def _hash(name: bytes) -> bytes:
    return hashlib.blake2b(name, digest_size=_HASH).digest()


def _place(hashed: bytes, bits: int) -> bytes:
    number = int.from_bytes(hashed, "big") >> (8 * _HASH - bits) if bits else 0
    return _PREFIX + number.to_bytes(4, "big")


def _last_sum(tail: PartsFile, name: bytes) -> bytes | None:
    start = name + b" "
    for _, _, piece in reversed(tail.fragments(PIECE)):
        at = piece.rfind(b"\n" + start) + 1
        if at or piece.startswith(start):
            return piece[at : piece.index(b"\n", at)].rpartition(b" ")[2]
    return None


def plain_entry(sort: bytes, fragments: dict[str, bytes]) -> Entry:
    """An entry that is not a version."""
    return Entry(sort=sort, key="", version="", published_ms=0, first_seen=False, fragments=fragments, files=[])


def cut_pieces(source: bytes, start: int = 0, *, lines: bool) -> Iterator[Entry]:
    """
    The bytes from ``start`` on as entries; with ``lines`` they end at line ends.

    :raises Invalid: a line is too long for that
    """
    number = 0
    while start < len(source):
        end = min(start + LONGEST_PIECE, len(source))
        if lines and end < len(source):
            end = source.rfind(b"\n", start, end) + 1
            if not end:
                raise Invalid("a line is too long")
        yield plain_entry(number.to_bytes(8, "big"), {PIECE: source[start:end]})
        start, number = end, number + 1


def read_pieces(parts: PartsFile) -> Iterator[bytes]:
    """The bytes of the document, or of what was appended to it, several at a time."""
    head: str = parts.top.get(PIECES_HEAD, "")
    if head:
        yield head.encode()
    for entry in parts.entries((PIECE,)):
        if PIECE in entry.fragments:
            yield entry.fragments[PIECE]
