"""
One question to one route: the conditional request, and what is made of the response.

Of a growing document the bytes behind those that are kept are asked for first, and verified together with those. The
digests of what is kept are in memory from one time to the next; after a start they are computed anew, in a thread. If
the bytes do not fit, the whole document is asked for.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Final

from attrs import Factory, evolve, frozen

from pkgrepo import __version__
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import BlobMissing, Invalid, TooLarge, UpstreamFailed
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import Repository
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.jobs import Job, normalise
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.parts.normalising import Normaliser, Outcome
from pkgrepo.proxy.parts.values import Context
from pkgrepo.proxy.transfers.download import is_page, size_of_whole
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.limits import MOST_TRIES, TRIES_WITH_OLD
from pkgrepo.proxy.upstream.response import BadCoding, Inflater
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .kept import KeptResponses
from .questions import ABSENT, Composition, DocumentRequest, Growing, Held, Received, Sources

NOT_ALLOWED: Final = 405
PIECE: Final = 256 * 1024  # bytes of a document that was made here, as chunks of responses are
_GZIP: Final = b"\x1f\x8b"
MOST_TAIL: Final = 1024 * 1024  # bytes appended, which are written anew each time; then the whole is fetched
MOST_SUMS: Final = 64  # documents whose digests are kept

_SHA256: Final = re.compile(r"(?:^|[,\s])sha-256=[:\"]?([A-Za-z0-9+/]{43}=)", re.IGNORECASE)
_MD5: Final = re.compile(r'"([0-9a-f]{32})"')


@frozen
class Confirmed:
    """The route says that its earlier response is the present one; these are the validators for the next time."""

    etag: str | None
    last_modified: str | None


@frozen(eq=False)
class Question:
    """
    A question to one route, whose earlier response is ``old``, which it may confirm.

    ``before`` is the response that is replaced, of whatever route: it has the times at which versions were first seen.
    ``service`` is what the route says of itself, if the request asks for that.
    """

    repository: Repository
    route: Route
    request: DocumentRequest
    old: UpstreamDocument | None
    before: Held | None
    service: dict[str, Any] = Factory(dict)

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of a conditional request."""
        headers = {"Accept": self.request.accept}
        if self.old is not None and self.old.etag:
            headers["If-None-Match"] = self.old.etag
        if self.old is not None and self.old.last_modified:
            headers["If-Modified-Since"] = self.old.last_modified
        return headers

    def current(self) -> Question:
        """The question without an earlier response that another release, or for another service, has normalised."""
        made_for = (__version__, self.service)
        if self.old is None or (self.old.meta.get("release"), self.old.meta.get("service", {})) == made_for:
            return self
        return evolve(self, old=None)


