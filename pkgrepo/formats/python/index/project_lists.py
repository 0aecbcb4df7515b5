"""
The list of all projects of a hosted repository, in memory in chunks of names, which are rendered and compressed apart.

After a new project is published, the next read renders one chunk of a few hundred names again and joins it with the
others. Changes are read from the catalog's events, so that those made by other processes are included.

==========  ===========================================================  ============================================
state       meaning                                                      next state comes with
==========  ===========================================================  ============================================
none        the list was never read                                      a read, which reads all names
current     the document has the catalog's serial of names               a project added, removed or renamed
stale       the document has an older serial                             a read, which waits for the update
==========  ===========================================================  ============================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from attrs import Factory, define

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Document, Repository
from pkgrepo.repositories.publish.splicing import Renderer
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.gil import GilReleaser
from pkgrepo.storage.pools import Pools

from . import pages
from .indexing import CONTENT_TYPES, is_quarantined
from .pages import HTML_PAGE, JSON_PAGE

CHUNK: Final = 256  # names rendered together; a chunk of twice as many is split
GROUP_SIZE: Final = 64 * 1024  # bytes compressed together, about 2 ms
MOST_EVENTS: Final = 5000  # applied one by one; after more, all names are read again
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of compressed chunks of all repositories
MOST_LISTS: Final = 64  # repositories whose lists are kept

_RENDER: Final[dict[str, Callable[[Iterable[str]], bytes]]] = {
    JSON_PAGE: pages.listed_json,
    HTML_PAGE: pages.listed_html,
}
_SPLICE: Final = {JSON_PAGE: pages.project_list_json, HTML_PAGE: pages.project_list_html}


@define(eq=False)
class _Chunk:
    names: dict[str, str]  # by key, in order
    rendered: dict[str, bytes] = Factory(dict)


class NameList:
    """Names ordered by key, in chunks; an update replaces one chunk."""

    def __init__(self, names: Sequence[tuple[str, str]] = ()) -> None:
        self._chunks = [_Chunk(dict(names[at : at + CHUNK])) for at in range(0, len(names), CHUNK)] or [_Chunk({})]
        self._firsts = [next(iter(chunk.names), "") for chunk in self._chunks]

    def put(self, key: str, name: str) -> None:
        """Add a name, or change its spelling."""
        at = self._at(key)
        chunk = self._chunks[at]
        if chunk.names.get(key) == name:
            return
        names = sorted({**chunk.names, key: name}.items())
        parts = [names] if len(names) < 2 * CHUNK else [names[:CHUNK], names[CHUNK:]]
        self._chunks[at : at + 1] = [_Chunk(dict(part)) for part in parts]
        self._firsts[at : at + 1] = [part[0][0] for part in parts]

    def remove(self, key: str) -> None:
        """Remove a name; no error if it is absent."""
        at = self._at(key)
        names = dict(self._chunks[at].names)
        if names.pop(key, None) is None:
            return
        if names or len(self._chunks) == 1:
            self._chunks[at], self._firsts[at] = _Chunk(names), next(iter(names), "")
        else:
            del self._chunks[at], self._firsts[at]

    def fragments(self, kind: str) -> list[bytes]:
        """The rendered chunks for a document of this kind; only changed chunks are rendered again."""
        found: list[bytes] = []
        gil = GilReleaser()
        for chunk in self._chunks:
            if kind not in chunk.rendered:
                chunk.rendered[kind] = _RENDER[kind](chunk.names.values())
                gil.release_if_due()
            if chunk.names:
                found.append(chunk.rendered[kind])
        return found

    def _at(self, key: str) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)


@define(eq=False)
class _List:
    names: NameList
    seq: int  # of the last event applied
    serial: int = -1  # of the names
    documents: dict[str, Document] = Factory(dict)


class ProjectLists:
    """The project lists of all hosted repositories, one instance per process."""

    def __init__(self) -> None:
        self._lists: dict[int, _List] = {}
        self._flight: SingleFlight[int, None] = SingleFlight()
        self._renderer = Renderer(CACHE_SIZE)

    def ready(self, reader: Reader, repository: Repository, kind: str) -> Document | None:
        """The list in this form from memory if it is current, else None."""
        return self._of_serial(repository, kind, repositories.names_serial(reader, repository.id))

    async def get(self, catalog: ICatalog, pools: Pools, repository: Repository, kind: str) -> Document:
        """The current list in this form; updates it first if needed."""
        serial: int = await catalog.look(repositories.names_serial, repository.id)
        while (document := self._of_serial(repository, kind, serial)) is None:
            await self._flight.run(repository.id, lambda: self._update(catalog, pools, repository.id, kind))
        return document

    def _of_serial(self, repository: Repository, kind: str, serial: int) -> Document | None:
        kept = self._lists.get(repository.id)
        document = None if kept is None else kept.documents.get(kind)
        return document if document is not None and document.serial >= serial else None

    async def _update(self, catalog: ICatalog, pools: Pools, repository_id: int, kind: str) -> None:
        kept = await catalog.scan(_apply_events, repository_id, self._lists.get(repository_id))
        kept.documents[kind] = await pools.cpu(self._render, kept, kind)
        self._lists.pop(repository_id, None)
        self._lists[repository_id] = kept
        if len(self._lists) > MOST_LISTS:
            del self._lists[next(iter(self._lists))]

    def _render(self, kept: _List, kind: str) -> Document:
        return render_list(self._renderer, kept.names, kept.serial, kind)


def render_list(renderer: Renderer, names: NameList, serial: int, kind: str) -> Document:
    """A list of projects in one form. Blocks: a second for 600,000 names."""
    spliced = _SPLICE[kind](serial, names.fragments(kind))
    return renderer.render(
        spliced, "", content_type=CONTENT_TYPES[kind], serial=serial, zstd=True, group_size=GROUP_SIZE
    )


def _apply_events(reader: Reader, repository_id: int, kept: _List | None) -> _List:
    """The list updated to the current serial: ``kept`` changed in place, or a new one read from all names."""
    serial = repositories.names_serial(reader, repository_id)
    if kept is not None and kept.serial == serial:
        return kept
    changed, seq = list[str](), 0
    if kept is not None:
        changed, seq = events.changed_packages(reader, repository_id, kept.seq, MOST_EVENTS)
    if kept is None or seq < events.last_seq_of_repository(reader, repository_id):
        names = all_names(reader, repository_id)
        return _List(NameList(names), events.last_seq_of_repository(reader, repository_id), serial)
    gil = GilReleaser()
    for key in changed:
        package = packages.find_package(reader, repository_id, key)
        if package is None or is_quarantined(package):
            kept.names.remove(key)
        else:
            kept.names.put(key, package.name)
        gil.release_if_due()
    kept.seq, kept.serial = seq, serial
    return kept


def all_names(reader: Reader, repository_id: int) -> list[tuple[str, str]]:
    """Keys and names of all projects that are not quarantined (PEP 792), by key."""
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    return [(key, name) for key, name in packages.package_names(reader, repository_id) if key not in hidden]
