"""Sends an answer: conditions, head, and body or file transfer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from attrs import evolve
from twisted.internet.defer import Deferred

from pkgrepo.http.answers import NO_STORE, Answer, Content
from pkgrepo.http.connection import Connection
from pkgrepo.http.request import Request

from .conditional import Selection, select
from .file_transfer import read_cached, send_file
from .head import render_head
from .memory_transfer import PIECE, deliver, send_large

SMALL = 64 * 1024  # bytes of a file; up to this one write of head and body is cheaper than a transfer


async def send(request: Request, answer: Answer) -> None:
    """
    Answer ``request`` and wait until its body is handed over; does nothing when the client has left.

    Conditional requests, ranges and HEAD are served as the fields of ``answer`` allow. When this raises, nothing has
    been written yet: the content could not be opened, or a header field is malformed.
    """
    under_way = respond(request, answer)
    if under_way is not None:
        await under_way


def respond(request: Request, answer: Answer) -> Deferred[None] | None:
    """
    L{send} without waiting: None when the answer is complete, else a Deferred for its end.

    The Deferred fails only while nothing has been written yet.
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
        send_whole(request, selection.status, head, b"")
        return None
    if isinstance(body, bytes):
        whole = selection.end - selection.start == len(body)
        return send_whole(request, selection.status, head, body if whole else body[selection.start : selection.end])
    if body.elsewhere is not None and selection == Selection(200, 0, body.size):
        return Deferred.fromCoroutine(_redirect(request, answer, body.elsewhere))
    return _send_content(request, selection, head, body)


def send_whole(request: Request, status: int, head: bytes, body: bytes) -> Deferred[None] | None:
    """
    Write head and body of an answer; ``head`` is without the fields that every answer has.

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


async def _redirect(request: Request, answer: Answer, elsewhere: Callable[[], Awaitable[str]]) -> None:
    """Answer with the place of the body, which caches must not keep: its URL expires."""
    location = (b"Location", (await elsewhere()).encode("ascii"))
    under_way = respond(request, Answer(307, headers=(location, *NO_STORE), always=answer.always))
    if under_way is not None:
        await under_way


def _send_content(request: Request, selection: Selection, head: bytes, content: Content) -> Deferred[None] | None:
    channel: Connection = request.channel
    start, end = selection.start, selection.end
    fd = -1
    growing = content.growing
    if content.open is not None:
        fd = content.open()
        if growing is not None and growing.available(end) >= end:
            growing.close()
            growing = None
        if end - start <= SMALL and growing is None:
            data = read_cached(fd, start, end - start)
            if data is not None and len(data) == end - start:
                os.close(fd)
                send_whole(request, selection.status, head, data)
                return None

    def begin() -> None:
        request.startedWriting = 1
        request.code = selection.status
        channel.send(head + channel.common_fields(request.raw_request_id))

    if fd < 0:
        return Deferred.fromCoroutine(deliver(request, content, start, end, begin))
    begin()
    return send_file(request, fd, start, end, growing)
