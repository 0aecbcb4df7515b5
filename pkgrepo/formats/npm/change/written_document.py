"""
Reads a package document that a client wrote back, one version at a time.

The document of a package with thousands of versions has 10 MB, of which a change needs a few words. Parsing it in one
piece would hold the GIL for half a second, and take ten times its size in memory.
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
    The parts of a written-back document that a change needs.

    ``members`` are those in L{MEMBERS} that it has. ``versions`` maps each version, as spelled, to the value of its
    ``deprecated``; None when ``versions`` is missing or no object, and in the latter case its value is in ``members``.
    """

    members: Mapping[str, Any]
    versions: Mapping[str, Any] | None


class _Manifest(msgspec.Struct):
    deprecated: Any = None


def read_written(sent: SentDocument) -> WrittenDocument:
    """
    The parts of a sent document. Call it in a thread when the document is large.

    :raises Invalid: it is not JSON, or a key that is read occurs twice
    """
    members: dict[str, Any] = {}
    versions: Mapping[str, Any] | None = None
    reader = PullParser(sent.text, sent.place)
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
    # Rarely the text may have the key twice, or nested: then the whole object is parsed, which finds duplicates.
    if piece.text.count(_DEPRECATED) > 1 or b"\\u" in piece.text:
        return piece.value().get("deprecated")
    return piece.value_as(_Manifest).deprecated
