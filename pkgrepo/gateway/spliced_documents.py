"""
Index documents: spliced from fragments at the first read after a change, then cached.

==============  =======================================================  ==========================================
what            is stored in                                             until
==============  =======================================================  ==========================================
fragments       the catalog, written with every change of a version      the version is gone
documents       memory, by package, form and address of the repository   the package changes, or room is needed
==============  =======================================================  ==========================================

So a publish costs the same for any number of versions. Fragments are read, joined and compressed in threads, once for
all requests that wait (single flight).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import Factory, define, evolve

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import existing
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Document, Package, Repository
from pkgrepo.repositories.publish.splicing import Renderer, Spliced
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.pools import Pools

MOST_DOCUMENTS: Final = 8  # of one package: its forms, under each address of the server

ReadSpliced = Callable[[Reader, int, str, str], tuple[Spliced, Package]]  # from repository, package's key and form

_Place = tuple[str, str]  # form, and address of the repository


@define
class CachedDocuments:
    """The documents of one package at one serial."""

    serial: int
    documents: dict[_Place, Document] = Factory(dict)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(len(each.body) + len(each.gzip or b"") + len(each.zstd or b"") for each in self.documents.values())


class SplicedDocuments:
    """
    The documents of one format in all repositories, in one cache per process.

    ``read`` returns the fragments of one form of a package's document and the package, from one snapshot, or raises
    NotFound. ``content_types`` are by form. With ``zstd`` documents are compressed with zstd, too. ``kept`` is the
    cache.
    """

    def __init__(
        self, read: ReadSpliced, content_types: Mapping[str, str], *, cache_size: int, zstd: bool = False
    ) -> None:
        self._read = read
        self._content_types = content_types
        self._zstd = zstd
        self.kept: ResponseCache[CachedDocuments] = ResponseCache(cache_size)
        self._flight: SingleFlight[tuple[int, str, int, _Place], Document] = SingleFlight()
        self._renderer = Renderer()

    async def get(
        self, catalog: ICatalog, pools: Pools, repository: Repository, name: str, form: str, address: str
    ) -> Document:
        """
        The present document, for the repository at this address.

        :raises NotFound: there is no such package
        """
        serial: int = existing(await catalog.look(packages.package_serial, repository.id, name), "package", name)
        found = self.ready(repository, name, form, address, serial)
        if found is not None:
            return found
        place = (form, address)
        return await self._flight.run(
            (repository.id, name, serial, place), lambda: self._render(catalog, pools, repository, name, place)
        )

    def ready(self, repository: Repository, name: str, form: str, address: str, serial: int) -> Document | None:
        """The document if it is cached and of this serial, without waiting."""
        kept = self.kept.get((repository.id, name))
        return kept.documents.get((form, address)) if kept is not None and kept.serial == serial else None

    async def _render(
        self, catalog: ICatalog, pools: Pools, repository: Repository, name: str, place: _Place
    ) -> Document:
        form, address = place
        spliced, package = await catalog.scan(self._read, repository.id, name, form)
        serial = package.serial
        rendered = await pools.cpu(
            self._renderer.render,
            spliced,
            address,
            content_type=self._content_types[form],
            serial=serial,
            zstd=self._zstd,
        )
        document = evolve(rendered, modified_s=package.modified_s)
        key = (repository.id, name)
        kept = self.kept.get(key)
        if kept is None or kept.serial < serial:
            kept = CachedDocuments(serial)
        if kept.serial == serial:
            if len(kept.documents) >= MOST_DOCUMENTS:
                kept.documents.clear()
            kept.documents[place] = document
            self.kept.put(key, kept, size=kept.size)
        return document