class Asker:
    """Asks the routes of all proxy repositories."""

    def __init__(
        self, *, kept: KeptResponses, content: ContentWriter, clock: Clock, upstreams: Upstreams, normaliser: Normaliser
    ) -> None:
        self._kept = kept
        self._content = content
        self._clock = clock
        self._upstreams = upstreams
        self._normaliser = normaliser
        self._sums: Lru[str, Sums] = Lru(MOST_SUMS)  # of the documents that grew last, by their sha256 (hex)

    async def ask(self, question: Question) -> Confirmed | Received | None:
        """
        The response of a route; None if it does not have it.

        :raises UpstreamFailed: or ``NormalisingFailed``, ``StorageFull``, ``StorageFailed``: there is no usable answer
            now
        """
        question = question.current()
        try:
            if question.old is not None and question.request.growing is not None:
                response = await self._ask_for_rest(question, question.old, question.request.growing)
                if response is not None:
                    return response
            return await self._ask(question)
        except Invalid as error:
            raise UpstreamFailed(question.route.name, str(error)) from error

    async def make(self, question: Question, composition: Composition, sources: Sources) -> Confirmed | Received | None:
        """
        The document as it is made of others of a route; None if the route does not have these. See ``ask``.

        :raises UpstreamFailed: or what ``ask`` raises
        """
        request = question.request
        url = next(iter(request.urls(question.route.url)))
        try:
            made = await composition.make(sources)
            if made is None:
                return None
            context = Context(request.name, url, "", url)
            return await self._keep(question.current(), _pieces(made), context, normaliser=composition.normaliser)
        except (Invalid, TooLarge) as error:
            sentence = f"{request.name} cannot be made of what it sent: {error}"
            raise UpstreamFailed(question.route.name, sentence) from error

    async def _ask(self, question: Question) -> Confirmed | Received | None:
        route, request, old = question.route, question.request, question.old
        upstream, headers = self._upstreams.of(question.repository.id, route), question.headers
        tries, key = MOST_TRIES if old is None else TRIES_WITH_OLD, request.package_key
        for number, url in enumerate(request.urls(route.url)):
            async with upstream.open(
                "GET", url, headers, decode=True, kind=request.kind, subject=key, tries=tries
            ) as response:
                if response.status == 304 and old is not None:
                    return Confirmed(old.etag, old.last_modified)
                # Gitea takes uploads (POST) at the address above its simple index, of which it has no list.
                if response.status in ABSENT or (number and response.status == NOT_ALLOWED):
                    continue
                if response.status != 200:
                    raise UpstreamFailed(route.name, f"it answered {response.status}")
                return await self._receive(question, response, url)
        return None

    async def _ask_for_rest(
        self, question: Question, old: UpstreamDocument, growing: Growing
    ) -> Confirmed | Received | None:
        """
        What was appended since the earlier response, or the whole if the route sends that.

        Returns None if it can neither be had nor verified: ask for the whole.
        """
        request, size = question.request, old.meta.get("bytes", 0)
        if not size:
            return None
        upstream, headers = self._upstreams.of(question.repository.id, question.route), question.headers
        # One byte that is known, so that the range is never empty; not compressed, as it is a range of the plain form.
        headers["Range"] = f"bytes={size - 1}-"
        url, key = next(iter(request.urls(question.route.url))), request.package_key
        async with upstream.open("GET", url, headers, kind=request.kind, subject=key, tries=TRIES_WITH_OLD) as response:
            if response.status == 304:
                return Confirmed(old.etag, old.last_modified)
            if response.status == 200:
                return await self._receive(question, response, url)
            claims = Claims.of(response) if response.status == 206 else None
            rest = None if claims is None else await receive_rest(response, size)
        if claims is None or rest is None:
            return None
        context = Context(request.name, response.url, response.headers.get("content-type") or "")
        job = Job(growing.normaliser, context, self._clock.now_ms())
        append = partial(extend, self._sums.get(old.source), old.source, rest, claims, growing, job)
        assert question.before is not None, "its row is old"
        with suppress(BlobMissing, PartsDamaged):
            made: Extension | None = await self._kept.read(question.repository, question.before, append)
            if made is not None:
                self._sums.pop(old.source)
                self._sums.put(made.sums.sha256.hexdigest(), made.sums)
                return await self._stage_rest(question, old, response, made, size + len(rest))
        return None

    async def _stage_rest(
        self, question: Question, old: UpstreamDocument, response: IUpstreamResponse, made: Extension, size: int
    ) -> Confirmed | Received:
        etag, modified = response.headers.get("etag"), response.headers.get("last-modified")
        source = made.sums.sha256.hexdigest()
        if source == old.source:
            return Confirmed(etag, modified)
        async with AsyncExitStack() as stack:
            staged = await stack.enter_async_context(self._content.stage(question.repository))
            parts = await staged.store(made.parts)
            return Received(
                key=question.request.tail_key,
                meta={"bytes": size, "base": old.meta.get("base") or old.source},
                url=response.url,
                etag=etag,
                last_modified=modified,
                source=source,
                parts=parts,
                content=staged.content(parts),
                staged=staged,
                stack=stack.pop_all(),
            )

    async def _receive(self, question: Question, response: IUpstreamResponse, url: str) -> Confirmed | Received:
        request = question.request
        content_type = response.headers.get("content-type") or ""
        context = Context(request.name, response.url, content_type, url, question.service)
        chunks = _inflated(response.chunks()) if request.packed else response.chunks()
        try:
            return await self._keep(question, chunks, context, response=response)
        except (Invalid, TooLarge) as error:
            sent = "web page" if is_page(response) else "document"
            raise UpstreamFailed(question.route.name, f"it sent a {sent} that cannot be used: {error}") from error

    async def _keep(
        self,
        question: Question,
        chunks: AsyncIterable[bytes],
        context: Context,
        *,
        response: IUpstreamResponse | None = None,
        normaliser: str = "",
    ) -> Confirmed | Received:
        """Normalise and stage a document: of a ``response``, or one that was made here."""
        request, old = question.request, question.old
        etag = modified = None
        if response is not None:
            etag, modified = response.headers.get("etag"), response.headers.get("last-modified")
        previous = None
        if question.before is not None:
            with suppress(BlobMissing):
                previous = await self._kept.descriptor(question.repository, question.before)
        try:
            async with AsyncExitStack() as stack:
                staged = await stack.enter_async_context(self._content.stage(question.repository))
                outcome = await self._normaliser.run(
                    chunks,
                    normaliser or request.normaliser,
                    context,
                    staged,
                    now_ms=self._clock.now_ms(),
                    previous=previous,
                    known_sha256=None if old is None else old.source,
                    algorithms=() if request.listing is None else ("md5",),
                )
                if response is not None and not response.framed and "html" in context.content_type:
                    # JSON that was cut off does not parse, but a page lacks its last links only.
                    raise Invalid("it is a page of unknown length, which may be cut off")
                if outcome.parts is None:
                    return Confirmed(etag, modified)
                return Received(
                    key=request.key,
                    meta=_meta(question, outcome) if response is not None else {},
                    url=context.url,
                    etag=etag,
                    last_modified=modified,
                    source=outcome.sha256,
                    parts=outcome.parts,
                    content=staged.content(outcome.parts),
                    staged=staged,
                    stack=stack.pop_all(),
                )
        finally:
            if previous is not None:
                os.close(previous)


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


