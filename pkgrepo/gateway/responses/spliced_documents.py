"""
Index documents: spliced from fragments at the first read after a change, then cached.

==============  =======================================================  ==========================================
what            is stored in                                             until
==============  =======================================================  ==========================================
fragments       the catalog, written with every change of a version; of  the version is gone; the upstream's
                an upstream's package a blob, made of its document       document changes
documents       memory, by package, form and address of the repository   the package changes, or room is needed
==============  =======================================================  ==========================================

So a publish costs the same for any number of versions. Fragments are read, joined and compressed in threads, once for
all requests that wait (single flight).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.gateway.responses.view_turns import ViewTurns
from pkgrepo.model import Document
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.publish.splicing import LARGE, Renderer

ENTRY_BYTES: Final = 2048  # of a document beside its bytes, roughly
SMALL: Final = 16 * 1024  # bytes of a document that is rendered at once: 100 us, as a thread costs
MOST_DOCUMENTS: Final = 8  # of one package: its forms, under each address of the server

_Place = tuple[str, str]  # form, and address of the repository


@define
class CachedDocuments:
    """The documents of one package in one state; for ``refused`` see L{PackageState}."""

    stamp: Hashable
    documents: dict[_Place, Document] = Factory(dict)
    refused: RuleRefused | None = None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(
            ENTRY_BYTES + len(each.body) + len(each.gzip or b"") + len(each.zstd or b"")
            for each in self.documents.values()
        )


@frozen(eq=False)
class Rendered:
    """A document, and the state of the package that it shows."""

    document: Document
    state: PackageState


class SplicedDocuments:
    """
    The documents of one format in all repositories, in one cache per process.

    ``content_types`` are by form. With ``zstd`` documents are compressed with zstd, too. ``algorithms`` are
    those of their digests. ``large`` is that of the L{Renderer}.
    """

    def __init__(
        self,
        content_types: Mapping[str, str],
        *,
        cache_size: int,
        zstd: bool = False,
        algorithms: Sequence[str] = (),
        large: int = LARGE,
    ) -> None:
        self._content_types = content_types
        self._zstd = zstd
        self._algorithms = algorithms
        self._kept: SizedCache[CachedDocuments] = SizedCache(cache_size)
        # Clients can make up any number of views, which must not take the place of other documents.
        self._of_views: SizedCache[CachedDocuments] = SizedCache(cache_size // 8)
        self._flight: SingleFlight[tuple[Hashable, Hashable, _Place], Rendered] = SingleFlight()
        self._renderer = Renderer(large=large)

    def caches(self, name: str) -> Mapping[str, SizedCache[Any]]:
        """The caches of documents, of those of views and of compressed groups, by the names that metrics show."""
        return {name: self._kept, f"{name} of views": self._of_views, f"groups of {name}": self._renderer.cache}

    async def get(self, pools: Pools, turns: ViewTurns, state: PackageState, form: str, address: str) -> Rendered:
        """
        The document of a package in this state or a newer one, for the repository at this address.

        :raises NotFound: the package was removed meanwhile; :raises Refusal: see L{ViewTurns.make}
        """
        found = self.ready(state, form, address)
        if found is not None:
            kept = self._cache_of(state).get(_key_of(state))
            refused = None if kept is None else kept.refused
            return Rendered(found, state if refused is None else evolve(state, refused=refused))
        place = (form, address)
        render = partial(self._render, pools, state, place)
        return await self._flight.run(
            (_key_of(state), state.stamp, place), lambda: turns.make(state.repository, render, package=state.key)
        )

    def ready(self, state: PackageState, form: str, address: str) -> Document | None:
        """The document if it is cached and of this state, without waiting; see ``get``."""
        kept = self._cache_of(state).get(_key_of(state))
        return kept.documents.get((form, address)) if kept is not None and kept.stamp == state.stamp else None

    async def _render(self, pools: Pools, state: PackageState, place: _Place) -> Rendered:
        form, address = place
        spliced, state = await state.load(form)
        render = partial(
            self._renderer.render,
            spliced,
            address,
            content_type=self._content_types[form],
            serial=state.serial,
            zstd=self._zstd,
            algorithms=self._algorithms,
        )
        rendered = render() if spliced.size <= SMALL else await pools.cpu(render)
        document = evolve(rendered, modified_s=state.modified_s)
        cache, key = self._cache_of(state), _key_of(state)
        kept = cache.get(key)
        if kept is None or kept.stamp != state.stamp:
            kept = CachedDocuments(state.stamp)
        if len(kept.documents) >= MOST_DOCUMENTS:
            kept.documents.clear()
        kept.documents[place], kept.refused = document, state.refused
        cache.put(key, kept, size=kept.size)
        return Rendered(document, state)

    def _cache_of(self, state: PackageState) -> SizedCache[CachedDocuments]:
        return self._kept if state.repository.view is None else self._of_views


def _key_of(state: PackageState) -> Hashable:
    view = state.repository.view
    return state.repository.id, state.key, None if view is None else view.at_ms
