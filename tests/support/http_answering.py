"""Connections that get one answer by each of its roads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pkgrepo.http.answering.prepared import PreparedAnswer
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from tests.support.memory_connection import Connection

BODY = b"0123456789"


def answering_with(answer: Answer) -> Callable[[Request], Any]:
    async def handler(_request: Request) -> Answer:
        return answer

    return handler


def get(fields: str = "", method: str = "GET", path: str = "/") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


def both_roads(answer: Answer) -> list[Connection]:
    """The same answer by a handler, and prepared."""
    return [
        Connection(answering_with(answer)),
        Connection(answering_with(Answer(status=500)), find_prepared=lambda _: PreparedAnswer(answer)),
    ]


FULL = Answer(
    body=BODY,
    content_type=b"text/x",
    etag=b'"e"',
    last_modified=1_700_000_000,
    ranges=True,
    headers=((b"Cache-Control", b"no-cache"), (b"Content-Disposition", b"inline")),
)
