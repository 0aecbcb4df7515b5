"""Stored files and rendered documents as answers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Literal, TypeVar

from attrs import frozen
from twisted.internet.interfaces import IConsumer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import BlobMissing
from pkgrepo.gateway.responses.long_bodies import deliver_pieces, unpack_pieces
from pkgrepo.http.answering.conditional import select
from pkgrepo.http.answering.negotiation import best_encoding
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Fields, Response
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Document, File, Repository, RepositoryType
from pkgrepo.proxy.parts.values import FileSource
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.repositories.integrity import FirstReads
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.blobs.durability import reading

T = TypeVar("T")

Encoding = Literal["identity", "gzip", "zstd"]

SMALL = 64 * 1024  # bytes; up to this a file is cached and sent from memory
PIECE = 1024 * 1024  # bytes that are in memory at once when stored bytes are copied
YEAR = 31_536_000
_SUFFIXES = {"gzip": "-gz", "zstd": "-zst"}  # of the ETags of documents

# Files of packages come from their publishers: a browser must neither run them nor guess their type.
SAFE: Fields = (
    (b"Content-Disposition", b"attachment"),
    (b"Content-Security-Policy", b"sandbox; default-src 'none'"),
)


@frozen
class FileHead:
    """What a format sends with a file instead of the usual: its ``etag`` (strong and quoted) and header fields."""

    etag: bytes | None
    headers: Fields


Present = Callable[[Mapping[str, str]], FileHead]  # for a file with these digests, in hex by algorithm


def is_private(repository: Repository) -> bool:
    """Whether only the client that got a response may cache it."""
    return repository.is_private


def file_cache_control(repository: Repository) -> bytes:
    """Files never change under their name, unless the repository's policy lets them."""
    if repository.policy.get("allow_overwrite") or repository.policy.get("reuse_deleted_names"):
        return document_cache_control(repository)
    return _for_ever(repository)


def _named_file_cache_control(repository: Repository) -> bytes:
    """The ``Cache-Control`` of files whose names do not have their digests: an upstream may replace them."""
    hosted = repository.type is RepositoryType.HOSTED
    return file_cache_control(repository) if hosted else document_cache_control(repository)


def document_cache_control(repository: Repository, *, settled: bool = False) -> bytes:
    """
    Documents may change at any time: clients cache them, and revalidate each time.

    Those of the past do not, once they are ``settled``.
    """
    if settled:
        return _for_ever(repository)
    return b"private, no-cache" if is_private(repository) else b"no-cache"


def _for_ever(repository: Repository) -> bytes:
    return b"%s, max-age=%d, immutable" % (b"private" if is_private(repository) else b"public", YEAR)


class Files:
    """Turns file rows into answers; no road to stored bytes goes round it, or round ``first_reads``."""

    def __init__(self, *, registry: Registry, stores: Stores, first_reads: FirstReads) -> None:
        self._registry = registry
        self._stores = stores
        self._first_reads = first_reads

    async def answer(
        self, repository: Repository, file: File, headers: Fields = SAFE, present: Present | None = None
    ) -> Response:
        """
        A file of a repository, with ranges and validators. It is immutable if that is hosted, or as ``headers`` say.

        ``present`` wins over ``headers``.

        :raises BlobMissing: the storage has lost the bytes
        """
        head = _head(file.digests, headers) if present is None else present(file.digests)
        return Response(
            body=await self.body(file.storage_id, file.locator, file.size),
            content_type=file.media_type.encode("latin-1", "replace"),
            etag=head.etag,
            last_modified=int(file.created_at.timestamp()),
            headers=_with_cache_control(head.headers, _named_file_cache_control(repository)),
            ranges=True,
        )

    def answer_arriving(
        self,
        repository: Repository,
        source: FileSource,
        body: bytes | Content,
        headers: Fields,
        present: Present | None = None,
    ) -> Response:
        """A file of an upstream that has no row yet, as the upstream announced it; the rest is as for ``answer``."""
        head = _head(source.digests, headers) if present is None else present(source.digests)
        return Response(
            body=body,
            content_type=source.media_type.encode("latin-1", "replace"),
            etag=head.etag,
            headers=_with_cache_control(head.headers, _named_file_cache_control(repository)),
            ranges=True,
        )

    async def body(self, storage_id: int, locator: str, size: int) -> bytes | Content:
        """
        Stored bytes as the body of a response, small ones in memory, large ones perhaps at an address of the storage.

        :raises BlobMissing: the storage has lost them
        """
        if not locator:
            raise BlobMissing(locator)
        if size > SMALL:
            store = await self._stores.of(self._registry.storage(storage_id))
            if store.has_files:
                gate = partial(self._first_reads.gate, store, storage_id, locator)
                return Content(size, open=partial(self._open, store, storage_id, locator), gate=gate)
            addresses = store.addresses
            elsewhere = None
            if addresses is not None and size >= addresses.least_size:
                elsewhere = partial(addresses.sign, locator)
            return Content(size, deliver=partial(_deliver, store, locator), elsewhere=elsewhere)
        return await self.read(storage_id, locator, size)

    async def read(self, storage_id: int, locator: str, size: int) -> bytes:
        """
        The first bytes of a stored copy, or all, in memory; the caller bounds their size.

        :raises BlobMissing: the storage has lost them, or has others
        """
        store = await self._stores.of(self._registry.storage(storage_id))
        try:
            data: bytes = await store.open(locator).read(0, size)
            if len(data) != size:
                raise BlobMissing(locator)
        except BlobMissing:
            self._first_reads.look_again(store, storage_id, locator)
            raise
        await self._first_reads.check_whole(store, storage_id, locator, data)
        return data

    async def chunks(self, storage_id: int, locator: str, size: int) -> AsyncIterator[bytes]:
        """
        Stored bytes in pieces.

        :raises BlobMissing: the storage has lost them
        """
        store = await self._checked(storage_id, locator)
        blob, start = store.open(locator), 0
        while start < size:
            piece: bytes = await blob.read(start, PIECE)
            if not piece:
                raise BlobMissing(locator)
            start += len(piece)
            yield piece

    async def deliver(self, file: File, consumer: IConsumer, start: int, end: int) -> None:
        """
        Write the bytes from ``start`` to ``end`` (exclusive) of a stored file; see L{Content}.

        :raises BlobMissing: the storage has lost them
        """
        store = await self._checked(file.storage_id, file.locator)
        await _deliver(store, file.locator, consumer, start, end)

    async def inspect(self, pool: Pool, storage_id: int, blob: BlobInfo | File, look: Callable[[int | bytes], T]) -> T:
        """
        Call ``look`` on a thread with a descriptor of stored bytes, or with these if they are small.

        :raises BlobMissing: the storage has lost them; :raises StorageFailed: they cannot be read
        """
        if blob.size <= SMALL:
            return await pool(look, await self.read(storage_id, blob.locator, blob.size))
        store = await self._checked(storage_id, blob.locator)
        with reading(self._registry.storage(storage_id).name):
            return await pool(_look_and_close, await store.open(blob.locator).as_file(), look)

    def _open(self, store: IBlobStore, storage_id: int, locator: str) -> int:
        try:
            descriptor: int | None = store.open(locator).descriptor()
            if descriptor is None:
                raise BlobMissing(locator)
        except BlobMissing:
            self._first_reads.look_again(store, storage_id, locator)
            raise
        return descriptor

    async def _checked(self, storage_id: int, locator: str) -> IBlobStore:
        """The store of a copy that was compared with its digest."""
        store = await self._stores.of(self._registry.storage(storage_id))
        await self._first_reads.check(store, storage_id, locator)
        return store


