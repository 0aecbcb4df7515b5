"""Base64 as the text of a JSON string that arrives in pieces."""

from __future__ import annotations

import binascii
import re
from typing import Final

_TOKEN: Final = re.compile(
    rb"(?P<run>[A-Za-z0-9+/]+)|(?P<blank> +)|(?P<pad>=+)|\\u(?P<code>[0-9A-Fa-f]{4})|\\(?P<short>[/nrt])"
)
_UNFINISHED: Final = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?\Z")
_SHORT: Final = {b"/": b"/", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_BLANKS: Final = frozenset(b" \n\r\t")
_PADDING: Final = ord("=")
# Characters behind the last whole group of four, and the padding that may follow; it may be missing (RFC 4648 3.2).
_ENDS: Final = {(0, 0), (2, 0), (2, 2), (3, 0), (3, 1)}


class Base64Error(ValueError):
    """The text is not base64; ``at`` counts from the beginning of the piece that was fed, and may be below zero."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Base64Text:
    """
    Decodes one string, fed as it stands between its quotes.

    Line ends and blanks between the characters are skipped, as MIME has it.
    """

    def __init__(self) -> None:
        self.size = 0  # bytes decoded
        self._group = b""  # fewer than four characters, waiting for more
        self._escape = b""  # the beginning of an escape
        self._padding = 0

    def feed(self, piece: bytes, *, last: bool = False) -> bytes:
        """
        What the piece decodes to, together with what was left of those before.

        :raises Base64Error: it holds something else, or the text ends within a byte
        """
        decoded = None if last or self._escape or self._padding else self._decode_plain(piece)
        if decoded is None:
            decoded = self._decode_text(piece, last=last)
        self.size += len(decoded)
        return decoded

    def _decode_plain(self, piece: bytes) -> bytes | None:
        """The usual case, at full speed: nothing but base64; None when there is anything else."""
        text = self._group + piece
        whole = len(text) & ~3
        match = _TOKEN.match(text, whole)
        if whole != len(text) and (match is None or match.lastgroup != "run" or match.end() != len(text)):
            return None
        try:
            decoded = binascii.a2b_base64(memoryview(text)[:whole], strict_mode=True)
        except binascii.Error:
            return None
        if len(decoded) != whole // 4 * 3:  # there is padding
            return None
        self._group = text[whole:]
        return decoded

    def _decode_text(self, piece: bytes, *, last: bool) -> bytes:
        text = self._escape + piece
        started = len(self._escape)
        self._escape = b""
        runs = [self._group]
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                if last or not _UNFINISHED.match(text, at):
                    raise Base64Error(at - started)
                self._escape = text[at:]
                break
            self._take(match, runs, at - started)
            at = match.end()
        joined = b"".join(runs)
        whole = len(joined) & ~3
        if last:
            if (len(joined) - whole, self._padding) not in _ENDS:
                raise Base64Error(len(text) - started)
            return binascii.a2b_base64(joined + b"=" * (-len(joined) % 4))
        self._group = joined[whole:]
        return binascii.a2b_base64(memoryview(joined)[:whole])

    def _take(self, match: re.Match[bytes], runs: list[bytes], at: int) -> None:
        kind = match.lastgroup
        if kind == "blank":
            return
        run = match[0]
        if kind in ("code", "short"):
            code = int(match["code"], 16) if kind == "code" else _SHORT[match["short"]][0]
            if code in _BLANKS:
                return
            run = bytes((code,)) if code < 0x80 else b"?"
        if run[0] == _PADDING:
            self._padding += len(run)
        elif self._padding or (kind != "run" and not _TOKEN.match(run)):
            raise Base64Error(at)
        else:
            runs.append(run)
