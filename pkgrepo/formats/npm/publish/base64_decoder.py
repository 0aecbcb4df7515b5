"""An incremental decoder of base64 in a JSON string that arrives in pieces."""

from __future__ import annotations

import binascii
import re
from typing import Final

import msgspec

_RUN: Final = re.compile(rb"[A-Za-z0-9+/]*")
_CODE: Final = re.compile(rb"\\u([0-9A-Fa-f]{4})")
_TOKEN: Final = re.compile(rb"[A-Za-z0-9+/]+| +|=+|\\u[0-9A-Fa-f]{4}|\\[/nrt]")
_UNFINISHED: Final = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?")
_LONGEST_UNFINISHED: Final = 5
_BLANKS: Final = frozenset(b" \n\r\t")
# Valid ends: the number of characters behind the last whole group of four, and of padding characters behind them.
# Padding may be missing (RFC 4648 3.2).
_ENDS: Final = {(0, 0), (2, 0), (2, 2), (3, 0), (3, 1)}

_decode = msgspec.json.Decoder(bytes).decode


class Base64Error(ValueError):
    """The text is not base64. ``at`` is an offset in the piece that was fed; below zero it lies in an earlier piece."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Base64Decoder:
    """
    Decodes one string. It is fed the bytes between the quotes, JSON escapes included.

    Line ends and blanks between the characters are skipped, as in MIME.
    """

    def __init__(self) -> None:
        self.size = 0  # bytes decoded
        self._group = b""  # the last characters, fewer than four, that are not decoded yet
        self._escape = b""  # the first bytes of an unfinished escape
        self._padding = 0

    def feed(self, piece: bytes, *, last: bool = False) -> bytes:
        """
        The decoded bytes of the piece, and of the rest of earlier pieces.

        :raises Base64Error: the piece has other characters, or the text ends within a byte
        """
        decoded = None if last or self._escape or self._padding else self._decode_plain(piece)
        if decoded is None:
            decoded = self._decode_text(piece, last=last)
        self.size += len(decoded)
        return decoded

    def _decode_plain(self, piece: bytes) -> bytes | None:
        """The fast path for pieces of nothing but base64; None for any other piece."""
        text = self._group + piece
        decoded, rest = _decode_groups(text)
        if decoded is not None:
            self._group = rest
        return decoded

    def _decode_text(self, piece: bytes, *, last: bool) -> bytes:
        text = self._escape + piece
        started = len(self._escape)
        text, self._escape = _split_escape(text)
        padded = self._padding > 0
        characters = _unescape(text)
        body = characters.rstrip(b"=")
        self._padding += len(characters) - len(body)
        decoded, self._group = _decode_groups(self._group + body)
        sound = not (padded and body)
        if last:
            sound = sound and not self._escape and (len(self._group), self._padding) in _ENDS
        if decoded is None or not sound:
            raise Base64Error(_first_foreign(text, padded=padded) - started)
        if last:
            decoded += binascii.a2b_base64(self._group + b"=" * (-len(self._group) % 4))
        return decoded


def _decode_groups(text: bytes) -> tuple[bytes | None, bytes]:
    """The decoded whole groups of four, and the rest; None when a character is not base64, or is padding."""
    whole = len(text) & ~3
    rest = text[whole:]
    try:
        # Decoded as a JSON string: msgspec is as strict as binascii here, and takes half the time.
        decoded = _decode(b"".join((b'"', memoryview(text)[:whole], b'"')))
    except msgspec.MsgspecError:
        return None, rest
    # The decoder accepts padding and escapes, but then returns fewer bytes.
    return (decoded if len(decoded) == whole // 4 * 3 and _RUN.fullmatch(rest) else None), rest


def _split_escape(text: bytes) -> tuple[bytes, bytes]:
    """The text without the unfinished escape at its end, and that escape."""
    at = text.rfind(b"\\", len(text) - _LONGEST_UNFINISHED if len(text) > _LONGEST_UNFINISHED else 0)
    return (text[:at], text[at:]) if at >= 0 and _UNFINISHED.fullmatch(text, at) else (text, b"")


def _unescape(text: bytes) -> bytes:
    """A text without escapes and blanks; invalid escapes stay in it."""
    if b"\\" in text and b"\\\\" not in text:
        # No backslash is escaped, so that each begins an escape whatever the order of the replacements.
        text = text.replace(b"\\/", b"/").replace(b"\\n", b"").replace(b"\\r", b"").replace(b"\\t", b"")
        text = _CODE.sub(_character, text)
    return text.translate(None, b" ")


def _character(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16)
    return b"" if code in _BLANKS else bytes((code,)) if code < 0x80 else b"?"


def _first_foreign(text: bytes, *, padded: bool) -> int:
    """The offset of the first invalid character; the end of the text when characters are missing there."""
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        character = _unescape(match[0])
        if character.startswith(b"="):
            padded = True
        elif character and (padded or not _RUN.fullmatch(character)):
            break
        at = match.end()
    return at
