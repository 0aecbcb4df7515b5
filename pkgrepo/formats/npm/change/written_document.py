"""
A document that was written back, read a version at a time.

It is as large as the package: with thousands of versions ten megabytes, of which a change needs a few words. Parsed in
one piece it would keep every other thread waiting for half a second, and be in memory ten times over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.limits import MOST_VERSIONS
from pkgrepo.formats.npm.publish.sent_document import SentDocument
from pkgrepo.storage.gil import GilReleaser

from .pull_parser import Piece, PullParser

MEMBERS: Final = frozenset({"name", "_id", "_rev", "versions", "dist-tags", "maintainers", "users"})

_DEPRECATED: Final = b'"deprecated"'


@frozen
class WrittenDocument:
    """
    What it says.

    ``members`` are those of L{MEMBERS} that it has. ``versions`` are, by version as it is written, what that has for
    ``deprecated``; None where they are not an object, but then what they are is among the ``members``.
    """

    members: Mapping[str, Any]
    versions: Mapping[str, Any] | None


class _Manifest(msgspec.Struct):
    deprecated: Any = None


def read_written(scanned: SentDocument) -> WrittenDocument:
    """
    What a scanned document says; a big one belongs into a thread.

    :raises Invalid: it is not JSON, or what is read of it is there twice
    """
    members: dict[str, Any] = {}
    versions: Mapping[str, Any] | None = None
    reader = PullParser(scanned.text, scanned.place)
    for name in reader.names():
        if name == "versions" and reader.at_object():
            versions = _read_versions(reader)
            continue
        piece = reader.piece()
        if name in MEMBERS:
            members[name] = piece.value()
        else:
            piece.value_as(msgspec.Raw)
    return WrittenDocument(members, versions)


def _read_versions(reader: PullParser) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    gil = GilReleaser()
    for text in reader.names():
        if len(found) == MOST_VERSIONS:
            raise Invalid(f"the document has more than {MOST_VERSIONS} versions", "versions")
        found[text] = _deprecation(reader.piece())
        gil.release_if_due()
    return found


def _deprecation(piece: Piece) -> Any:
    if not piece.text.startswith(b"{"):
        piece.value()
        return None
    # Seldom does anything else look like it: then all of it is read, by which the same key twice is found.
    if piece.text.count(_DEPRECATED) > 1 or b"\\u" in piece.text:
        return piece.value().get("deprecated")
    return piece.value_as(_Manifest).deprecated
