"""
The normalisers of documents of the compact and legacy index of an upstream.

The lines of ``/info/<gem>`` become entries, with the files that they stand for. The large lists are kept as they are,
in pieces. This module runs in a child process and imports little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Final
from urllib.parse import quote

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.index.info import HEAD
from pkgrepo.formats.rubygems.layout import GEM_TYPE, gem_path, quick_path
from pkgrepo.formats.rubygems.names import check_full_version, full_name
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised

from . import pieces
from .listed_sums import BITS, table_entries

INFO_NORMALISER: Final = f"{__name__}:normalise_info"
VERSIONS_NORMALISER: Final = f"{__name__}:keep_versions"
TAIL_NORMALISER: Final = f"{__name__}:keep_tail"
GZIP_NORMALISER: Final = f"{__name__}:keep_gzip"

INFO: Final = "info"  # the kind of fragments with lines of ``/info``, as hosted gems have them

_CHECKSUM: Final = re.compile(rb"[|,]checksum:([0-9a-f]{64})(?:,|$)")
_CREATED: Final = re.compile(rb",created_at:([0-9TZ:+.-]{20,32})(?:,|$)")


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
    if not mark or not head.startswith(b"created_at:") or head.count(b"\n") > 16 or not source.endswith(b"\n"):
        raise Invalid("it is no list of versions of a compact index")
    start = len(head) + len(mark)
    bits, table = table_entries(lines)
    return Normalised(
        top={pieces.HEAD: source[:start].decode("utf-8", "replace"), BITS: bits},
        entries=chain(pieces.cut_pieces(source, start, lines=True), table),
    )


def keep_tail(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """What was appended to the list ``/versions``. :raises Invalid: it has no end of a line"""
    if not source.endswith(b"\n"):
        raise Invalid("it ends within a line")
    return Normalised(top={}, entries=pieces.cut_pieces(source, lines=True))


def keep_gzip(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """A gzip file in pieces. :raises Invalid: the bytes are no gzip file"""
    if not source.startswith(b"\x1f\x8b\x08"):
        raise Invalid("it is no gzip file")
    return Normalised(top={}, entries=pieces.cut_pieces(source, lines=False))


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
