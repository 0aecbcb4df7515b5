"""
Packuments as they are served: joined from their fragments when first asked for after a change, then kept.

==============  =======================================================  ==========================================
what            is kept by                                               until
==============  =======================================================  ==========================================
fragments       the catalog, written with every change of a version      the version is gone
documents       memory, by package, form and address of the repository   the package changes, or room is needed
==============  =======================================================  ==========================================

Reading the fragments, joining and compressing them happens in threads, once however many wait.
"""

from __future__ import annotations

from typing import Final

from attrs import Factory, define, evolve

from pkgrepo.concurrency.flight import SingleFlight
from pkgrepo.errors import NotFound
from pkgrepo.http.hot import ResponseCache
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Document, Package, Repository
from pkgrepo.storage.catalog import documents, packages, tags, versions
from pkgrepo.storage.pools import Pools

from . import packument, semver
from .envelope import DEFAULT_TAG
from .indexing import manifest_of
from .packument import FULL, SHORT, Spliced, Top
from .rendering import Renderer

CACHE_SIZE: Final = 256 * 1024 * 1024  # bytes of documents in both codings
MOST_DOCUMENTS: Final = 8  # of one package: two forms under as many addresses as a server is known by

CONTENT_TYPES: Final = {FULL: packument.FULL_TYPE, SHORT: packument.SHORT_TYPE}

_Place = tuple[str, str]  # form, and address of the repository


@define
class Packument:
    """The documents of one package as of one change of it."""

    serial: int
    documents: dict[_Place, Document] = Factory(dict)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(len(each.body) + len(each.gzip or b"") for each in self.documents.values())


class Packuments:
    """The packuments of every repository; one for the process, so that memory has one bound."""

    def __init__(self, cache_size: int = CACHE_SIZE) -> None:
        self.kept: ResponseCache[Packument] = ResponseCache(cache_size)
        self._flight: SingleFlight[tuple[int, str, int, _Place], Document] = SingleFlight()
        self._renderer = Renderer()

    async def get(
        self, catalog: ICatalog, pools: Pools, repository: Repository, name: str, form: str, address: str
    ) -> Document:
        """
        A document as of now, for the repository at this address.

        :raises NotFound: there is no such package
        """
        serial: int | None = catalog.look(packages.package_serial, repository.id, name)
        if serial is None:
            raise NotFound("package", name)
        found = self.ready(repository, name, form, address, serial)
        if found is not None:
            return found
        place = (form, address)
        return await self._flight.run(
            (repository.id, name, serial, place), lambda: self._render(catalog, pools, repository, name, place)
        )

    def ready(self, repository: Repository, name: str, form: str, address: str, serial: int) -> Document | None:
        """The document if it is kept and of this serial, without waiting."""
        kept = self.kept.get((repository.id, name))
        return kept.documents.get((form, address)) if kept is not None and kept.serial == serial else None

    async def _render(
        self, catalog: ICatalog, pools: Pools, repository: Repository, name: str, place: _Place
    ) -> Document:
        form, address = place
        spliced, package = await catalog.scan(read_spliced, repository.id, name, form)
        serial = package.serial
        rendered = await pools.cpu(
            self._renderer.render, spliced, address, content_type=CONTENT_TYPES[form], serial=serial
        )
        document = evolve(rendered, modified_s=package.modified_s)
        key = (repository.id, name)
        kept = self.kept.get(key)
        if kept is None or kept.serial < serial:
            kept = Packument(serial)
        if kept.serial == serial:
            if len(kept.documents) >= MOST_DOCUMENTS:
                kept.documents.clear()
            kept.documents[place] = document
            self.kept.put(key, kept, size=kept.size)
        return document


def read_spliced(reader: Reader, repository_id: int, name: str, form: str) -> tuple[Spliced, Package]:
    """A document in its parts and the package, in one consistent view. :raises NotFound: no such package"""
    package = packages.find_package(reader, repository_id, name)
    if package is None:
        raise NotFound("package", name)
    top = read_top(reader, package, whole=form == FULL)
    times = documents.read_fragments(reader, package.id, packument.TIME)
    fragments = documents.read_fragments(reader, package.id, form)
    splice = packument.splice_full if form == FULL else packument.splice_short
    return splice(top, times, fragments), package


def read_top(reader: Reader, package: Package, *, whole: bool) -> Top:
    """What a document says above its versions; the abbreviated form needs less than the ``whole`` of it."""
    tagged = tags.tagged_versions(reader, package.id)
    top = Top(
        name=package.name,
        serial=package.serial,
        created_at=package.created_at,
        modified_at=package.updated_at,
        tags=tagged,
    )
    version = semver.find_version(tagged.get(DEFAULT_TAG, ""))
    latest = None if version is None or not whole else versions.find_version(reader, package.id, version.key)
    if latest is None:
        return top
    return Top(
        name=package.name,
        serial=package.serial,
        created_at=package.created_at,
        modified_at=package.updated_at,
        tags=tagged,
        latest=manifest_of(latest),
        readme=str(latest.meta.get("readme", "")),
        readme_filename=str(latest.meta.get("readmeFilename", "")),
        maintainers=package.meta.get("maintainers", ()),
        users=sorted(package.meta.get("users", ())),
    )
