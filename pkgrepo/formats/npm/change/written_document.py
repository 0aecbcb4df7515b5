"""
Reads a package document that a client wrote back, one version at a time, with a pull parser for JSON objects.

The document of a package with thousands of versions has 10 MB, of which a change needs a few words. Parsing it in one
piece would hold the GIL for half a second, and take ten times its size in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.limits import MOST_VERSIONS
from pkgrepo.formats.npm.publish.sent_document import SentDocument
from pkgrepo.untrusted.strict_json import ATOM, BLANK, STRING, decode_as, decode_json
from pkgrepo.untrusted.text import quoted

MEMBERS: Final = frozenset({"name", "_id", "_rev", "versions", "dist-tags", "maintainers", "users"})

_DEPRECATED: Final = b'"deprecated"'

T = TypeVar("T")
_OPENING = b"{["


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


def _without_brackets_deeper_than(depth: int) -> bytes:
    """A pattern of strings, of the bytes between them, and of brackets that are nested at most ``depth`` deep."""
    inside = rb"[^\"\[\]{}]++|\"(?:[^\"\\]++|\\.)*+\""
    for _ in range(depth):
        inside += rb"|[\[{](?:%b)*+[\]}]" % inside
    return rb"(?:%b)*+" % inside


# Manifests are nested three deep: one match skips a whole one, which would else take thirty.
_NESTED: Final = re.compile(_without_brackets_deeper_than(3), re.DOTALL)


@frozen
class Piece:
    """The JSON of one value; ``place`` maps an offset in it to one in the body, for error messages."""

    text: bytes
    place: Callable[[int], int]

    def value(self) -> Any:
        """The parsed value. :raises Invalid: it is not JSON, or an object has a key twice"""
        return decode_json(self.text, self.place)

    def value_as(self, type_: type[T]) -> T:
        """The value decoded as a type. :raises Invalid: it is not JSON, or does not fit the type"""
        return decode_as(self.text, type_, self.place)


class PullParser:
    """
    Reads the members of an object in order, and those of the objects inside it that the caller enters.

    ``place`` maps an offset in the text to one in the body. Skipped values are not parsed, only their end is found.
    """

    def __init__(self, text: bytes, place: Callable[[int], int] = lambda at: at) -> None:
        self._text = text
        self._place = place
        self._at = 0

    def names(self) -> Iterator[str]:
        """
        The name of each member. Before the next name the caller must take the value, by ``piece`` or by ``names``.

        :raises Invalid: it is not JSON, or a name occurs twice
        """
        self._expect(b"{")
        seen: set[str] = set()
        if self._next() == b"}":
            self._at += 1
            return
        while True:
            name = self._name()
            if name in seen:
                raise Invalid(f"the body has the key {quoted(name)} twice in one object")
            seen.add(name)
            self._expect(b":")
            yield name
            if self._next() == b"}":
                self._at += 1
                return
            self._expect(b",")

    def at_object(self) -> bool:
        """Whether the next value is an object."""
        return self._next() == b"{"

    def piece(self) -> Piece:
        """The next value. :raises Invalid: there is none"""
        first = self._next()
        begin = self._at
        if first and first in _OPENING:
            self._skip_nested()
        else:
            self._at = self._match(STRING if first == b'"' else ATOM, "a value").end()
        return Piece(self._text[begin : self._at], lambda at: self._place(begin + at))

    def _skip_nested(self) -> None:
        text, at, depth = self._text, self._at + 1, 1
        while depth:
            found = _NESTED.match(text, at)
            at = at if found is None else found.end()
            if at >= len(text) or text[at : at + 1] == b'"':
                raise Invalid(f"the body is not JSON: it ends within a value near byte {self._place(at)}")
            depth += 1 if text[at] in _OPENING else -1
            at += 1
        self._at = at

    def _name(self) -> str:
        self._next()
        found = self._match(STRING, "a key")
        self._at = found.end()
        begin = found.start()
        return decode_as(found[0], str, lambda at: self._place(begin + at))

    def _match(self, pattern: re.Pattern[bytes], what: str) -> re.Match[bytes]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise Invalid(f"the body is not JSON: {what} is missing near byte {self._place(self._at)}")
        return found

    def _next(self) -> bytes:
        """The next byte that is no blank; empty at the end."""
        found = BLANK.match(self._text, self._at)
        self._at = self._at if found is None else found.end()
        return self._text[self._at : self._at + 1]

    def _expect(self, byte: bytes) -> None:
        if self._next() != byte:
            raise Invalid(f"the body is not JSON: {byte.decode()!r} is missing near byte {self._place(self._at)}")
        self._at += 1
