"""Whether kept documents are those that a list of their upstream names, which is kept too."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from attrs import evolve

from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import BlobMissing
from pkgrepo.model import Repository
from pkgrepo.proxy.parts.layout import PartsDamaged

from .held import DocumentRequest, Held, Listing
from .kept_responses import KeptResponses

MOST_VERDICTS: Final = 20_000


class Listings:
    """Compares documents with their lists, once for each state of both."""

    def __init__(self, kept: KeptResponses) -> None:
        self._kept = kept
        self._verdicts: StampCache[tuple[int, str], bool | None] = StampCache(MOST_VERDICTS)

    async def listed_ms(self, repository: Repository, request: DocumentRequest) -> int:
        """When the list came that names a document; 0 if none is kept."""
        found = None if request.listing is None else await self._find(repository, request.listing)
        return 0 if found is None else found.document.fetched_ms

    async def compare(self, repository: Repository, request: DocumentRequest, held: Held, now_ms: int) -> Held:
        """A response with what the list says of it."""
        listing, document = request.listing, held.document
        found = None if listing is None or not document.found else await self._find(repository, listing)
        if found is None or listing is None:
            return held
        stamp = (found.document.fetched_ms, document.fetched_ms)
        named = None
        if now_ms < found.document.fresh_until_ms:
            place = (repository.id, document.key)
            ask = partial(self._confirms, repository, listing, found, request.name, document.meta.get("md5"))
            named = await self._verdicts.get(place, stamp, ask)
        if (stamp[0], named) == (held.listed_ms, held.named):
            return held
        return evolve(held, listed_ms=stamp[0], named=named)

    async def lists(self, repository: Repository, listing: Listing, found: Held, name: str) -> bool:
        """Whether a list names a document that has content."""
        return await self._confirms(repository, listing, found, name, listing.empty_md5) is False

    async def _find(self, repository: Repository, listing: Listing) -> Held | None:
        found = await self._kept.find_grown(repository, listing.request)
        return found if found is not None and found.document.found else None

    async def _confirms(
        self, repository: Repository, listing: Listing, found: Held, name: str, md5: str | None
    ) -> bool | None:
        with suppress(BlobMissing, PartsDamaged):  # the next reader of the list has it replaced
            if md5 is not None:
                return await self._kept.read(repository, found, partial(listing.confirms, name, md5))
        return None
