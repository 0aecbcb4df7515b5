"""
The head of a response (RFC 9112 section 4), read strictly and within limits.

If two programs on the way disagree about where a response ends, what follows can be taken for the response to another
request. So everything ambiguous is refused: folded lines, bare CR or LF, blanks before a colon, lengths that differ. Of
a length beside ``chunked`` the second counts, and the connection is not used again (RFC 9112 section 6.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from pkgrepo.untrusted.header_fields import MalformedField, connection_options, has_controls, join_lines, parse_lines

HEAD_BYTES = 64 * 1024  # of all heads that answer one request; signed URLs and policies need a few KiB
HEAD_LINES = 300
LINE_BYTES = 16 * 1024

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([0-9]{1,9})(?: (.*))?")
_LENGTH = re.compile(rb"[0-9]{1,18}")


class HeadTooLarge(Exception):  # noqa: N818 - named for what happened
    """The head of a response exceeds a limit."""


class NotHttp(Exception):  # noqa: N818 - named for what happened
    """What came is no response of HTTP/1.1, or not an unambiguous one."""


@frozen
class Head:
    """
    The head of a response.

    ``fields`` are by lower-case name, several lines of one name joined by a comma (RFC 9110 section 5.3). ``length`` is
    that of the body in bytes, None if it is ``chunked`` or ends with the connection. ``persists``: the upstream keeps
    the connection. ``reason`` is the phrase behind the status.
    """

    status: int
    fields: Mapping[bytes, bytes]
    length: int | None
    chunked: bool
    persists: bool
    reason: bytes = b""


class HeadReader:
    """
    Reads the heads that answer one request, up to the final one: those of status 1xx precede it (RFC 9110, 15.2).

    ``bodiless``: the request was a HEAD, whose response has no body.
    """

    def __init__(self, *, bodiless: bool) -> None:
        self._bodiless = bodiless
        self._received = b""
        self._searched = 0
        self._bytes = 0  # of the heads before this one
        self._lines = 0

    def feed(self, data: bytes) -> tuple[Head, bytes] | None:
        """
        Take bytes; returns the final head and what came behind it, or None before its end.

        :raises HeadTooLarge: they exceed a limit; :raises NotHttp: they are no head
        """
        received = self._received + data if self._received else data
        while True:
            end = received.find(b"\r\n\r\n", self._searched)
            if end < 0:
                self._check_part(received)
                self._received, self._searched = received, max(len(received) - 3, 0)
                return None
            head = self._read(received[:end])
            received, self._searched = received[end + 4 :], 0
            if head is not None:
                return head, received

    def _read(self, raw: bytes) -> Head | None:
        """The head of these bytes, without the empty line; None if another one follows."""
        rows = raw.split(b"\r\n")
        self._check_size(len(raw), rows)
        self._bytes += len(raw) + 4
        self._lines += len(rows) + 1
        found = _STATUS.fullmatch(rows[0])
        if found is None or has_controls(raw, len(rows) - 1):
            raise NotHttp
        status = int(found[2])
        if 100 <= status < 200:
            return None
        try:
            fields = join_lines(parse_lines(rows[1:]))
        except MalformedField:
            raise NotHttp from None
        return self._frame(status, found[1] != b"0", fields, (found[3] or b"").strip())

    def _frame(self, status: int, is_1_1: bool, fields: Mapping[bytes, bytes], reason: bytes) -> Head:
        length, coding = _length(fields.get(b"content-length")), fields.get(b"transfer-encoding")
        options = connection_options(fields)
        persists = b"close" not in options and (is_1_1 or b"keep-alive" in options)
        if self._bodiless or status in (204, 304):
            return Head(status, fields, 0, chunked=False, persists=persists, reason=reason)
        if coding is None:
            return Head(status, fields, length, chunked=False, persists=persists and length is not None, reason=reason)
        if coding.lower() != b"chunked":
            raise NotHttp
        is_reusable = persists and is_1_1 and length is None
        return Head(status, fields, None, chunked=True, persists=is_reusable, reason=reason)

    def _check_part(self, received: bytes) -> None:
        """Check a head that is not complete, so that no client waits for the end of what is no head."""
        rows = received.split(b"\r\n")
        self._check_size(len(received), rows)
        if received.count(b"\n") != len(rows) - 1:  # a line without CR, as programs send that write to a socket
            raise NotHttp
        if len(rows) > 1 and _STATUS.fullmatch(rows[0]) is None:
            raise NotHttp

    def _check_size(self, size: int, rows: Sequence[bytes]) -> None:
        if self._bytes + size > HEAD_BYTES or self._lines + len(rows) > HEAD_LINES:
            raise HeadTooLarge
        if size > LINE_BYTES and max(map(len, rows)) > LINE_BYTES:
            raise HeadTooLarge


def _length(announced: bytes | None) -> int | None:
    """The value of Content-Length; the same one may be there several times (RFC 9110 section 8.6)."""
    if announced is None:
        return None
    if announced.isdigit() and len(announced) < 19:
        return int(announced)
    values = {each.strip(b" \t") for each in announced.split(b",")}
    value = values.pop()
    if values or _LENGTH.fullmatch(value) is None:
        raise NotHttp
    return int(value)
