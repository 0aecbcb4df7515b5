"""
The lists over all gems: ``/names``, and the legacy ``specs.4.8``, ``latest_specs.4.8`` and ``prerelease_specs.4.8``.

They show live versions only. They are kept in memory and updated by change, see L{package_lists}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final

from attrs import frozen

from pkgrepo.formats.rubygems.legacy.rows import PRERELEASE, RELEASE, first_row, list_head
from pkgrepo.formats.rubygems.names import RUBY
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment
from pkgrepo.repositories.publish.index import Spliced
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

NAMES: Final = "names"
SPECS: Final = "specs.4.8"
LATEST: Final = "latest_specs.4.8"
PRERELEASES: Final = "prerelease_specs.4.8"

TEXT_TYPE: Final = "text/plain; charset=utf-8"
BINARY_TYPE: Final = "application/octet-stream"
DIGESTS: Final = ("md5", "sha256")  # of the documents of the compact index


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
    releases = dict(fragments.fragments_by_package(reader, repository_id, RELEASE))
    prereleases = dict(fragments.fragments_by_package(reader, repository_id, PRERELEASE))
    keys = sorted(releases.keys() | prereleases.keys())
    rows = ((key, _make_rows(key, releases.get(key, ()), prereleases.get(key, ()))) for key in keys)
    return [(key, each) for key, each in rows if each is not None]


def _read_one(reader: Reader, repository_id: int, key: str) -> GemRows | None:
    package = packages.find_package(reader, repository_id, key)
    if package is None:
        return None
    kinds = (fragments.list_fragments(reader, package.id, kind) for kind in (RELEASE, PRERELEASE))
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
