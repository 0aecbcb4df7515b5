"""Requests as bytes, and handlers that answer them in simple ways."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


CHUNKED = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def put(length: int, extra: bytes = b"") -> bytes:
    return b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n" % (length, extra)


EXPECT = b"Expect: 100-continue\r\n"


async def echo(request: Request) -> Response:
    return Response(body=b"".join([chunk async for chunk in request.body]))


async def refuse(_request: Request) -> Response:
    raise Refusal(401, "who are you?", headers=((b"WWW-Authenticate", b"Basic"),))


async def path(request: Request) -> Response:
    return text_response(request.path.decode())


class Gate:
    """A handler that answers when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Deferred[None]] = []
        self.seen: list[Request] = []
        self.ends: list[BaseException | None] = []

    async def __call__(self, request: Request) -> Response:
        self.seen.append(request)
        self.waiting.append(Deferred())
        try:
            await self.waiting[-1]
        except BaseException as error:
            self.ends.append(error)
            raise
        self.ends.append(None)
        return text_response(request.path.decode())

    def open(self) -> None:
        self.waiting.pop(0).callback(None)
