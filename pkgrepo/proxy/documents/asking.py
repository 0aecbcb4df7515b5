"""One question to one route: the conditional request, and what is made of the answer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from attrs import frozen

from pkgrepo import __version__
from pkgrepo.errors import BlobMissing, Invalid, TooLarge, UpstreamFailed
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.proxy.parts.normalising import Normaliser
from pkgrepo.proxy.parts.values import Context
from pkgrepo.proxy.routes import Route
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages.upstream_documents import UpstreamDocument

from .held import DocumentRequest

ABSENT = (404, 410)

OpenPrevious = Callable[[], Awaitable[int | None]]


@frozen
class Confirmed:
    """The route says that its earlier answer is the present one; these are the validators for the next time."""

    etag: str | None
    last_modified: str | None


@frozen
class Received:
    """
    A new answer of a route: its final URL, validators, and sha256 (hex).

    Its ``parts`` are ``staged``; ``content`` are their bytes, or a descriptor if they are many. Whoever gets this
    closes that and ``stack``, which removes the parts if they were not claimed.
    """

    url: str
    etag: str | None
    last_modified: str | None
    source: str
    parts: BlobInfo
    content: int | bytes
    staged: Staged
    stack: AsyncExitStack


class Asker:
    """Asks the routes of all proxy repositories."""

    def __init__(self, *, publisher: Publisher, clock: Clock, upstreams: Upstreams, normaliser: Normaliser) -> None:
        self._publisher = publisher
        self._clock = clock
        self._upstreams = upstreams
        self._normaliser = normaliser

    async def ask(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        *,
        old: UpstreamDocument | None,
        open_previous: OpenPrevious,
    ) -> Confirmed | Received | None:
        """
        The answer of a route; None if it does not have it.

        ``old`` is its earlier answer, which it may confirm. ``open_previous`` opens the parts of the answer that is
        replaced, of whatever route, for the times at which versions were first seen; None if there are none.

        :raises UpstreamFailed: or C{NormalisingFailed}, C{StorageFull}, C{StorageFailed}: there is no usable answer now
        """
        if old is not None and old.meta.get("release") != __version__:
            old = None  # another release of the program may have normalised it differently
        try:
            return await self._ask(repository, route, request, old, open_previous)
        except Invalid as error:
            raise UpstreamFailed(route.name, str(error)) from error

    async def _ask(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        old: UpstreamDocument | None,
        open_previous: OpenPrevious,
    ) -> Confirmed | Received | None:
        upstream = self._upstreams.of(repository.id, route)
        headers = {"Accept": request.accept}
        if old is not None and old.etag:
            headers["If-None-Match"] = old.etag
        if old is not None and old.last_modified:
            headers["If-Modified-Since"] = old.last_modified
        for url in request.urls(route.url):
            async with upstream.open("GET", url, headers, decode=True) as response:
                if response.status == 304 and old is not None:
                    return Confirmed(old.etag, old.last_modified)
                if response.status in ABSENT:
                    continue
                if response.status != 200:
                    raise UpstreamFailed(route.name, f"it answered {response.status}")
                return await self._receive(repository, route, request, response, old, open_previous)
        return None

    async def _receive(
        self,
        repository: Repository,
        route: Route,
        request: DocumentRequest,
        response: IUpstreamResponse,
        old: UpstreamDocument | None,
        open_previous: OpenPrevious,
    ) -> Confirmed | Received:
        etag, modified = response.headers.get("etag"), response.headers.get("last-modified")
        content_type = response.headers.get("content-type") or ""
        previous = await open_previous()
        try:
            async with AsyncExitStack() as stack:
                staged = await stack.enter_async_context(self._publisher.stage(repository))
                outcome = await self._normaliser.run(
                    response.chunks(),
                    request.normaliser,
                    Context(request.name, response.url, content_type),
                    staged,
                    now_ms=self._clock.now_ms(),
                    previous=previous,
                    known_sha256=None if old is None else old.source,
                )
                if not response.framed and "html" in content_type:
                    # JSON that was cut off does not parse, but a page lacks its last links only.
                    raise UpstreamFailed(route.name, "it sent a page of unknown length, which may be cut off")
                if outcome.parts is None:
                    return Confirmed(etag, modified)
                content = staged.content(outcome.parts)
                if content is None:
                    raise BlobMissing(request.key)
                return Received(
                    url=response.url,
                    etag=etag,
                    last_modified=modified,
                    source=outcome.sha256,
                    parts=outcome.parts,
                    content=content,
                    staged=staged,
                    stack=stack.pop_all(),
                )
        except (Invalid, TooLarge) as error:
            raise UpstreamFailed(route.name, f"it sent a document that cannot be used: {error}") from error
        finally:
            if previous is not None:
                os.close(previous)
