"""
Cached responses of repository reads.

An entry is made by the handler that answered a read. It has a query that tells whether it is still valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from attrs import Factory, define

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.states import AHEAD_MS
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import Item

VARIANTS = 32  # of one entry, by the header fields of content negotiation and the address
RESPONSES_BYTES = 256 * 1024 * 1024
VIEWS_BYTES = 32 * 1024 * 1024  # of the responses of all views
ENTRY_BYTES = 2048  # of an entry beside its address and its documents, roughly
VARIANT_BYTES = 2048  # of a variant beside its header fields, roughly


@define
class CachedResponse:
    """
    One resource in its variants.

    ``repository`` is the repository as it was configured then, which decides who may cache the response. ``package`` is
    the key that token globs are matched with. ``negotiate`` makes the response for a request. ``fresh`` is a query
    that tells whether the entry is still valid; it is asked when ``generation``, which is the catalog's from before the
    data was read, is not the present one.

    ``size`` is the bytes of the documents for one address, without variants. ``item`` is what a whole response counts
    as a download of. ``by_address`` says that responses hold absolute links, and so differ by the address that the
    client used. Without ``serves_head`` a HEAD always goes to the handler, which then also leases what is there to
    the client. At ``expires_at`` (Unix seconds; 0 for never) the variants are made again, with a
    Last-Modified that was in the future until then.

    At ``ends_s`` (Unix seconds; 0 for never) the handler is asked again, since an upstream may have something newer;
    before that too, by a client that wants it, and if the clock was set back since ``put_ms``.
    """

    repository: Repository
    package: str | None
    negotiate: Callable[[Request], Response | None]
    fresh: Callable[[Reader], bool]
    generation: int
    size: int
    item: Item | None = None
    by_address: bool = False
    serves_head: bool = True
    expires_at: int = 0
    ends_s: int = 0
    put_ms: int = 0
    variants: dict[tuple[bytes | None, bytes | None, str], PreparedResponse] = Factory(dict)


@define(eq=False)
class ResponseCache:
    """
    Cached responses by repository and request target.

    ``on_replace`` is called when a response replaces another one: an upstream's may do so without a commit. Responses
    of views of the past have a cache of their own: clients can make up any number of views.
    """

    _catalog: ICatalog
    _clock: Clock
    _on_replace: Callable[[], object] = lambda: None
    _cache: SizedCache[CachedResponse] = Factory(lambda: SizedCache(RESPONSES_BYTES))
    _of_views: SizedCache[CachedResponse] = Factory(lambda: SizedCache(VIEWS_BYTES))

    def caches(self) -> Mapping[str, SizedCache[Any]]:
        """Both caches, by the names that metrics show."""
        return {"answers": self._cache, "answers of views": self._of_views}

    def put(self, request: Request, entry: CachedResponse) -> None:
        """
        Cache how this request is answered, unless it has a query: clients can make up any number of queries.

        They can also make up any number of spellings of the address and of header fields, so these count towards the
        size of the entry.
        """
        if request.raw_query:
            return
        entry.size += len(request.uri) + ENTRY_BYTES
        entry.put_ms = self._clock.now_ms()
        if self._cache_of(entry.repository).put((entry.repository.id, request.uri), entry, size=entry.size):
            self._on_replace()

    def put_response(self, request: Request, repository: Repository, response: Response, **rest: Any) -> None:
        """Cache a response that is the same for all clients; ``rest`` are further fields of L{CachedResponse}."""
        size = len(response.body) if isinstance(response.body, bytes) else 0
        self.put(request, CachedResponse(repository, negotiate=lambda _: response, size=size, **rest))

    def find(self, request: Request, repository: Repository) -> CachedResponse | None:
        """
        The entry of this request, if it is valid now and for this configuration.

        None also if the entry is of an older generation and the catalog does not answer at once. It stays then, until
        the handler that answers instead puts its own answer for the same request.
        """
        key = (repository.id, request.uri)
        cache = self._cache_of(repository)
        entry = cache.get(key)
        if entry is None:
            return None
        if entry.ends_s and (
            request.revalidates or not entry.put_ms - AHEAD_MS <= self._clock.now_ms() < entry.ends_s * 1000
        ):
            return None
        # The registry replaces the value of a repository whose configuration changes.
        current = entry.repository is repository
        generation = self._catalog.generation()
        if current and entry.generation == generation:
            return entry
        fresh = current and self._catalog.peek(entry.fresh)
        if fresh is NOT_NOW:
            return None
        if not fresh:
            cache.pop(key)
            return None
        entry.generation = generation
        return entry

    def seconds_left(self, entry: CachedResponse) -> float:
        """For how many seconds the variants of an entry stay as they are, as far as that is known; else infinite."""
        ends = [each for each in (entry.expires_at, entry.ends_s) if each]
        return min(ends) - self._clock.now_ms() / 1000 if ends else inf

    def variant(self, entry: CachedResponse, request: Request) -> PreparedResponse | None:
        """The variant of an entry for this request, or None if its handler must answer."""
        if request.method == b"HEAD" and not entry.serves_head:
            return None
        if entry.expires_at and entry.expires_at * 1000 <= self._clock.now_ms():
            entry.variants.clear()
            entry.expires_at = 0
        address = _address(request) if entry.by_address else ""
        wanted = (request.header(b"accept"), request.header(b"accept-encoding"), address)
        prepared = entry.variants.get(wanted)
        if prepared is None:
            response = entry.negotiate(request)
            if response is None:
                return None
            prepared = PreparedResponse(response)
            if len(entry.variants) >= VARIANTS:
                entry.variants.clear()
            entry.variants[wanted] = prepared
            cache = self._cache_of(entry.repository)
            if _size(entry) > cache.largest:
                entry.variants = {wanted: prepared}
            cache.put((entry.repository.id, request.uri), entry, size=_size(entry))
        return prepared

    def _cache_of(self, repository: Repository) -> SizedCache[CachedResponse]:
        return self._cache if repository.view is None else self._of_views


def _address(request: Request) -> str:
    """What the absolute links in a response depend on: two requests with one address get the same links."""
    base = None if request.entry is None else request.entry.base
    return request.base_url if base is None else f"{request.base_url} {base}"


def _size(entry: CachedResponse) -> int:
    """The bytes of an entry with its variants: its documents for each address, and the header fields."""
    size = entry.size * len({address for _, _, address in entry.variants})
    for accept, encoding, address in entry.variants:
        size += VARIANT_BYTES + len(accept or b"") + len(encoding or b"") + len(address)
    return size
