"""
The lists over all gems of a hosted repository.

==========================================================  ==========================================================
list                                                        update
==========================================================  ==========================================================
``/names``; ``specs.4.8``, ``latest_specs.4.8`` and         kept in memory in chunks, one is rendered after a change
``prerelease_specs.4.8`` of the legacy index: live versions
``/versions``: a line for each change of a gem              each change appends a line in the catalog; the next read
                                                            appends new lines to a temporary file of this process
==========================================================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Final

from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.formats.rubygems.index.indexing import began_ms
from pkgrepo.formats.rubygems.index.info import DIGESTS, TEXT_TYPE, render_time
from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.formats.rubygems.legacy import LATEST, PRERELEASE, PRERELEASES, RELEASE, SPECS, first_row, list_head
from pkgrepo.formats.rubygems.names import RUBY
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Fragment, Repository
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.index_documents import ListState
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

NAMES: Final = "names"

BINARY_TYPE: Final = "application/octet-stream"

PAGE: Final = 2000  # lines read at a time
MOST_FILES: Final = 64  # repositories whose lists are kept


@frozen
class GemRows:
    """What the lists show of a gem; ``latest`` are the rows of the highest release of each platform."""

    name: str
    releases: tuple[bytes, ...]
    prereleases: tuple[bytes, ...]
    latest: tuple[bytes, ...]


def _make_rows(name: str, releases: Sequence[Fragment], prereleases: Sequence[Fragment]) -> GemRows | None:
    if not releases and not prereleases:
        return None
    latest = {each.key.partition("-")[2] or RUBY: each.body for each in releases}  # in order: the last one stays
    return GemRows(
        name,
        tuple(each.body for each in releases),
        tuple(each.body for each in prereleases),
        tuple(latest.values()),
    )


def _read_all(reader: Reader, repository_id: int) -> list[tuple[str, GemRows]]:
    releases = dict(index_documents.fragments_by_package(reader, repository_id, RELEASE))
    prereleases = dict(index_documents.fragments_by_package(reader, repository_id, PRERELEASE))
    keys = sorted(releases.keys() | prereleases.keys())
    rows = ((key, _make_rows(key, releases.get(key, ()), prereleases.get(key, ()))) for key in keys)
    return [(key, each) for key, each in rows if each is not None]


def _read_one(reader: Reader, repository_id: int, key: str) -> GemRows | None:
    package = packages.find_package(reader, repository_id, key)
    if package is None:
        return None
    kinds = (index_documents.list_fragments(reader, package.id, kind) for kind in (RELEASE, PRERELEASE))
    return _make_rows(key, *kinds)


def _splice_names(_serial: int, gems: PackageList[GemRows]) -> Spliced:
    return Spliced(b"---\n", gems.fragments(NAMES, _join_names), b"\n", b"\n")


def _join_names(gems: Iterable[GemRows]) -> bytes:
    return "\n".join(each.name for each in gems).encode()


def _splice_rows(_serial: int, gems: PackageList[GemRows], *, form: str, attribute: str) -> Spliced:
    read = attrgetter(attribute)
    chunks = [each for each in gems.fragments(form, lambda some: b"".join(b"".join(read(gem)) for gem in some)) if each]
    count = sum(len(read(gem)) for gem in gems.values())
    head = list_head(count)
    if chunks:
        first: bytes = next(read(gem)[0] for gem in gems.values() if read(gem))
        head += first_row(first)
        chunks[0] = chunks[0][len(first) :]
    return Spliced(head, chunks, b"", b"")


def _rows_form(form: str, attribute: str) -> ListForm[GemRows]:
    return ListForm(BINARY_TYPE, partial(_splice_rows, form=form, attribute=attribute))


GEM_LISTS: Final = ListSource(
    serial=repositories.content_serial,
    read_all=_read_all,
    read_one=_read_one,
    forms={
        NAMES: ListForm(TEXT_TYPE, _splice_names, algorithms=DIGESTS),
        SPECS: _rows_form(SPECS, "releases"),
        LATEST: _rows_form(LATEST, "latest"),
        PRERELEASES: _rows_form(PRERELEASES, "prereleases"),
    },
)


@frozen(eq=False)
class VersionsList:
    """The list in one state, None if it never had a line."""

    state: ListState | None
    file: ListFile


class VersionsLists:
    """The lists of all hosted repositories, one instance per process; ``page`` lines are read at a time."""

    def __init__(self, *, page: int = PAGE) -> None:
        self._page = page
        self._kept: StampCache[int, VersionsList] = StampCache(MOST_FILES)

    async def get(self, catalog: ICatalog, repository: Repository) -> VersionsList:
        """
        The present list of a repository.

        :raises StorageFull: there is no room for the file
        """
        state: ListState | None = await catalog.look(index_documents.find_list, repository.id)
        before = self._kept.latest(repository.id)
        return await self._kept.get(repository.id, state, lambda: catalog.scan(_extend, repository, before, self._page))


def read_lines(reader: Reader, repository: Repository, seq: int = 0, page: int = PAGE) -> Iterator[bytes]:
    """The lines of a repository's list from the number ``seq`` on, several at a time."""
    gil = GilReleaser()
    while lines := index_documents.lines_from(reader, repository.id, seq, page):
        yield b"".join(line + b"\n" for _, line in lines)
        seq = lines[-1][0] + 1
        gil.release_if_due()


def versions_head(repository: Repository, state: ListState | None) -> bytes:
    """What stands before the lines of a repository's list in this state."""
    since_ms = began_ms(repository) if state is None else state.began_ms
    began = datetime.fromtimestamp(since_ms // 1000, tz=UTC)
    return f"created_at: {render_time(began)}\n---\n".encode()


def _extend(reader: Reader, repository: Repository, kept: VersionsList | None, page: int) -> VersionsList:
    """The list in the present state, in the file of ``kept`` if that is its beginning."""
    state = index_documents.find_list(reader, repository.id)
    if kept is not None and _continues(kept.state, state):
        writer, seq = ListWriter.continuing(kept.file), 0 if kept.state is None else kept.state.next_seq
    else:
        writer, seq = ListWriter.new(), 0
        writer.add(versions_head(repository, state))
    for data in read_lines(reader, repository, seq, page):
        writer.add(data)
    return VersionsList(state, writer.end())


def _continues(before: ListState | None, state: ListState | None) -> bool:
    """Whether a list in the first state is the beginning of one in the second."""
    if before is None or state is None:
        return before is state
    return (before.epoch, before.began_ms) == (state.epoch, state.began_ms) and before.next_seq <= state.next_seq
