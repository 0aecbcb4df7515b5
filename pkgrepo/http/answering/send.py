"""The one way an answer leaves."""

from __future__ import annotations

import os

from twisted.internet.defer import Deferred

from pkgrepo.http.answers import Answer, Content
from pkgrepo.http.connection import Connection
from pkgrepo.http.request import Request

from .conditional import Choice, choose
from .head import render_head
from .transfer import PIECE, SMALL, deliver, read_cached, send_bytes, send_file


async def send(request: Request, answer: Answer) -> None:
    """
    Answer ``request`` and wait until its body is handed over; quietly nothing when the client has left.

    Conditions, ranges and HEAD are served from what ``answer`` says about itself. When this raises, nothing has been
    written yet: the content could not be opened, or a header field is malformed.
    """
    under_way = respond(request, answer)
    if under_way is not None:
        await under_way


def respond(request: Request, answer: Answer) -> Deferred[None] | None:
    """L{send} for callers that do not wait: None when the answer is complete, else a Deferred for its end."""
    if request.gone:
        return None
    if request.startedWriting:
        raise RuntimeError("this request has been answered already")
    choice = choose(request.method, request.fields, answer)
    head = render_head(answer, choice.status, choice.start, choice.end)
    body = answer.body
    if choice.start == choice.end or request.method == b"HEAD" or choice.status in (204, 304):
        send_whole(request, choice.status, head, b"")
        return None
    if isinstance(body, bytes):
        whole = choice.end - choice.start == len(body)
        return send_whole(request, choice.status, head, body if whole else body[choice.start : choice.end])
    return _send_content(request, choice, head, body)


def send_whole(request: Request, status: int, head: bytes, body: bytes) -> Deferred[None] | None:
    """
    Write head and body of an answer; ``head`` is without the fields that every answer has.

    None when it is complete, else a Deferred for its end, which never fails.
    """
    channel: Connection = request.channel
    request.startedWriting = 1
    request.code = status
    request.sentLength = len(body)
    head += channel.common_fields(request.rid)
    if len(body) <= SMALL:
        channel.send(head + body)
    elif len(body) <= PIECE:
        channel.send(head)
        channel.write(body)
    else:
        request.sentLength = 0
        channel.send(head)
        return send_bytes(request, body)
    request.finish()
    return None


def _send_content(request: Request, choice: Choice, head: bytes, content: Content) -> Deferred[None] | None:
    channel: Connection = request.channel
    start, end = choice.start, choice.end
    fd = -1
    if content.open is not None:
        fd = content.open()
        if end - start <= SMALL:
            data = read_cached(fd, start, end - start)
            if data is not None and len(data) == end - start:
                os.close(fd)
                send_whole(request, choice.status, head, data)
                return None
    request.startedWriting = 1
    request.code = choice.status
    channel.send(head + channel.common_fields(request.rid))
    if fd >= 0:
        return send_file(request, fd, start, end)
    return Deferred.fromCoroutine(deliver(request, content, start, end))
