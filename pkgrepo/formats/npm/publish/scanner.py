"""
An incremental scanner of publish documents: JSON with a tarball inside.

The scanner keeps all bytes except the strings at ``_attachments/<name>/data``, which it decodes and returns as events
(those of provenance bundles are text, and are kept). Values that cannot contain such a string are skipped by matching
strings and brackets only. The kept text is parsed at the end of the body; only then malformed JSON and duplicate keys
in skipped values are found.

============  =====================================================  ======================================
state         reads                                                  next state
============  =====================================================  ======================================
TOP           members of the document                                ATTACHMENTS at ``_attachments: {``
ATTACHMENTS   members of ``_attachments``                            ATTACHMENT at ``name: {``
ATTACHMENT    members of one attachment                              data at ``data: "``
nested        any other object or array, to its closing bracket      the state before it
============  =====================================================  ======================================
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum, auto
from typing import Final

import msgspec

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.limits import DOCUMENT, LONGEST_KEY, MOST_ATTACHMENTS, MOST_MEMBERS, DocumentLimits
from pkgrepo.untrusted.strict_json import ATOM, BLANK, CLOSING
from pkgrepo.untrusted.text import quoted

from .base64_decoder import Base64Decoder, Base64Error
from .brackets import skip_brackets
from .sent_document import AttachmentEnd, AttachmentStart, ScanEvent, SentDocument

BULK_SIZE: Final = 4096  # bytes; for shorter chunks going from bracket to bracket is as fast


# The fast path for a member's name: no escapes, and all of it in one chunk. Other names are read token by token.
_NAME: Final = rb"[ \t\n\r]*+\"([^\"\\]*+)\"[ \t\n\r]*+:[ \t\n\r]*+"
_FIRST_NAME: Final = re.compile(_NAME)
_NEXT_NAME: Final = re.compile(rb"[ \t\n\r]*+," + _NAME)
_IN_STRING: Final = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.DOTALL)
_FLAT: Final = re.compile(rb"(?:[^\"\[\]{}]++|\"(?:[^\"\\]++|\\.)*+\")*+", re.DOTALL)

_QUOTE, _COLON, _COMMA, _BACKSLASH, _BEGIN, _END = b'":,\\{}'


# States of the table above, as the number of objects that are open.
_TOP, _ATTACHMENTS, _ATTACHMENT = 1, 2, 3


class _Next(Enum):
    """The tokens that are allowed next in the current object."""

    DOCUMENT = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    VALUE = auto()
    COMMA_OR_END = auto()
    NOTHING = auto()


class _Inside(Enum):
    """The kind of token that the next byte belongs to."""

    MEMBERS = auto()
    KEY = auto()
    STRING = auto()
    ATOM = auto()
    NESTED = auto()
    NESTED_STRING = auto()
    DATA = auto()


class PublishScanner:
    """
    Scans the body of one publish request, in chunks of any size.

    It holds the document in memory, but not its tarballs. ``bulk_size`` is the size of a chunk from which on nested
    values are skipped in bulk.
    """

    def __init__(self, limits: DocumentLimits = DOCUMENT, bulk_size: int = BULK_SIZE) -> None:
        self._limits = limits
        self._bulk_size = bulk_size
        self._kept: list[bytes] = []
        self._kept_size = 0
        self._values = 0  # an upper bound of the values so far: commas, also those in strings
        # Offsets in the kept text behind each removed string, and the offsets in the body that they came from.
        self._cuts: list[tuple[int, int]] = [(0, 0)]
        self._offset = 0  # of the current chunk in the body
        self._inside = _Inside.MEMBERS
        self._next = _Next.DOCUMENT
        self._escaped = False  # whether the last chunk ended behind a backslash
        self._nesting: list[int] = []  # the closing brackets of the value that is being skipped
        self._brackets = 0  # opened in skipped values
        self._keys: list[set[str]] = []  # of each open object, outermost first
        self._key = b""  # the raw bytes of the current key, as far as they have arrived
        self._name = ""  # of the current member
        self._attachment = ""
        self._data = Base64Decoder()
        self._sizes: dict[str, int] = {}
        self._events: list[ScanEvent] = []

    def feed(self, chunk: bytes) -> list[ScanEvent]:
        """
        The events in the next bytes of the body.

        :raises Invalid: they are not JSON, or a tarball is not base64; the message names the offset
        :raises TooLarge: the document without its tarballs is too large
        """
        at = kept = 0
        while at < len(chunk):
            if self._in_data:
                at = kept = self._take_data(chunk, at)
                at += at < len(chunk)  # the document keeps both quotes
                continue
            at = self._step(chunk, at)
            if self._in_data:
                self._keep(chunk[kept:at])
        if not self._in_data:
            self._keep(chunk[kept:])
        self._offset += len(chunk)
        events, self._events = self._events, []
        return events

    def finish(self) -> SentDocument:
        """
        The document, once all of the body was fed.

        :raises Invalid: the document is not complete
        """
        if self._next is not _Next.NOTHING:
            raise Invalid(f"the body is not a whole JSON object: it ends after {self._offset} bytes")
        return SentDocument(text=b"".join(self._kept), sizes=self._sizes, place=self._place_in_body)

    @property
    def _place(self) -> int:
        return len(self._keys)

    @property
    def _in_data(self) -> bool:
        return self._inside is _Inside.DATA

    def _place_in_body(self, at: int) -> int:
        """The offset in the body of a byte of the kept text."""
        begin, body = self._cuts[bisect_right(self._cuts, (at, self._offset + 1)) - 1]
        return body + at - begin

    def _keep(self, piece: bytes) -> None:
        self._kept_size += len(piece)
        if self._kept_size > self._limits.size:
            raise TooLarge(self._limits.size, "the package's metadata")
        self._values += piece.count(b",")
        if self._values > self._limits.values:
            raise Invalid(f"the body has more than {self._limits.values} values")
        self._kept.append(piece)

    def _step(self, chunk: bytes, at: int) -> int:
        """Read one token, or the part of it in this chunk; the offset behind it."""
        match self._inside:
            case _Inside.MEMBERS:
                found = self._take_name(chunk, at) or BLANK.match(chunk, at)
                at = found.end() if found is not None else at
                return at if at == len(chunk) else self._take_token(chunk, at)
            case _Inside.ATOM:
                found = ATOM.match(chunk, at)
                if found is None or found.end() < len(chunk):
                    self._inside = _Inside.MEMBERS
                return at if found is None else found.end()
            case _Inside.NESTED:
                return self._skip_nested(chunk, self._skip_in_bulk(chunk, at))
            case _:
                return self._take_string(chunk, at)

    def _take_name(self, chunk: bytes, at: int) -> re.Match[bytes] | None:
        """Read the next member's name with the tokens around it, if the fast path matches."""
        if self._next is _Next.COMMA_OR_END:
            found = _NEXT_NAME.match(chunk, at)
        elif self._next is _Next.KEY_OR_END or self._next is _Next.KEY:
            found = _FIRST_NAME.match(chunk, at)
        else:
            return None
        if found is not None:
            self._key = found[1]
            self._end_key(*found.span(1))
            self._next = _Next.VALUE
        return found

    def _take_string(self, chunk: bytes, at: int) -> int:
        end = at
        if self._escaped:
            end, self._escaped = at + 1, False
        found = _IN_STRING.match(chunk, end)
        end = found.end() if found is not None else end
        if end < len(chunk) and chunk[end] == _BACKSLASH:  # the chunk's last byte
            end, self._escaped = end + 1, True
        closed = end < len(chunk)
        if self._inside is _Inside.KEY:
            self._key += chunk[at:end]
            self._check_key(at)
        if not closed:
            return end
        if self._inside is _Inside.KEY:
            self._end_key(at, end)
        elif self._inside is _Inside.NESTED_STRING:
            self._inside = _Inside.NESTED
        else:
            self._inside = _Inside.MEMBERS
        return end + 1

    def _skip_in_bulk(self, chunk: bytes, at: int) -> int:
        """Skip the nested part of a long chunk in bulk; the offset behind it, unchanged when that is not possible."""
        if len(chunk) - at < self._bulk_size:
            return at
        most = self._most_brackets(len(chunk)) - self._brackets
        passed, opened = skip_brackets(chunk[at:], self._nesting, self._limits.depth - len(self._keys), most)
        self._count(opened, len(chunk))
        return at + passed

    def _skip_nested(self, chunk: bytes, at: int) -> int:
        nesting = self._nesting
        while nesting:
            found = _FLAT.match(chunk, at)
            at = found.end() if found is not None else at
            if at == len(chunk):
                return at
            byte = chunk[at]
            if byte == _QUOTE:  # one that this chunk does not close
                self._inside = _Inside.NESTED_STRING
                return at + 1
            if byte in CLOSING:
                self._open(byte, at)
            elif byte != nesting.pop():
                raise self._refuse(f"has {chr(byte)!r} where another bracket is open", at)
            at += 1
        self._inside = _Inside.MEMBERS
        return at

    def _open(self, byte: int, at: int) -> None:
        self._nesting.append(CLOSING[byte])
        if len(self._nesting) + len(self._keys) > self._limits.depth:
            raise self._refuse(f"is nested more than {self._limits.depth} deep", at)
        self._count(1, at)

    def _count(self, opened: int, at: int) -> None:
        self._brackets += opened
        if self._brackets > self._limits.free_brackets and self._brackets > (most := self._most_brackets(at)):
            raise self._refuse(f"has more than {most} objects and arrays", at)

    def _most_brackets(self, at: int) -> int:
        """How many objects and arrays a document may have opened by here."""
        limits = self._limits
        return min(limits.brackets, max(limits.free_brackets, (self._kept_size + at) // limits.bracket_size))

    def _take_token(self, chunk: bytes, at: int) -> int:
        byte = chunk[at]
        match self._next:
            case _Next.DOCUMENT if byte == _BEGIN:
                self._enter()
            case _Next.KEY | _Next.KEY_OR_END if byte == _QUOTE:
                self._inside, self._key = _Inside.KEY, b""
            case _Next.KEY_OR_END | _Next.COMMA_OR_END if byte == _END:
                self._leave()
            case _Next.COLON if byte == _COLON:
                self._next = _Next.VALUE
            case _Next.COMMA_OR_END if byte == _COMMA:
                self._next = _Next.KEY
            case _Next.VALUE:
                return self._begin_value(chunk, at)
            case _:
                raise self._refuse(f"has {chr(byte)!a} where {_WANTED[self._next]} should be", at)
        return at + 1

    def _begin_value(self, chunk: bytes, at: int) -> int:
        byte = chunk[at]
        self._next = _Next.COMMA_OR_END
        if byte == _BEGIN and self._place == _TOP and self._name == "_attachments":
            self._enter()
        elif byte == _BEGIN and self._place == _ATTACHMENTS:
            if len(self._keys[-1]) > MOST_ATTACHMENTS:
                raise self._refuse(f"has more than {MOST_ATTACHMENTS} attachments", at)
            self._attachment = self._name
            self._enter()
        elif byte in CLOSING:
            self._inside = _Inside.NESTED
            self._open(byte, at)
            return self._skip_nested(chunk, at + 1)
        elif byte == _QUOTE:
            self._begin_string()
            return at + 1 if self._inside is _Inside.DATA else self._take_string(chunk, at + 1)
        elif ATOM.match(bytes((byte,))):
            self._inside = _Inside.ATOM
            return at
        else:
            raise self._refuse(f"has {chr(byte)!r} where a value should be", at)
        return at + 1

    def _begin_string(self) -> None:
        is_data = self._place == _ATTACHMENT and self._name == "data"
        if is_data and not self._attachment.endswith(names.BUNDLE):
            self._inside, self._data = _Inside.DATA, Base64Decoder()
            self._events.append(AttachmentStart(self._attachment))
        else:
            self._inside = _Inside.STRING

    def _take_data(self, chunk: bytes, at: int) -> int:
        """Decode the attachment's data in the chunk; the offset of its closing quote, or of the chunk's end."""
        end = chunk.find(b'"', at)
        closed = end >= 0
        piece = chunk[at : end if closed else len(chunk)]
        try:
            decoded = self._data.feed(piece, last=closed)
        except Base64Error as error:
            where = self._offset + at + error.at
            raise Invalid(
                f"attachment {quoted(self._attachment)} is not base64: byte {where} of the body does not belong there"
            ) from None
        if decoded:
            self._events.append(decoded)
        if not closed:
            return len(chunk)
        self._inside = _Inside.MEMBERS
        self._sizes[self._attachment] = self._data.size
        self._events.append(AttachmentEnd(self._attachment, self._data.size))
        self._cuts.append((self._kept_size, self._offset + end))
        return end

    def _check_key(self, at: int) -> None:
        if len(self._key) > LONGEST_KEY:
            raise self._refuse("has a key that is too long", at)

    def _end_key(self, begin: int, end: int) -> None:
        self._check_key(begin)
        try:
            name = msgspec.json.decode(b'"%b"' % self._key, type=str)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise self._refuse("has a malformed key, which ends", end) from None
        if name in self._keys[-1]:
            raise self._refuse(f"has the key {quoted(name)} twice, the second time", end)
        self._keys[-1].add(name)
        if len(self._keys[-1]) > MOST_MEMBERS:
            raise self._refuse(f"has an object of more than {MOST_MEMBERS} members", end)
        self._name = name
        self._inside, self._next = _Inside.MEMBERS, _Next.COLON

    def _enter(self) -> None:
        self._keys.append(set())
        self._next = _Next.KEY_OR_END

    def _leave(self) -> None:
        self._keys.pop()
        self._next = _Next.COMMA_OR_END if self._keys else _Next.NOTHING

    def _refuse(self, why: str, at: int) -> Invalid:
        return Invalid(f"the body is not JSON as it should be: it {why} at byte {self._offset + at}")


_WANTED: Final = {
    _Next.DOCUMENT: "the beginning of an object",
    _Next.KEY: "a key",
    _Next.KEY_OR_END: "a key",
    _Next.COLON: "a colon",
    _Next.COMMA_OR_END: "a comma",
    _Next.NOTHING: "the end",
}