async def _inflated(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a gzip file; a server that took it for a coding has sent them as they are."""
    inflater: Inflater | None = Inflater()
    first = True
    async for chunk in chunks:
        if first and not chunk.startswith(_GZIP):
            inflater = None
        first = False
        try:
            for piece in (chunk,) if inflater is None else inflater.feed(chunk):
                yield piece
        except BadCoding as error:
            raise Invalid(str(error)) from None
    if inflater is not None:
        try:
            inflater.end()
        except BadCoding as error:
            raise Invalid(str(error)) from None


def _meta(question: Question, outcome: Outcome) -> dict[str, Any]:
    """What is kept of a whole document for the questions that follow."""
    found: dict[str, Any] = {"service": question.service} if question.service else {}
    if question.request.growing is not None:
        found["bytes"] = outcome.size
    return found if question.request.listing is None else {**found, "md5": outcome.digests["md5"]}


@frozen
class Claims:
    """What a response says of the whole document: its sha256 (RFC 9530 and 3230), or its MD5 as a strong ETag."""

    sha256: bytes | None
    md5: str | None

    @classmethod
    def of(cls, response: IUpstreamResponse) -> Claims | None:
        """What a response says; None if it says neither."""
        fields = (response.headers.get(name) or "" for name in ("Repr-Digest", "Digest"))
        found = next((match for match in map(_SHA256.search, fields) if match), None)
        md5 = _MD5.fullmatch(response.headers.get("ETag") or "")
        if found is None and md5 is None:
            return None
        return cls(None if found is None else base64.b64decode(found[1]), None if md5 is None else md5[1])


@frozen(eq=False)
class Sums:
    """The digests of a document, as objects of ``hashlib`` that are only copied."""

    sha256: Any
    md5: Any

    @classmethod
    def begin(cls) -> Sums:
        """The sums of no bytes."""
        return cls(hashlib.sha256(), hashlib.md5(usedforsecurity=False))

    def after(self, data: bytes) -> Sums:
        """Those after more bytes."""
        sums = Sums(self.sha256.copy(), self.md5.copy())
        sums.add(data)
        return sums

    def add(self, data: bytes) -> None:
        """Go on with more bytes."""
        self.sha256.update(data)
        self.md5.update(data)

    def fulfil(self, claims: Claims) -> bool:
        """Whether the document is the one that an upstream describes."""
        if claims.sha256 is not None:
            return bool(self.sha256.digest() == claims.sha256)
        return bool(self.md5.hexdigest() == claims.md5)


@frozen(eq=False)
class Extension:
    """What was made of appended bytes: the digests of the whole, and the parts of all that was appended."""

    sums: Sums
    parts: bytes


async def receive_rest(response: IUpstreamResponse, size: int) -> bytes | None:
    """The bytes behind the first ``size`` ones, of which a 206 repeats the last; None: it sends others, or too many."""
    whole = size_of_whole(response, size - 1)
    if whole is None or whole - size > MOST_TAIL or response.headers.get("Content-Encoding"):
        return None
    return (await response.read())[1:]


def extend(
    known: Sums | None, source: str, rest: bytes, claims: Claims, growing: Growing, job: Job, *parts: PartsFile
) -> Extension | None:
    """
    Append bytes to a document that is kept in ``parts``, and has the sha256 ``source`` (hex). Blocks.

    Returns None if the result is not the document that the upstream describes, or too much was appended to the first
    parts.

    :raises Invalid: what was appended cannot be used; :raises NormalisingFailed: see L{normalise}
    """
    before = known or _compute(growing, parts)
    sums = before.after(rest)
    if before.sha256.hexdigest() != source or not sums.fulfil(claims):
        return None
    tail = b"".join(piece for each in parts[1:] for piece in growing.read(each)) + rest
    if len(tail) > MOST_TAIL:
        return None
    out = io.BytesIO()
    normalise(tail, job, None, out)
    return Extension(sums, out.getvalue())


def _compute(growing: Growing, parts: tuple[PartsFile, ...]) -> Sums:
    sums, gil = Sums.begin(), GilReleaser()
    for each in parts:
        for piece in growing.read(each):
            sums.add(piece)
            gil.release_if_due()
    return sums
