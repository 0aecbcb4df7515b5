"""
What a normaliser gets, and what it makes of a metadata document of an upstream.

A document has tens of thousands of these values, without cycles: the garbage collector does not look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

SECTION_END: Final = b"\x00"  # so that no section begins with another one


class FileSource(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    A file that the upstream lists.

    ``path`` is its public path in the repository, as that of a hosted file. ``url`` is absolute, at the upstream.
    ``size`` is in bytes, None if the upstream does not say. ``digests`` maps ``hashlib`` names to lower-case hex.
    ``meta`` is the format's own, JSON-able: what it needs to record the file once it is fetched.
    """

    path: str
    url: str
    size: int | None
    digests: dict[str, str]
    media_type: str
    meta: dict[str, Any]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    One version of a package (npm), or one file (Python).

    Documents have entries in the order of (``sort``, ``key``), which is unique. ``key`` is the version's key or the
    file's name, ``version`` the version's text. ``fragments`` maps the kind of a fragment to the bytes that a hosted
    package has in the catalog, with the placeholder ``BASE`` for the repository's address.

    ``published_ms`` is a Unix time in milliseconds. A normaliser leaves it None if the upstream does not say; the time
    at which this server first saw the entry is then filled in, and ``first_seen`` set.
    """

    sort: bytes
    key: str
    version: str
    published_ms: int | None
    first_seen: bool
    fragments: dict[str, bytes]
    files: list[FileSource]


class Normalised(msgspec.Struct, frozen=True):
    """
    What a normaliser returns: ``top`` is the format's own, JSON-able; ``entries`` are in any order.

    Of entries with the same (``sort``, ``key``) the last one is kept. Entries that are ``ordered`` already, each place
    once, are written as they come, and need not be in memory together.

    ``dated`` is called with each entry for which the upstream says no time, when it has one, so that its fragments tell
    that to clients which want nothing younger than a date.
    """

    top: dict[str, Any]
    entries: Iterator[Entry]
    ordered: bool = False
    dated: Callable[[Entry], Entry] = lambda entry: entry


class Context(msgspec.Struct, frozen=True):
    """
    What a normaliser knows about its document.

    ``name`` is the package's name, as asked for. ``url`` is the final one, after redirects, for relative links;
    ``asked_url`` is the one before. ``content_type`` is the upstream's, with its parameters; empty if it sent none.
    ``service`` is the ``top`` of the document in which the upstream describes itself, if the question names one.
    """

    name: str
    url: str
    content_type: str = ""
    asked_url: str = ""
    service: dict[str, Any] = {}


def section_of(package: str) -> bytes:
    """What the places of a package's entries begin with in a document about many, see L{DocumentRequest}."""
    return package.encode() + SECTION_END


def name_in(sort: bytes) -> str:
    """The package in whose section a place is."""
    return sort.partition(SECTION_END)[0].decode()


NormaliserFunction = Callable[[bytes, Context], Normalised]
"""
Normalises the bytes of a document; also its ``entries`` may raise L{pkgrepo.errors.Invalid}: it cannot be used.

It is a function of a module, called by its dotted name ``"package.module:function"`` in a thread or in a child process,
so its module should import little.
"""