def _look_and_close(descriptor: int, look: Callable[[int | bytes], T]) -> T:
    try:
        return look(descriptor)
    finally:
        os.close(descriptor)


def arriving(found: ArrivingBody | bytes) -> bytes | Content:
    """What a transfer has of a file without a row yet, as the body of one response, which must not be cached."""
    return found if isinstance(found, bytes) else Content(found.size, open=found.open, growing=found)


def sent_part(request: Request, response: Response) -> Literal["all", "beginning", ""]:
    """
    Whether a request gets the whole body of a response, or the beginning of it as a range.

    A client that fetches a file in parts gets its beginning once. A HEAD, a 304, and another range are neither.
    """
    if request.method != b"GET":
        return ""
    selection = select(request.method, request.fields, response)
    if selection.start or selection.status not in (200, 206):
        return ""
    return "all" if selection.status == 200 and selection.end == response.size else "beginning"


def _head(digests: Mapping[str, str], headers: Fields) -> FileHead:
    """The usual head of a file: its ETag is its sha256, if that is known."""
    sha256 = digests.get("sha256")
    return FileHead(None if sha256 is None else b'"%s"' % sha256.encode("ascii"), headers)


def _with_cache_control(headers: Fields, value: bytes) -> Fields:
    if any(name == b"Cache-Control" for name, _ in headers):
        return headers
    return ((b"Cache-Control", value), *headers)


def _deliver(store: IBlobStore, locator: str, consumer: IConsumer, start: int, end: int) -> Awaitable[None]:
    delivery: Awaitable[None] = store.open(locator).deliver(consumer, start, end)
    return delivery


def plain_body(document: Document, cpu: Pool | None) -> bytes | Content:
    """
    A rendered document without content coding.

    One without a body, see L{Document}, needs the threads ``cpu``, which unpack it while it is sent.
    """
    if document.body or document.gzip is None:
        return document.body
    assert cpu is not None, "what is never large has a body"
    return Content(document.size, deliver=partial(deliver_pieces, partial(unpack_pieces, document.gzip, cpu)))


def document_response(
    document: Document,
    encoding: Encoding,
    headers: Fields,
    *,
    last_modified: int | None = None,
    cpu: Pool | None = None,
) -> Response:
    """A rendered document in one of its content codings; each has its own strong ETag. ``cpu``: see L{plain_body}."""
    forms = {"gzip": document.gzip, "zstd": document.zstd}
    variants = {b"identity": document.etag.encode("ascii")}
    for coding, form in forms.items():
        if form is not None:
            variants[coding.encode("ascii")] = f'{document.etag[:-1]}{_SUFFIXES[coding]}"'.encode("ascii")
    packed = forms.get(encoding)
    if packed is not None:
        headers = (*headers, (b"Content-Encoding", encoding.encode("ascii")))
    return Response(
        body=plain_body(document, cpu) if packed is None else packed,
        content_type=document.content_type.encode("ascii"),
        etag=variants[b"identity" if packed is None else encoding.encode("ascii")],
        variants=variants,
        last_modified=last_modified,
        headers=headers,
    )


def choose_encoding(accept_encoding: bytes | None) -> Encoding:
    """The content coding that a client prefers; ``identity`` if it accepts none."""
    best = best_encoding(accept_encoding, (b"zstd", b"gzip", b"identity"))
    return "zstd" if best == b"zstd" else "gzip" if best == b"gzip" else "identity"
