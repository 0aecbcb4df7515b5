"""Request bodies: decompressed, with a limit on their size, and small ones as JSON."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

from pkgrepo.errors import Invalid, TooLarge
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.untrusted.strict_json import check_value_count, decode_json

PIECE: Final = 256 * 1024  # bytes that are inflated at once
SMALL_BODY: Final = 64 * 1024  # bytes of a document without a packument in it; a MiB is parsed for up to 200 ms
SMALL_VALUES: Final = 5000  # of such a document, which is parsed by the reactor


async def read_pieces(request: Request) -> AsyncIterator[bytes]:
    """
    The body in pieces, decompressed; npm compresses what it sends for an audit, and may compress any body.

    :raises Refusal: its content coding is unknown; :raises Invalid: it is damaged
    """
    coding = (request.header(b"content-encoding") or b"identity").strip().lower()
    if coding in (b"identity", b""):
        async for chunk in request.body:
            yield chunk
        return
    if coding not in (b"gzip", b"x-gzip"):
        raise Refusal(415, "bodies are taken plain or compressed with gzip", headers=((b"Accept-Encoding", b"gzip"),))
    inflater = zlib.decompressobj(31)
    async for chunk in request.body:
        rest, piece = chunk, b""
        while rest or len(piece) == PIECE:  # after a full piece there may be more in the inflater
            piece = _inflate(inflater, rest)
            rest = inflater.unconsumed_tail
            if piece:
                yield piece
            if len(piece) == PIECE:  # a few KiB may become MiB
                await request.next_turn()
    if not inflater.eof:
        raise Invalid("the body is not a whole gzip stream")


async def read_body(request: Request, limit: int = SMALL_BODY) -> bytes:
    """The whole body, decompressed. :raises TooLarge: it is longer than ``limit`` bytes, compressed or not"""
    request.body.limit = limit
    parts: list[bytes] = []
    size = 0
    async for piece in read_pieces(request):
        size += len(piece)
        if size > limit:
            raise TooLarge(limit, "the request's body")
        parts.append(piece)
    return b"".join(parts)


async def read_json(request: Request, limit: int = SMALL_BODY) -> Any:
    """The value of a JSON body, None when it is empty. :raises Invalid: it is malformed, or has too many values"""
    body = await read_body(request, limit)
    check_value_count(body, SMALL_VALUES, "the body")
    return decode_json(body) if body.strip() else None


async def read_object(request: Request, limit: int = SMALL_BODY) -> dict[str, Any]:
    """The value of a body that is a JSON object, or empty. :raises Invalid: it is another value, or as above"""
    value = await read_json(request, limit)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Invalid("the body must be a JSON object")
    return value


def _inflate(inflater: Any, data: bytes) -> bytes:
    try:
        piece: bytes = inflater.decompress(data, PIECE)
    except zlib.error:
        raise Invalid("the body is not a gzip stream, as Content-Encoding says it is") from None
    return piece
