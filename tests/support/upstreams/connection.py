"""The server's side of one HTTP/1.1 connection: reads requests, and sends answers with their faults."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import struct
from collections.abc import AsyncIterator
from functools import lru_cache
from http import HTTPStatus

from attrs import evolve

from tests.support.upstreams.messages import HEAD, Answer, Fault, Request

PIECE = 256 * 1024  # bytes of a body per write
FILLER = b"X-Filler: " + b"f" * 1000 + b"\r\n"


class ClientLeft(Exception):
    """The client closed the connection in the middle of an exchange."""


class Connection:
    """
    One connection of a client that does not pipeline.

    After L{send}, C{complete} says whether the answer was sent to its end, and C{reusable} whether another request may
    follow. C{status} is that of the answer.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.complete = False
        self.reusable = False
        self._was_cut = False
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> Request | None:
        """Return the next request, or None if the client closed the connection."""
        try:
            raw = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        line, *rest = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = line.split(" ")
        pairs = (each.partition(":") for each in rest)
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        body = await self._reader.readexactly(int(fields.get("content-length", 0)))
        return Request(method, target, fields, body)

    async def wait(self, gate: asyncio.Event) -> None:
        """
        Wait until the gate opens.

        :raises ClientLeft: the client closed the connection before that
        """
        opened, left = asyncio.ensure_future(gate.wait()), asyncio.ensure_future(self._reader.read(1))
        try:
            await asyncio.wait((opened, left), return_when=asyncio.FIRST_COMPLETED)
            if left.done() and not opened.done():
                raise ClientLeft
        finally:
            opened.cancel()
            left.cancel()

    async def send(self, request: Request, answer: Answer) -> AsyncIterator[int | None]:
        """
        Send an answer. Yields the number of bytes of the body that the next write contains, or None for a pause.

        The head counts as a write of no bytes.
        """
        self.complete = self.reusable = False
        answer = _select(request, answer)
        fault, body = answer.fault, memoryview(answer.body)
        self.status = answer.status
        yield 0
        if fault.pause_at == HEAD:
            yield None
        if fault.cut_at == HEAD:
            self._close(fault)
            return
        head = self._head(answer)
        if fault.endless_head:
            await self._write(head)
            while True:
                await self._write(FILLER)
        if request.method == "HEAD" or answer.status in (204, 304):
            await self._write(head + b"\r\n")
        else:
            async for step in self._send_body(head + b"\r\n", body, fault):
                yield step
        self.complete = not self._was_cut
        spoilt = fault.drop or fault.unframed or fault.length is not None
        self.reusable = self.complete and not spoilt and request.fields.get("connection") != "close"

    async def _send_body(self, head: bytes, body: memoryview, fault: Fault) -> AsyncIterator[int | None]:
        stops = [each for each in (fault.pause_at, fault.cut_at) if each is not None]
        most = PIECE if fault.rate is None else max(1, int(fault.rate / 10))
        position, waiting = 0, head
        while True:
            if position == fault.pause_at:
                await self._write(waiting)
                waiting = b""
                yield None
            if position == fault.cut_at:
                await self._write(waiting)
                self._close(fault)
                return
            if position == len(body) and not fault.endless_body:
                break
            start = position % len(body)
            end = min([start + most, len(body), *(start + each - position for each in stops if each > position)])
            piece = body[start:end]
            yield len(piece)
            if waiting or fault.chunked:
                framed = (b"%x\r\n" % len(piece), piece, b"\r\n") if fault.chunked else (piece,)
                await self._write(b"".join((waiting, *framed)))
                waiting = b""
            else:
                await self._write(piece)
            position += len(piece)
            if fault.rate is not None:
                await asyncio.sleep(len(piece) / fault.rate)
        if end_mark := waiting + (b"0\r\n\r\n" if fault.chunked else b""):
            await self._write(end_mark)

    def _head(self, answer: Answer) -> bytes:
        fields, fault = dict(answer.fields), answer.fault
        if fault.chunked:
            fields["Transfer-Encoding"] = "chunked"
        elif fault.unframed:
            fields["Connection"] = "close"
        elif answer.status not in (204, 304):
            fields["Content-Length"] = str(len(answer.body) if fault.length is None else fault.length)
        line = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        return (line + "".join(f"{name}: {value}\r\n" for name, value in fields.items())).encode("latin-1")

    async def _write(self, data: bytes | memoryview) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def _close(self, fault: Fault) -> None:
        self._was_cut = True
        if fault.reset:
            raw: socket.socket = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        else:
            self._writer.close()


def _select(request: Request, answer: Answer) -> Answer:
    """Return what a request gets of a successful answer: all of it, 304, a range, or its gzipped form."""
    if answer.status != 200 or request.method not in ("GET", "HEAD"):
        return answer
    fields = {name.lower(): value for name, value in answer.fields.items()}
    etag, modified = fields.get("etag"), fields.get("last-modified")
    if "if-none-match" in request.fields:
        matches = etag is not None and etag in request.fields["if-none-match"]
    else:
        matches = modified is not None and modified == request.fields.get("if-modified-since")
    if matches:
        return evolve(answer, status=304, body=b"")
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.fields.get("range", ""))
    if wanted and answer.ranges and request.fields.get("if-range", etag) in (etag, modified):
        return _cut_out(answer, int(wanted[1]), int(wanted[2] or len(answer.body) - 1))
    if answer.compress and "gzip" in request.fields.get("accept-encoding", ""):
        return evolve(answer, body=_compress(bytes(answer.body))).with_fields(Content_Encoding="gzip")
    return answer.with_fields(Accept_Ranges="bytes") if answer.ranges else answer


def _cut_out(answer: Answer, first: int, last: int) -> Answer:
    """Return one range of a whole answer; both ends are included."""
    size = len(answer.body)
    if first >= size:
        return evolve(answer, status=416, body=b"").with_fields(Content_Range=f"bytes */{size}")
    last = min(last, size - 1)
    ranged = answer.with_fields(Content_Range=f"bytes {first}-{last}/{size}")
    return evolve(ranged, status=206, body=memoryview(answer.body)[first : last + 1])


@lru_cache(maxsize=1024)
def _compress(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)
