"""
Lists over all packages of a hosted repository, in memory in chunks, which are rendered and compressed apart.

After a package has changed, the next read renders one chunk of a few hundred packages again and joins it with the
others. Changes are read from the catalog's events, so that those made by other processes are included.

==========  ===========================================================  ============================================
state       meaning                                                      next state comes with
==========  ===========================================================  ============================================
none        the list was never read                                      a read, which reads all packages
current     the document has the serial of the catalog                   a change of a package that the list shows
stale       the document has an older serial                             a read, which waits for the update
==========  ===========================================================  ============================================
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from attrs import Factory, define, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Document, Repository
from pkgrepo.repositories.publish.splicing import Renderer, Spliced
from pkgrepo.storage.catalog.packages import events

CHUNK: Final = 256  # packages rendered together; a chunk of twice as many is split
GROUP_SIZE: Final = 64 * 1024  # bytes compressed together, about 2 ms
MOST_EVENTS: Final = 5000  # applied one by one; after more, all packages are read again
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of compressed chunks of all repositories
MOST_LISTS: Final = 64  # repositories whose lists are kept

V = TypeVar("V")


class Versioned(Protocol):
    """A document of a list, which shows the list at a serial."""

    @property
    def serial(self) -> int:
        """The serial of the catalog when the list was read."""


D = TypeVar("D", bound=Versioned)


@define(eq=False)
class _Chunk(Generic[V]):
    values: dict[str, V]  # by key, in order
    rendered: dict[str, bytes] = Factory(dict)


class PackageList(Generic[V]):
    """What a list shows of each package, ordered by package key, in chunks; an update replaces one chunk."""

    def __init__(self, entries: Sequence[tuple[str, V]] = (), *, chunk: int = CHUNK) -> None:
        self._chunk = chunk
        parts = [entries[at : at + chunk] for at in range(0, len(entries), chunk)] or [()]
        self._chunks = [_Chunk(dict(part)) for part in parts]
        self._firsts = [next(iter(chunk.values), "") for chunk in self._chunks]

    def put(self, key: str, value: V) -> None:
        """Add a package, or change what the list shows of it."""
        at = self._at(key)
        chunk = self._chunks[at]
        if chunk.values.get(key) == value:
            return
        entries = sorted({**chunk.values, key: value}.items(), key=lambda entry: entry[0])
        most = self._chunk
        parts = [entries] if len(entries) < 2 * most else [entries[:most], entries[most:]]
        self._chunks[at : at + 1] = [_Chunk(dict(part)) for part in parts]
        self._firsts[at : at + 1] = [part[0][0] for part in parts]

    def remove(self, key: str) -> None:
        """Remove a package; no error if it is absent."""
        at = self._at(key)
        values = dict(self._chunks[at].values)
        if values.pop(key, None) is None:
            return
        if values or len(self._chunks) == 1:
            self._chunks[at], self._firsts[at] = _Chunk(values), next(iter(values), "")
        else:
            del self._chunks[at], self._firsts[at]

    def values(self) -> Iterator[V]:
        """What the list shows of each package, in order."""
        for chunk in self._chunks:
            yield from chunk.values.values()

    def chunks(self) -> Iterator[Iterable[V]]:
        """Return the chunks that L{fragments} renders, without empty ones."""
        return (chunk.values.values() for chunk in self._chunks if chunk.values)

    def fragments(self, form: str, render: Callable[[Iterable[V]], bytes]) -> list[bytes]:
        """The chunks as ``render`` makes them for a document in this form; only changed chunks are rendered again."""
        found: list[bytes] = []
        gil = GilReleaser()
        for chunk in self._chunks:
            if form not in chunk.rendered:
                chunk.rendered[form] = render(chunk.values.values())
                gil.release_if_due()
            if chunk.values:
                found.append(chunk.rendered[form])
        return found

    def _at(self, key: str) -> int:
        return max(bisect_right(self._firsts, key) - 1, 0)


@frozen(eq=False)
class ListForm(Generic[V]):
    """
    One form of a list: its media type, how its parts are made from the list and its serial, and the algorithms of its
    digests.
    """

    content_type: str
    splice: Callable[[int, PackageList[V]], Spliced]
    zstd: bool = False
    algorithms: Sequence[str] = ()


class Source(Protocol[V, D]):
    """How the lists of a format are read, and how documents are made of them."""

    @property
    def serial(self) -> Callable[[Reader, int], int]:
        """A query for a number that grows with each change that the list of a repository shows."""

    @property
    def read_all(self) -> Callable[[Reader, int], Sequence[tuple[str, V]]]:
        """A query for all packages that it shows, with what it shows of them, ordered by key."""

    @property
    def read_one(self) -> Callable[[Reader, int, str], V | None]:
        """A query for what it shows of one package (a key), or None."""

    def render(self, listed: PackageList[V], serial: int, form: str, before: D | None) -> D:
        """A list in one form; ``before`` is the document of an older serial, if there is one. Blocks."""


@frozen(eq=False)
class ListSource(Generic[V]):
    """The source of lists whose documents are joined from fragments, in ``forms`` by name."""

    serial: Callable[[Reader, int], int]
    read_all: Callable[[Reader, int], Sequence[tuple[str, V]]]
    read_one: Callable[[Reader, int, str], V | None]
    forms: Mapping[str, ListForm[V]]
    renderer: Renderer = Factory(lambda: Renderer(CACHE_SIZE))

    def render(self, listed: PackageList[V], serial: int, form: str, before: Document | None = None) -> Document:  # noqa: ARG002 - of the protocol
        """A list in one form. Blocks: a second for 600,000 names."""
        made = self.forms[form]
        return self.renderer.render(
            made.splice(serial, listed),
            "",
            content_type=made.content_type,
            serial=serial,
            zstd=made.zstd,
            group_size=GROUP_SIZE,
            algorithms=made.algorithms,
        )


@define(eq=False)
class _Kept(Generic[V, D]):
    listed: PackageList[V]
    seq: int  # of the last event applied
    serial: int = -1
    documents: dict[str, D] = Factory(dict)


class PackageLists(Generic[V, D]):
    """
    The lists of one format in all hosted repositories, one instance per process.

    Lists of ``most_lists`` repositories are kept; a list is read anew after more than ``most_events``.
    """

    def __init__(self, source: Source[V, D], *, most_lists: int = MOST_LISTS, most_events: int = MOST_EVENTS) -> None:
        self._most_lists = most_lists
        self._most_events = most_events
        self._source = source
        self._kept: dict[int, _Kept[V, D]] = {}
        self._flight: SingleFlight[int, None] = SingleFlight()

    def ready(self, reader: Reader, repository: Repository, form: str) -> D | None:
        """The list in this form from memory if it is current, else None."""
        return self.at_serial(repository, form, self._source.serial(reader, repository.id))

    async def get(self, catalog: ICatalog, pools: Pools, repository: Repository, form: str) -> D:
        """The current list in this form; updates it first if needed."""
        serial: int = await catalog.look(self._source.serial, repository.id)
        while (document := self.at_serial(repository, form, serial)) is None:
            await self._flight.run(repository.id, lambda: self._update(catalog, pools, repository.id, form))
        return document

    def at_serial(self, repository: Repository, form: str, serial: int) -> D | None:
        """The list in this form from memory if it shows this serial or a later one, else None."""
        kept = self._kept.get(repository.id)
        document = None if kept is None else kept.documents.get(form)
        return document if document is not None and document.serial >= serial else None

    async def _update(self, catalog: ICatalog, pools: Pools, repository_id: int, form: str) -> None:
        kept = await catalog.scan(self._apply_events, repository_id, self._kept.get(repository_id))
        before = kept.documents.get(form)
        kept.documents[form] = await pools.cpu(self._source.render, kept.listed, kept.serial, form, before)
        self._kept.pop(repository_id, None)
        self._kept[repository_id] = kept
        if len(self._kept) > self._most_lists:
            del self._kept[next(iter(self._kept))]

    def _apply_events(self, reader: Reader, repository_id: int, kept: _Kept[V, D] | None) -> _Kept[V, D]:
        """The list updated to the current serial: ``kept`` changed in place, or a new one read from all packages."""
        source = self._source
        serial = source.serial(reader, repository_id)
        if kept is not None and kept.serial == serial:
            return kept
        changed, seq = list[str](), 0
        if kept is not None:
            changed, seq = events.changed_packages(reader, repository_id, kept.seq, self._most_events)
        if kept is None or seq < events.last_seq_of_repository(reader, repository_id):
            listed = PackageList(source.read_all(reader, repository_id))
            return _Kept(listed, events.last_seq_of_repository(reader, repository_id), serial)
        gil = GilReleaser()
        for key in changed:
            value = source.read_one(reader, repository_id, key)
            if value is None:
                kept.listed.remove(key)
            else:
                kept.listed.put(key, value)
            gil.release_if_due()
        kept.seq, kept.serial = seq, serial
        return kept
