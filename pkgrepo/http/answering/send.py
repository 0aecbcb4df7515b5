"""Sends a response: conditions, the head without the fields that every response has, and body or file transfer."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.web.http import RESPONSES

from pkgrepo.http.answering.conditional import Selection, render_date, select
from pkgrepo.http.answering.file_transfer import read_cached, send_file
from pkgrepo.http.answering.memory_transfer import PIECE, deliver, send_large
from pkgrepo.http.connection import Connection
from pkgrepo.http.repeats import RenderedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Content, Response

# RFC 9110 section 15.4.5: a 304 repeats what a cache updates, not what describes the body.
_IN_304 = frozenset([b"cache-control", b"content-location", b"expires", b"vary", b"set-cookie", b"link"])
_UNPRINTABLE = re.compile("[^\x20-\x7e\xa0-\xff]+")
_REASON_LENGTH = 200

SMALL = PIECE  # bytes of a file; up to this one write of head and body is cheaper than a transfer

Keep = Callable[[RenderedResponse], None]  # gets a response that was written whole, and may be given to others


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


def render_head(answer: Response, status: int, start: int, end: int) -> bytes:
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
        lines += _length(answer.body, end - start)
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


def _length(body: bytes | Content, size: int) -> list[bytes]:
    """The field for the length of what is sent; none if it ends with the connection (RFC 9112 section 6.3)."""
    return [] if isinstance(body, Content) and body.endless else [b"Content-Length: %d" % size]


async def send(request: Request, answer: Response) -> None:
    """
    Answer ``request`` and wait until its body is handed over; does nothing when the client has left.

    Conditional requests, ranges and HEAD are served as the fields of ``answer`` allow. When this raises, nothing has
    been written yet: the content could not be opened, or a header field is malformed.
    """
    under_way = respond(request, answer)
    if under_way is not None:
        await under_way


def respond(request: Request, answer: Response, keep: Keep | None = None) -> Deferred[None] | None:
    """
    L{send} without waiting: None when the response is complete, else a Deferred for its end.

    The Deferred fails only while nothing has been written yet. ``keep`` is called for a response that is in memory and
    not large, also that of a file.
    """
    if request.gone:
        return None
    if request.startedWriting:
        raise RuntimeError("this request has been answered already")
    selection = select(request.method, request.fields, answer)
    if selection.etag is not None:
        answer = evolve(answer, etag=selection.etag)
    head = render_head(answer, selection.status, selection.start, selection.end)
    body = answer.body
    if selection.start == selection.end or request.method == b"HEAD" or selection.status in (204, 304):
        return send_and_keep(request, RenderedResponse(selection.status, head, b""), keep)
    if isinstance(body, bytes):
        whole = selection.end - selection.start == len(body)
        part = body if whole else body[selection.start : selection.end]
        return send_and_keep(request, RenderedResponse(selection.status, head, part), keep)
    if body.elsewhere is not None and selection == Selection(200, 0, body.size):
        return Deferred.fromCoroutine(_redirect(request, answer, body.elsewhere))
    return _send_content(request, selection, head, body, keep)


def send_whole(request: Request, status: int, head: bytes, body: bytes) -> Deferred[None] | None:
    """
    Write head and body of a response; ``head`` is without the fields that every response has.

    None when it is complete, else a Deferred for its end, which never fails.
    """
    channel: Connection = request.channel
    request.startedWriting = 1
    request.code = status
    request.sentLength = len(body)
    head += channel.common_fields(request.raw_request_id)
    if len(body) > PIECE:
        return send_large(request, head, body)
    channel.send_both(head, body)
    request.finish()
    return None


def send_and_keep(request: Request, reply: RenderedResponse, keep: Keep | None) -> Deferred[None] | None:
    """Write a response as L{send_whole} does, and keep it for others unless it is large."""
    under_way = send_whole(request, reply.status, reply.head, reply.body)
    if keep is not None and len(reply.body) <= PIECE:
        keep(reply)
    return under_way


async def _redirect(request: Request, answer: Response, elsewhere: Callable[[], Awaitable[str]]) -> None:
    """Answer with the place of the body, which caches must not keep: its URL expires."""
    location = (b"Location", (await elsewhere()).encode("ascii"))
    under_way = respond(request, Response(307, headers=(location, *NO_STORE), always=answer.always))
    if under_way is not None:
        await under_way


def _send_content(
    request: Request, selection: Selection, head: bytes, content: Content, keep: Keep | None
) -> Deferred[None] | None:
    channel: Connection = request.channel
    start, end = selection.start, selection.end
    fd = -1
    growing = content.growing
    if content.open is not None:
        fd = content.open()
        if content.gate is not None:
            try:
                growing = content.gate()
            except BaseException:
                os.close(fd)
                raise
        if growing is not None and growing.available(end) >= end:
            growing.close()
            growing = None
        if end - start <= SMALL and growing is None:
            data = read_cached(fd, start, end - start)
            if data is not None and len(data) == end - start:
                os.close(fd)
                return send_and_keep(request, RenderedResponse(selection.status, head, data), keep)

    def begin() -> None:
        request.startedWriting = 1
        request.code = selection.status
        if content.endless:
            channel.persistent = False
        channel.send(head + channel.common_fields(request.raw_request_id))

    if fd < 0:
        return Deferred.fromCoroutine(deliver(request, content, start, end, begin))
    begin()
    return send_file(request, fd, start, end, growing)
