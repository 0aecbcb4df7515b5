"""The operations on the objects of a storage in a bucket."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import NoReturn

from attrs import define
from twisted.logger import Logger

from pkgrepo.errors import BlobMissing, StorageFailed

from .documents import (
    DocumentBroken,
    Page,
    Part,
    PartsUpload,
    StoredObject,
    read_error_code,
    read_objects,
    read_parts,
    read_upload_id,
    read_uploads,
)
from .requests import Body, Incoming, Query, Requests, Unanswered, WholeResponse, reason_of

PAGE = 1000  # items; more are not sent at once
OCTETS = "application/octet-stream"
TRIES = 4  # requests for one range, when connections break

_CONTENT_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+)")
_ABSENT = {"NoSuchKey", "NoSuchUpload", "404"}

log = Logger()


@define
class BucketFailed(StorageFailed):
    """The store refuses, or does not answer; ``reason`` is a clause for the operator, without secrets."""

    reason: str


class Bucket:
    """
    The objects whose keys begin with ``prefix``; keys are without it here.

    Every method raises ``StorageFailed`` when the store refuses or does not answer, and logs why. With ``replaces``
    writing replaces an object that is there.
    """

    def __init__(self, requests: Requests, *, prefix: str, storage: str, replaces: bool = False) -> None:
        self._requests = requests
        self._prefix = prefix
        self._storage = storage
        self._conditional = not replaces  # until the store says that it knows no conditional writes

    async def put(self, key: str, body: Body, content_type: str = OCTETS, *, same: bool = True) -> bool:
        """
        Store an object. Returns whether it was absent.

        An existing one is never changed, unless writing ``replaces``: then the result is true. One that is there must
        have the size of this one, unless it may be another one, not the ``same``.
        """
        headers = {"x-amz-checksum-sha256": base64_of(body.sha256), "Content-Type": content_type}
        response = await self._write_new("PUT", key, (), headers, body)
        if response.status == 412:
            # Our own, if the response to an earlier try was lost: keys are random. But a store that was killed in the
            # middle of that may say so of an object that it does not have (versitygw 1.8, which has noted its ETag).
            found = await self.stat(key)
            if found is None or (same and found[0] != len(body.data)):
                self._fail("PUT", key, "it says that this object is there, and lists none of this size")
            return False
        self._check(response, "PUT", key)
        return True

    async def stat(self, key: str) -> tuple[int, datetime] | None:
        """Size in bytes and time of an object, or None if there is none."""
        # A list has both in one form; no other key begins with one of ours.
        page = await self.list_page(key, limit=1)
        return (page[0].size, page[0].modified_at) if page and page[0].key == key else None

    async def signed_url(self, key: str, life_s: int) -> str:
        """Return an address where anyone can read an object for ``life_s`` seconds; the store is not asked."""
        try:
            return await self._requests.signed_url(self._prefix + key, life_s)
        except Unanswered as error:
            self._fail("signing", key, str(error))

    @asynccontextmanager
    async def get(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[Incoming | None]:
        """
        Read an object from ``start`` to ``end`` (exclusive, at least one byte) or its end; None: no byte is there.

        :raises BlobMissing: there is no such object
        """
        headers = {} if not start and end is None else {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        try:
            incoming = await self._requests.open(self._prefix + key, headers)
        except Unanswered as error:
            self._fail("GET", key, str(error))
        try:
            if incoming.status == 416:
                yield None
                return
            if incoming.status != (206 if headers else 200):
                code = read_error_code(await incoming.read())
                if incoming.status == 404 and code in ("NoSuchKey", ""):  # not NoSuchBucket
                    raise BlobMissing(key)
                self._fail("GET", key, f"it answered {incoming.status} {code}".rstrip())
            yield incoming
        except Unanswered as error:
            self._fail("GET", key, str(error))
        finally:
            incoming.close()

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """
        Yield an object from ``start`` to ``end`` (exclusive), or to its end.

        A connection that ends early is followed by a request for the rest.

        :raises BlobMissing: there is no such object; :raises StorageFailed: it cannot be read to there
        """
        tries = 0
        while end is None or start < end:
            async with self.get(key, start, end) as incoming:
                if incoming is None:
                    return
                size = _size_of(incoming, start)
                if size is None:
                    self._fail("GET", key, "it answered another range, or no size")
                last = size if end is None else min(end, size)
                try:
                    async with aclosing(incoming.chunks()) as chunks:
                        async for chunk in chunks:
                            start += len(chunk)
                            yield chunk
                except Unanswered as error:
                    tries += 1
                    log.info("reading {key!r} is continued: {reason}", key=key, reason=str(error))
                    if tries < TRIES:
                        continue
            if start != last:
                self._fail("GET", key, "only a part of it came")
            return

    async def delete(self, key: str) -> None:
        """Remove an object; none is fine."""
        response = await self._send("DELETE", key)
        if response.status != 404:
            self._check(response, "DELETE", key)

    async def list_page(self, prefix: str, after: str = "", limit: int = PAGE) -> Sequence[StoredObject]:
        """At most ``limit`` objects whose keys begin with ``prefix`` and are after ``after``, in the order of keys."""
        query = [("list-type", "2"), ("max-keys", str(min(limit, PAGE))), ("prefix", self._prefix + prefix)]
        if after:
            query.append(("start-after", self._prefix + after))
        page = await self._page(query, read_objects)
        cut = len(self._prefix)
        return [StoredObject(each.key[cut:], each.size, each.modified_at) for each in page.items]

    async def iterate(self, prefix: str) -> AsyncIterator[StoredObject]:
        """All objects whose keys begin with ``prefix``."""
        after = ""
        while page := await self.list_page(prefix, after):
            for each in page:
                yield each
            after = page[-1].key

    # Uploads in parts

    async def begin_parts(self, key: str, content_type: str = OCTETS) -> str:
        """Begin to send an object in parts. Returns the id of that."""
        headers = {"x-amz-checksum-algorithm": "SHA256", "Content-Type": content_type}
        response = await self._send("POST", key, [("uploads", "")], headers)
        self._check(response, "POST", key)
        try:
            return read_upload_id(response.body)
        except DocumentBroken as error:
            self._fail("POST", key, reason_of(error))

    async def put_part(self, key: str, parts_id: str, number: int, body: Body) -> Part:
        """Send a part; ``number`` counts from 1. An earlier one of this number is replaced."""
        checksum = base64_of(body.sha256)
        query = [("partNumber", str(number)), ("uploadId", parts_id)]
        response = await self._send("PUT", key, query, {"x-amz-checksum-sha256": checksum}, body)
        self._check(response, "PUT", key)
        etag = response.fields.get(b"etag", b"").decode("latin-1")
        return Part(number, etag, len(body.data), checksum)

    async def complete_parts(self, key: str, parts_id: str, parts: Sequence[Part], body: Body) -> None:
        """Make the object of its parts; ``body`` is their document, rendered by ``render_parts``."""
        response = await self._write_new(
            "POST", key, [("uploadId", parts_id)], {"Content-Type": "application/xml"}, body
        )
        if response.status in (404, 412):
            # The response to an earlier try may have been lost; its object has all the parts.
            found = await self.stat(key)
            if found is not None and found[0] == sum(part.size for part in parts):
                return
        self._check(response, "POST", key)

    async def abort_parts(self, key: str, parts_id: str) -> None:
        """Remove what was sent; none is fine."""
        response = await self._send("DELETE", key, [("uploadId", parts_id)])
        if response.status != 404:
            self._check(response, "DELETE", key)

    async def list_parts(self, key: str, parts_id: str) -> list[Part]:
        """All parts that were sent. :raises BlobMissing: there is no such upload"""
        found: list[Part] = []
        after = ""
        while True:
            query = [("max-parts", str(PAGE)), ("uploadId", parts_id)]
            if after:
                query.insert(1, ("part-number-marker", after))
            page = await self._page(query, read_parts, key)
            found += page.items
            if page.after is None:
                return found
            after = page.after[0]

    async def iterate_uploads(self) -> AsyncIterator[PartsUpload]:
        """All uploads in parts that are neither complete nor aborted."""
        after: tuple[str, str] | None = None
        while True:
            query = [("max-uploads", str(PAGE)), ("prefix", self._prefix), ("uploads", "")]
            if after is not None:
                query = [("key-marker", after[0]), *query, ("upload-id-marker", after[1])]
            page = await self._page(query, read_uploads)
            for each in page.items:
                yield PartsUpload(each.key[len(self._prefix) :], each.id, each.begun_at)
            if page.after is None:
                return
            after = page.after

    # Below

    async def _page(self, query: Query, read: Callable[[bytes], Page], key: str | None = None) -> Page:
        try:
            if key is None:
                response = await self._requests.send("GET", "", sorted(query))
            else:
                response = await self._requests.send("GET", self._prefix + key, sorted(query))
                if response.status == 404 and response.code in _ABSENT:
                    raise BlobMissing(key)
            self._check(response, "GET", key or "")
            return read(response.body)
        except (Unanswered, DocumentBroken) as error:
            self._fail("GET", key or "", reason_of(error))

    async def _write_new(
        self, method: str, key: str, query: Query, headers: dict[str, str], body: Body
    ) -> WholeResponse:
        if self._conditional:
            response = await self._send(method, key, query, {**headers, "If-None-Match": "*"}, body)
            if response.status != 501:
                return response
            self._conditional = False
            log.warn("the store of storage {storage} knows no conditional writes", storage=self._storage)
        return await self._send(method, key, query, headers, body)

    async def _send(
        self, method: str, key: str, query: Query = (), headers: dict[str, str] | None = None, body: Body | None = None
    ) -> WholeResponse:
        try:
            return await self._requests.send(method, self._prefix + key, query, headers, body)
        except Unanswered as error:
            self._fail(method, key, str(error))

    def _check(self, response: WholeResponse, method: str, key: str) -> None:
        if response.status // 100 != 2:
            self._fail(method, key, f"it answered {response.status} {read_error_code(response.body)}".rstrip())

    def _fail(self, method: str, key: str, reason: str) -> NoReturn:
        log.error(
            "storage {storage} failed: {method} of {key!r}: {reason}",
            storage=self._storage,
            method=method,
            key=key,
            reason=reason,
        )
        raise BucketFailed(self._storage, f"{method} of {key!r}: {reason}")


def _size_of(incoming: Incoming, start: int) -> int | None:
    """The size of the whole object, as the response has it; None if it does not fit."""
    if incoming.status != 206:
        return incoming.length
    match = _CONTENT_RANGE.fullmatch(incoming.fields.get(b"content-range", b"").decode("latin-1"))
    return int(match[2]) if match is not None and int(match[1]) == start else None


def base64_of(sha256: str) -> str:
    """A digest in hex as base64."""
    return base64.b64encode(bytes.fromhex(sha256)).decode("ascii")
