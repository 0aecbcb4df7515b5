"""Request bodies: uploads as blobs, and small documents decompressed and parsed, each with a limit on its size."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import evolve

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid, PkgrepoError, TooLarge
from pkgrepo.http.answering.conditional import is_current, is_wanted
from pkgrepo.http.reading.body import Body, BodyLost
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.room import FileRoom
from pkgrepo.repositories.publish.staged import Staged
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


class BodyParts:
    """A body whose parts follow each other, of lengths that its reader knows when it comes to them."""

    def __init__(self, body: AsyncIterable[bytes]) -> None:
        self._chunks = aiter(body)
        self._rest = b""

    async def read(self, count: int) -> bytes:
        """So many bytes in memory. :raises Invalid: the body ends before"""
        return b"".join([piece async for piece in self.pieces(count)])

    async def pieces(self, count: int) -> AsyncIterator[bytes]:
        """So many bytes as they arrive. :raises Invalid: the body ends before"""
        while count > 0:
            self._rest = self._rest or await self._next()
            if not self._rest:
                raise Invalid("the body ends before the last of its parts does")
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= len(piece)
            yield piece

    async def end(self) -> None:
        """:raises Invalid: the body goes on"""
        if self._rest or await self._next():
            raise Invalid("the body goes on behind its last part")

    async def _next(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""


T = TypeVar("T")

UPLOADS: Final = (b"PUT", b"POST")  # the methods of all clients' uploads


def misplaced_upload(base_url: str, request: Request, refusal: Refusal, advice: str) -> Refusal:
    """
    ``refusal`` of a request to an address of a repository that does not take it.

    If it is an upload, ``advice`` is added, with the repository's address for ``{}``: clients print little but the
    sentence. That address is below ``base_url`` and as in the request, so that no target of a virtual repository is
    named.
    """
    if request.method not in UPLOADS:
        return refusal
    path = b"/".join(request.raw_path.split(b"/")[:4]).decode("ascii", "replace")
    if request.entry.base is not None:
        path = request.entry.base
    return evolve(refusal, sentence=f"{refusal.sentence}; {advice.format(base_url + path)}")


def check_declared_length(request: Request, limit: int) -> None:
    """
    Check that the request announces at most ``limit`` bytes.

    :raises TooLarge: before a byte of the body has been asked for
    """
    if request.body.declared is not None and request.body.declared > limit:
        raise TooLarge(limit)


def check_preconditions(request: Request, etag: bytes | None, modified_s: int | None) -> None:
    """
    Check that what is at a path now is what the client wants to replace (RFC 9110 section 13.1).

    It has an ``etag``, and was ``modified_s`` seconds after the epoch; both are None if nothing is there.

    :raises Refusal: it is something else (412)
    """
    absent = modified_s is None and request.header(b"if-match") is not None
    unwanted = modified_s is not None and (
        not is_wanted(request.fields, etag, modified_s)
        or (request.header(b"if-none-match") is not None and is_current(request.fields, etag, None))
    )
    if absent or unwanted:
        raise Refusal(412, "the file at this path is not the one that the request expects", "precondition_failed")


async def receive_body(
    request: Request,
    staged: Staged,
    *,
    limit: int,
    algorithms: Sequence[str] = (),
    expected: Mapping[str, str] | None = None,
) -> BlobInfo:
    """
    The whole request body as a staged blob.

    :raises TooLarge, DigestMismatch, StorageFull, StorageFailed: nothing is kept then
    """
    check_declared_length(request, limit)
    return await staged.receive(
        request.body,
        limit=limit,
        expect_size=request.body.declared,
        algorithms=algorithms,
        expected=expected,
    )


async def write_body(body: Body, upload: IBlobUpload, room: FileRoom) -> BodyLost | None:
    """
    Write a request's body to an upload; if the client leaves before its end, that is returned, not raised.

    :raises QuotaExceeded: there is no ``room`` for it
    """
    try:
        async for chunk in body:
            await room.add(len(chunk))
            upload.write(chunk)
            await upload.drained()
    except BodyLost as lost:
        return lost
    return None


async def finish_without_client(work: Awaitable[T]) -> T:
    """
    The result of ``work``, which is not cancelled when the client leaves: what has arrived is kept for its return.

    Refusals are for the client alone, so that none is logged once the client has left.
    """

    async def run() -> tuple[T | None, Exception | None]:
        try:
            return await work, None
        except (PkgrepoError, Refusal) as error:
            return None, error

    result, error = await shield(run())
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only where T is
