"""
The list of all projects of a repository, kept in memory in runs of names that are rendered and compressed apart.

A publish of a new project renders one run of some hundred names, and the rest is joined as it stands: whoever reads
next sees it. What changed is read from the events of the catalog, so that those of other processes count as well.

==========  ===========================================================  ============================================
state       what is true                                                 left by
==========  ===========================================================  ============================================
none        nobody has read the list                                     a read: all names are read
current     the document is of the catalog's serial of names             a project that comes, goes or is renamed
behind      it is of an older one                                        a read, which waits for it
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
from pkgrepo.storage.gil import Yielding
from pkgrepo.storage.pools import Pools

from . import pages
from .indexing import CONTENT_TYPES, HTML_PAGE, JSON_PAGE, is_quarantined

RUN: Final = 256  # names that are rendered at once; twice as many are cut in two
GROUP_SIZE: Final = 64 * 1024  # bytes that are compressed at once, some 2 ms
MOST_EVENTS: Final = 5000  # that are followed; after more the list is read anew
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of compressed runs of all repositories
MOST_LISTS: Final = 64  # repositories whose lists are kept

_RENDER: Final[dict[str, Callable[[Iterable[str]], bytes]]] = {
    JSON_PAGE: pages.listed_json,
    HTML_PAGE: pages.listed_html,
}
_SPLICE: Final = {JSON_PAGE: pages.project_list_json, HTML_PAGE: pages.project_list_html}


@define(eq=False)
class _Run:
    names: dict[str, str]  # by key, in order
    rendered: dict[str, bytes] = Factory(dict)


class NameList:
    """Names in the order of their keys, which can be changed one at a time."""

    def __init__(self, names: Sequence[tuple[str, str]] = ()) -> None:
        self._runs = [_Run(dict(names[at : at + RUN])) for at in range(0, len(names), RUN)] or [_Run({})]
        self._firsts = [next(iter(run.names), "") for run in self._runs]

    def put(self, key: str, name: str) -> None:
        """Add a name, or change how it is written."""
        at = self._at(key)
        run = self._runs[at]
        if run.names.get(key) == name:
            return
        names = sorted({**run.names, key: name}.items())
        parts = [names] if len(names) < 2 * RUN else [names[:RUN], names[RUN:]]
        self._runs[at : at + 1] = [_Run(dict(part)) for part in parts]
        self._firsts[at : at + 1] = [part[0][0] for part in parts]

    def remove(self, key: str) -> None:
        """Take a name out; absent is fine."""
        at = self._at(key)
        names = dict(self._runs[at].names)
        if names.pop(key, None) is None:
            return
        if names or len(self._runs) == 1:
            self._runs[at], self._firsts[at] = _Run(names), next(iter(names), "")
        else:
            del self._runs[at], self._firsts[at]

    def fragments(self, kind: str) -> list[bytes]:
        """The names as a document of this kind has them, run by run; only those that changed are rendered."""
        found: list[bytes] = []
        yielding = Yielding()
        for run in self._runs:
            if kind not in run.rendered:
                run.rendered[kind] = _RENDER[kind](run.names.values())
                yielding.now_and_then()
            if run.names:
                found.append(run.rendered[kind])
        return found

    def _at(self, key: str) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)


@define(eq=False)
class _List:
    names: NameList
    seq: int  # of the last event that it knows of
    serial: int = -1  # of the names
    documents: dict[str, Document] = Factory(dict)


class ProjectLists:
    """The lists of every repository; one for the process."""

    def __init__(self) -> None:
        self._lists: dict[int, _List] = {}
        self._flight: SingleFlight[int, None] = SingleFlight()
        self._renderer = Renderer(CACHE_SIZE)

    def ready(self, catalog: ICatalog, repository: Repository, kind: str) -> Document | None:
        """The list in this form if it is current, without waiting."""
        return self._of_serial(repository, kind, catalog.look(repositories.names_serial, repository.id))

    async def get(self, catalog: ICatalog, pools: Pools, repository: Repository, kind: str) -> Document:
        """The list in this form, as of now."""
        serial: int = catalog.look(repositories.names_serial, repository.id)
        while (document := self._of_serial(repository, kind, serial)) is None:
            await self._flight.run(repository.id, lambda: self._update(catalog, pools, repository.id, kind))
        return document

    def _of_serial(self, repository: Repository, kind: str, serial: int) -> Document | None:
        kept = self._lists.get(repository.id)
        document = None if kept is None else kept.documents.get(kind)
        return document if document is not None and document.serial >= serial else None

    async def _update(self, catalog: ICatalog, pools: Pools, repository_id: int, kind: str) -> None:
        kept = await catalog.scan(_follow, repository_id, self._lists.get(repository_id))
        kept.documents[kind] = await pools.cpu(self._render, kept, kind)
        self._lists.pop(repository_id, None)
        self._lists[repository_id] = kept
        if len(self._lists) > MOST_LISTS:
            del self._lists[next(iter(self._lists))]

    def _render(self, kept: _List, kind: str) -> Document:
        spliced = _SPLICE[kind](kept.serial, kept.names.fragments(kind))
        return self._renderer.render(
            spliced, "", content_type=CONTENT_TYPES[kind], serial=kept.serial, zstd=True, group_size=GROUP_SIZE
        )


def _follow(reader: Reader, repository_id: int, kept: _List | None) -> _List:
    """A list with all that happened until now; what was kept is changed, if there is something."""
    serial = repositories.names_serial(reader, repository_id)
    if kept is not None and kept.serial == serial:
        return kept
    changed, seq = list[str](), 0
    if kept is not None:
        changed, seq = events.changed_packages(reader, repository_id, kept.seq, MOST_EVENTS)
    if kept is None or seq < events.last_seq_of(reader, repository_id):
        names = _all_names(reader, repository_id)
        return _List(NameList(names), events.last_seq_of(reader, repository_id), serial)
    yielding = Yielding()
    for key in changed:
        package = packages.find_package(reader, repository_id, key)
        if package is None or is_quarantined(package):
            kept.names.remove(key)
        else:
            kept.names.put(key, package.name)
        yielding.now_and_then()
    kept.seq, kept.serial = seq, serial
    return kept


def _all_names(reader: Reader, repository_id: int) -> list[tuple[str, str]]:
    """Keys and names of all projects but the quarantined ones (PEP 792), by key."""
    kept_out = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    return [(key, name) for key, name in packages.package_names(reader, repository_id) if key not in kept_out]
