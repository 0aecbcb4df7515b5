"""
What is kept in memory of answers that were given.

An entry is what a format's handler once answered, with a query that tells whether it still holds.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import Factory, define

from pkgrepo.http.answering.prepared import PreparedAnswer
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import NOT_NOW, ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.downloads import Item

VARIANTS = 32  # spellings of the negotiating header fields that are remembered for one entry
ENTRY_BYTES = 2048  # of memory that an entry takes beside its address and its documents, roughly
VARIANT_BYTES = 2048  # and each variant of it, beside its spelling


@define
class Entry:
    """
    One resource in its variants.

    ``repository`` is the repository as it was configured then: answers say who may keep them. ``package`` is the key
    that token globs are held against. ``fresh`` is a query that tells whether what is kept still holds. ``negotiate``
    makes the answer for a request; ``item`` is set when sending it counts as a download. ``by_address`` says that
    answers differ by the address that the client used, for they hold absolute links. From ``dated_at`` on (Unix
    seconds; 0 when it has passed) they tell a date that would have been in the future before: they are made anew then.
    ``size`` is the bytes that it takes without the variants.
    """

    repository: Repository
    package: str | None
    negotiate: Callable[[Request], Answer | None]
    fresh: Callable[[Reader], bool]
    generation: int
    item: Item | None = None
    by_address: bool = False
    heads: bool = True
    dated_at: int = 0
    size: int = 0
    variants: dict[tuple[bytes | None, bytes | None, str], PreparedAnswer] = Factory(dict)


class HotAnswers:
    """Remembers answers of repositories by the exact target of the request."""

    def __init__(self, catalog: ICatalog, cache: ResponseCache[Entry], clock: Clock) -> None:
        self._catalog = catalog
        self._cache = cache
        self._clock = clock

    def keep(
        self,
        request: Request,
        repository: Repository,
        *,
        package: str | None,
        negotiate: Callable[[Request], Answer | None],
        fresh: Callable[[Reader], bool],
        size: int,
        generation: int,
        item: Item | None = None,
        by_address: bool = False,
        heads: bool = True,
        dated_at: int = 0,
    ) -> None:
        """
        Remember how this request is answered; ``generation`` is the catalog's from before the data was read.

        Requests with a query are not remembered, since anybody can make up as many as they like. ``size`` is the
        bytes of the documents that it holds for one address; spellings of address and header fields, of which anybody
        can make up as many as they like too, are counted here. Without ``heads`` a HEAD always goes to the handler,
        which has more to do than to answer: it promises that the client need not send what is there.
        """
        if request.raw_query:
            return
        entry = Entry(
            repository=repository,
            package=package,
            negotiate=negotiate,
            fresh=fresh,
            generation=generation,
            item=item,
            by_address=by_address,
            heads=heads,
            dated_at=dated_at,
            size=size + len(request.uri) + ENTRY_BYTES,
        )
        self._cache.put((repository.id, request.uri), entry, size=entry.size)

    def find(self, request: Request, repository: Repository, generation: int) -> Entry | None:
        """
        The entry for this request, if it still holds at this generation and for this configuration.

        Where the catalog does not answer at once, an entry of an older generation is not given, and stays: the handler
        that answers in its place keeps its own answer for the same request.
        """
        key = (repository.id, request.uri)
        entry = self._cache.get(key)
        if entry is None:
            return None
        # A changed configuration comes as a new value, which every process reads for itself.
        current = entry.repository is repository
        if current and entry.generation == generation:
            return entry
        fresh = current and self._catalog.peek(entry.fresh)
        if fresh is NOT_NOW:
            return None
        if not fresh:
            self._cache.drop(key)
            return None
        entry.generation = generation
        return entry

    def choose(self, entry: Entry, request: Request) -> PreparedAnswer | None:
        """The variant of an entry that this request gets, or None when only its handler can tell."""
        if request.method == b"HEAD" and not entry.heads:
            return None
        if entry.dated_at and entry.dated_at * 1000 <= self._clock.now_ms():
            entry.variants.clear()
            entry.dated_at = 0
        address = request.base_url if entry.by_address else ""
        wanted = (request.header(b"accept"), request.header(b"accept-encoding"), address)
        prepared = entry.variants.get(wanted)
        if prepared is None:
            answer = entry.negotiate(request)
            if answer is None:
                return None
            prepared = PreparedAnswer(answer)
            if len(entry.variants) >= VARIANTS:
                entry.variants.clear()
            entry.variants[wanted] = prepared
            if _size(entry) > self._cache.largest:
                entry.variants = {wanted: prepared}
            self._cache.put((entry.repository.id, request.uri), entry, size=_size(entry))
        return prepared


def _size(entry: Entry) -> int:
    """The bytes that an entry takes with its variants: its documents once for each address, and what is spelled."""
    size = entry.size * len({address for _, _, address in entry.variants})
    for accept, encoding, address in entry.variants:
        size += VARIANT_BYTES + len(accept or b"") + len(encoding or b"") + len(address)
    return size
