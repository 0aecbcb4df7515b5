"""Connections that get one answer by each of its roads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from tests.support.memory_connection import Connection

BODY = b"0123456789"


def answering_with(answer: Response) -> Callable[[Request], Any]:
    async def handler(_request: Request) -> Response:
        return answer

    return handler


def get(fields: str = "", method: str = "GET", path: str = "/") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


def both_roads(answer: Response) -> list[Connection]:
    """The same answer by a handler, and prepared."""
    return [
        Connection(answering_with(answer)),
        Connection(answering_with(Response(status=500)), find_prepared=lambda _: PreparedResponse(answer)),
    ]


FULL = Response(
    body=BODY,
    content_type=b"text/x",
    etag=b'"e"',
    last_modified=1_700_000_000,
    ranges=True,
    headers=((b"Cache-Control", b"no-cache"), (b"Content-Disposition", b"inline")),
)
