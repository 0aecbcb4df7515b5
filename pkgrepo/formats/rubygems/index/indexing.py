"""
What each change of a gem writes in its transaction: the fragments of its versions, and a line of ``/versions``.

==============  ==================================  ===========================================================
fragment        order                               body
==============  ==================================  ===========================================================
``info``        publication                         the line in ``/info/<gem>``
``release``     version                             the row in ``specs.4.8``
``prerelease``  version                             the row in ``prerelease_specs.4.8``
==============  ==================================  ===========================================================

Only live versions have fragments. A gem of an upstream has none: its lines are in the upstream's documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pkgrepo.formats.rubygems import configuration
from pkgrepo.formats.rubygems.gemspec import spec_of
from pkgrepo.formats.rubygems.legacy.rows import PRERELEASE, RELEASE, list_row
from pkgrepo.interfaces import Transaction
from pkgrepo.model import File, Repository, Version, VersionState
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog.documents import appended_lists, fragments
from pkgrepo.storage.catalog.server import repositories

from .info import info_line, info_md5, without_time

INFO: Final = "info"

FEWEST_REMOVALS: Final = 500  # before a list is written anew, which takes 10 us for each line


def index_gem(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of a changed version up to date, and append a line to ``/versions`` if it came or went."""
    version = change.version
    if version is None:
        return
    before = fragments.find_fragment(index.tx, index.package.id, INFO, _push_order(version), version.key)
    line = None if change.last else _put_version(index, version)
    if line is None and before is not None:
        _remove_version(index, version)
    if line != before:
        _append(index, version, removal=line is None)


def _put_version(index: PackageIndex, version: Version) -> bytes | None:
    """Write the fragments of a live version, and return its line; None if it is not to be listed."""
    gem = _gem(index.files(version))
    if gem is None or version.state is VersionState.YANKED:
        return None
    spec = spec_of(version.meta)
    line = info_line(spec, gem.sha256, version.published_at)
    index.put_fragment(INFO, _push_order(version), version.key, line)
    kind = PRERELEASE if spec.prerelease else RELEASE
    index.put_fragment(kind, version.sort, version.key, list_row(spec.name, spec.number, spec.platform))
    return line


def _remove_version(index: PackageIndex, version: Version) -> None:
    index.remove_fragment(INFO, _push_order(version), version.key)
    for kind in (RELEASE, PRERELEASE):
        index.remove_fragment(kind, version.sort, version.key)


def _append(index: PackageIndex, version: Version, *, removal: bool) -> None:
    tx, package = index.tx, index.package
    repository = repositories.get_repository(tx, package.repository_id)
    options = configuration.compact_index(repository)
    lines = info_lines(tx, package.id, created_at=options.created_at)
    if removal and not lines and options.drop_yanked:
        appended_lists.remove_lines(tx, repository.id, package.key, index.now_ms)
        return
    sign = "-" if removal else ""
    text = f"{package.name} {sign}{version.key} {info_md5(lines)}"
    state = appended_lists.append_line(
        tx, repository.id, package.key, text.encode(), began_ms=began_ms(repository), removal=removal
    )
    if state.removals >= FEWEST_REMOVALS and 3 * state.removals > state.next_seq:
        compact_versions(tx, repository, index.now_ms)


def info_lines(tx: Transaction, package_id: int, *, created_at: bool) -> list[bytes]:
    """The lines of the live versions of a gem, in order, with their times or without."""
    found = fragments.list_fragments(tx, package_id, INFO)
    return [each.body if created_at else without_time(each.body) for each in found]


def began_ms(repository: Repository) -> int:
    """When the first list of a repository's versions began, in Unix milliseconds: with the repository."""
    return int(repository.created_at.timestamp() * 1000)


def compact_versions(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """
    Write the list ``/versions`` anew, with one line for each gem that has live versions.

    Clients that have the old list notice by its digest, and read the new one. Takes seconds for 100,000 gems.
    """
    appended_lists.replace_lines(tx, repository.id, _compacted(tx, repository), now_ms)


def _compacted(tx: Transaction, repository: Repository) -> Iterator[tuple[str, bytes]]:
    options = configuration.compact_index(repository)
    for key, found in fragments.fragments_by_package(tx, repository.id, INFO):
        lines = [each.body if options.created_at else without_time(each.body) for each in found]
        versions = ",".join(each.key for each in found)
        yield key, f"{key} {versions} {info_md5(lines)}".encode()


def _gem(files: list[File]) -> File | None:
    """The gem among the files of a version, unless it came from an upstream."""
    return next((each for each in files if each.role is None and each.origin is None), None)


def _push_order(version: Version) -> bytes:
    return version.id.to_bytes(8, "big")
