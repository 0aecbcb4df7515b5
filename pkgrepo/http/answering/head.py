"""The head of an answer as bytes, without the fields that every answer has."""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus

from twisted.web.http import RESPONSES

from pkgrepo.http.answers import Answer

from .conditional import render_date

# RFC 9110 section 15.4.5: a 304 repeats what a cache updates, not what describes the body.
_IN_304 = frozenset([b"cache-control", b"content-location", b"expires", b"vary", b"set-cookie", b"link"])
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\xff]+")
_REASON_LENGTH = 200


def status_line(status: int, reason: str | None = None) -> bytes:
    """
    ``HTTP/1.1 <status> <reason>`` and its line end.

    ``reason`` may hold text of users: it becomes one line of at most 200 characters of Latin-1 without controls.
    """
    if reason is None:
        return _usual_status_line(status)
    clean = _UNPRINTABLE.sub(" ", reason.encode("latin-1", "replace").decode("latin-1"))
    return b"HTTP/1.1 %d %s\r\n" % (status, " ".join(clean.split())[:_REASON_LENGTH].encode("latin-1"))


@lru_cache(maxsize=512)
def _usual_status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %s\r\n" % (status, usual_reason(status))


def usual_reason(status: int) -> bytes:
    """The reason phrase of a status: Twisted's, or the standard library's, which knows more of them (429, 422)."""
    if status in RESPONSES:
        return RESPONSES[status]
    try:
        return HTTPStatus(status).phrase.encode("ascii")
    except ValueError:
        return b"Unknown"


def render_head(answer: Answer, status: int, start: int, end: int) -> bytes:
    """
    Status line and fields of ``answer``, sent as ``status`` with the bytes ``start`` to ``end`` of its body.

    :raises ValueError: a field holds a line end or another control byte
    """
    lines: list[bytes] = []
    unserved = status == 416 and answer.status != 416  # a range of this body; a 416 of a handler is sent as it is
    if unserved:
        lines += (b"Content-Range: bytes */%d" % answer.size, b"Content-Length: 0")
    elif status not in (204, 304):
        if answer.content_type is not None:
            lines.append(b"Content-Type: " + answer.content_type)
        if status == 206:
            lines.append(b"Content-Range: bytes %d-%d/%d" % (start, end - 1, answer.size))
        lines.append(b"Content-Length: %d" % (end - start))
    if answer.ranges:
        lines.append(b"Accept-Ranges: bytes")
    if answer.etag is not None:
        lines.append(b"ETag: " + answer.etag)
    if answer.last_modified is not None:
        lines.append(b"Last-Modified: " + render_date(answer.last_modified))
    lines += [
        name + b": " + value
        for name, value in answer.headers
        if not (status == 304 or unserved) or name.lower() in _IN_304
    ]
    lines += [name + b": " + value for name, value in answer.always]
    head = b"\r\n".join(lines)
    if head.count(b"\n") != max(len(lines) - 1, 0) or head.count(b"\r") != max(len(lines) - 1, 0) or b"\0" in head:
        raise ValueError("an answer's header field holds a control byte")
    reason = answer.reason if status == answer.status else None
    if reason is not None:
        reason = reason[: 2 * _REASON_LENGTH]  # keeps the entries of the cache above small
    return status_line(status, reason) + head + (b"\r\n" if lines else b"")
