"""
What each change of a gem writes in its transaction: the fragments of its versions, and a line of ``/versions``.

==============  ==================================  ===========================================================
fragment        order                               body
==============  ==================================  ===========================================================
``info``        publication                         the line in ``/info/<gem>``
``release``     version                             the row in ``specs.4.8``
``prerelease``  version                             the row in ``prerelease_specs.4.8``
==============  ==================================  ===========================================================

Only live versions have fragments. A gem of an upstream has none: its lines are in the upstream's documents. The lines
of one or more repositories are joined to ``/info/<gem>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import existing
from pkgrepo.formats.rubygems import configuration
from pkgrepo.formats.rubygems.gemspec import spec_of
from pkgrepo.formats.rubygems.index.info import DIGESTS, HEAD, INFO, TEXT_TYPE, info_line, info_md5, without_time
from pkgrepo.formats.rubygems.legacy import PRERELEASE, RELEASE, list_row
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import File, Fragment, Package, Repository, Version, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments, rewind
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.packages.events import packages_with_event
from pkgrepo.storage.catalog.server import repositories

FEWEST_REMOVALS: Final = 500  # before a list is written anew, which takes 10 us for each line

CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of documents in all content codings
KINDS: Final = {INFO: (INFO,)}


def index_gem(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of a changed version up to date, and append a line to ``/versions`` if it came or went."""
    version = change.version
    if version is None:
        return
    before = index_documents.find_fragment(index.tx, index.package.id, INFO, _push_order(version), version.key)
    line = None if change.last else _put_version(index, version, index.files_after(change))
    if line is None and before is not None:
        _remove_version(index, version)
    if line != before:
        _append(index, version, removal=line is None)


def _put_version(index: PackageIndex, version: Version, files: Sequence[File]) -> bytes | None:
    """Write the fragments of a live version with these files; return its line, or None if it is not to be listed."""
    gem = _gem(files)
    if gem is None or version.state is VersionState.YANKED:
        return None
    spec = spec_of(version.meta)
    line = info_line(spec, gem.sha256, version.published_at)
    kind = PRERELEASE if spec.prerelease else RELEASE
    row = list_row(spec.name, spec.number, spec.platform)
    index.put_fragments(
        [
            (INFO, Fragment(_push_order(version), version.key, line)),
            (kind, Fragment(version.sort, version.key, row)),
        ]
    )
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
        index_documents.remove_lines(tx, repository.id, package.key, index.now_ms)
        return
    sign = "-" if removal else ""
    text = f"{package.name} {sign}{version.key} {info_md5(lines)}"
    state = index_documents.append_line(
        tx, repository.id, package.key, text.encode(), began_ms=began_ms(repository), removal=removal
    )
    if state.removals >= FEWEST_REMOVALS and 3 * state.removals > state.next_seq:
        compact_versions(tx, repository, index.now_ms)


def info_lines(tx: Transaction, package_id: int, *, created_at: bool) -> list[bytes]:
    """The lines of the live versions of a gem, in order, with their times or without."""
    found = index_documents.fragment_bodies(tx, package_id, INFO)
    return found if created_at else list(map(without_time, found))


def began_ms(repository: Repository) -> int:
    """When the first list of a repository's versions began, in Unix milliseconds: with the repository."""
    return int(repository.created_at.timestamp() * 1000)


def compact_versions(tx: Transaction, repository: Repository, now_ms: int) -> None:
    """
    Write the list ``/versions`` anew, with one line for each gem that has live versions.

    Clients that have the old list notice by its digest, and read the new one. Takes seconds for 100,000 gems.
    """
    index_documents.replace_lines(tx, repository.id, _compacted(tx, repository), now_ms)


def _compacted(tx: Transaction, repository: Repository) -> Iterator[tuple[str, bytes]]:
    options = configuration.compact_index(repository)
    for key, found in index_documents.fragments_by_package(tx, repository.id, INFO):
        lines = [each.body if options.created_at else without_time(each.body) for each in found]
        versions = ",".join(each.key for each in found)
        yield key, f"{key} {versions} {info_md5(lines)}".encode()


def _gem(files: Sequence[File]) -> File | None:
    """The gem among the files of a version, unless it came from an upstream."""
    return next((each for each in files if each.role is None and each.origin is None), None)


def _push_order(version: Version) -> bytes:
    return version.id.to_bytes(8, "big")


def make_documents() -> SplicedDocuments:
    """The cache of the documents of all repositories; it renders those that are missing."""
    return SplicedDocuments({INFO: TEXT_TYPE}, cache_size=CACHE_SIZE, algorithms=DIGESTS)


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """
    The lines of a gem's live versions, and the gem, from one snapshot.

    :raises NotFound: no such gem; or it has no versions, and the repository hides such gems
    """
    package = existing(packages.find_package(reader, repository_id, name), "gem", name)
    options = configuration.compact_index(repositories.get_repository(reader, repository_id))
    found = index_documents.list_fragments(reader, package.id, form)
    if not found and options.drop_yanked:
        existing(None, "gem", name)
    if not options.created_at:
        found = [Fragment(each.sort, each.key, without_time(each.body)) for each in found]
    live = {each.key for each in found}
    sorts = [(sort, text) for sort, text in versions.sorted_texts(reader, package.id) if text in live]
    return MemberParts({}, {form: found}, sorts), package


def versions_lines_at(reader: Reader, repository: Repository, at_ms: int) -> Iterator[bytes]:
    """
    The list ``/versions`` as it would have been written anew at a time: a line with its end for each gem.

    Takes as long as ``compact_versions``: call it on a thread.
    """
    options, gil = configuration.compact_index(repository), GilReleaser()
    there = versions.published_until(reader, repository.id, at_ms)
    restored = packages_with_event(reader, repository.id, "restored", at_ms)
    for key, found in index_documents.fragments_by_package(reader, repository.id, INFO):
        shown = [each for each in found if (key, each.key) in there]
        if key in restored:
            parts, package = read_parts(reader, repository.id, key, INFO)
            kept = {each.key for each in rewind(reader, package, parts, INFO, at_ms).fragments[INFO]}
            shown = [each for each in shown if each.key in kept]
        if shown:
            lines = [each.body if options.created_at else without_time(each.body) for each in shown]
            yield f"{key} {','.join(each.key for each in shown)} {info_md5(lines)}\n".encode()
        gil.release_if_due()


def splice(_name: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """``/info`` of a gem from one or more repositories."""
    lines = merge_fragments(members, form)
    return Spliced(HEAD, lines, b"\n" if lines else b"", b"\n")


def latest(members: Sequence[MemberParts]) -> Latest | None:
    """The highest release, or the highest prerelease if there is no release."""
    shown = sorted(pair for member in members for pair in member.versions)
    releases = [text for _, text in shown if not any(map(str.isalpha, text.partition("-")[0]))]
    chosen = releases or [text for _, text in shown]
    return Latest(chosen[-1], LatestReason.HIGHEST) if chosen else None
