"""
The sparse index: a document for each crate, with a line of JSON for each version.

A line is rendered in the transaction that changes its version, and differs afterwards in ``yanked`` alone. The lines of
one or more repositories are joined, in the order of their publication; of one version that of the first member counts.
A crate of an upstream has no fragments here: its lines are in the upstream's document, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.errors import existing
from pkgrepo.formats.cargo.names import spelling
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment, Package, Version, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments
from pkgrepo.repositories.past import package_past
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.semver import highest_version, is_prerelease
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, versions

INDEX: Final = "index"  # the form, and the kind of fragments
LINE: Final = "index"  # in the metadata of a version: its line as a publisher sent it
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of documents in all content codings

_YANKED: Final = (b'"yanked":false', b'"yanked":true')
IS_YANKED: Final = re.compile(rb'"yanked"\s*:\s*true')
_encode = msgspec.json.Encoder().encode


def render_line(line: Mapping[str, Any], sha256: str, version: Version) -> bytes:
    """The line of a stored version, without its end; the time is in whole seconds of UTC, as ``cargo`` reads it."""
    published = version.published_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    yanked = version.state is VersionState.YANKED
    return _encode({**line, "cksum": sha256, "yanked": yanked, "pubtime": published})


def apply_change(index: PackageIndex, change: Change) -> None:
    """Write the line of a changed version, or remove it; and the spelling of a new crate."""
    package, version = index.package, change.version
    if change.added:
        packages.put_spelling(index.tx, package.repository_id, package.id, spelling(package.name))
    if version is None:
        return
    crate = next((each for each in index.files_after(change) if each.origin is None), None)
    place = version.id.to_bytes(8, "big")
    if change.last or crate is None or LINE not in version.meta:
        index.remove_fragment(INDEX, place, version.key)
    else:
        index.put_fragment(INDEX, place, version.key, render_line(version.meta[LINE], crate.sha256, version))
    if not change.last:
        newest = versions.newest_live(index.tx, package.id, is_prerelease)
        packages.set_latest(index.tx, package.id, None if newest is None else newest.text)


def read_parts(reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
    """The lines of a crate, and the crate, from one snapshot. :raises NotFound: no such crate"""
    package = existing(packages.find_package(reader, repository_id, key), "crate", key)
    found = index_documents.list_fragments(reader, package.id, form)
    return MemberParts({}, {form: found}, versions.sorted_texts(reader, package.id)), package


def rewind(reader: Reader, package: Package, parts: MemberParts, form: str, at_ms: int) -> MemberParts:
    """The same parts with the yanks of a time."""
    present = {each.key: (each.state, each.reason) for each in versions.list_versions(reader, package.id)}
    past = package_past(reader, package.id, at_ms, present=present)

    def rewound(each: Fragment) -> Fragment:
        state = past.states.get(each.key, present[each.key])[0]
        return Fragment(each.sort, each.key, with_yank(each.body, yanked=state is VersionState.YANKED))

    return evolve(parts, fragments={form: [rewound(each) for each in parts.fragments[form]]})


def with_yank(line: bytes, *, yanked: bool) -> bytes:
    """A line that was rendered here, of a version that is yanked or not."""
    return line.replace(_YANKED[not yanked], _YANKED[yanked])


def splice(_key: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """The document of a crate from one or more repositories."""
    lines = merge_fragments(members, form)
    return Spliced(b"", lines, b"\n" if lines else b"", b"\n")


def latest(_key: str, members: Sequence[MemberParts]) -> Latest | None:
    """The highest release that is not yanked, or the highest prerelease if there is no release."""
    yanked = {line.key for each in members for line in each.fragments[INDEX] if IS_YANKED.search(line.body)}
    shown = sorted(pair for each in members for pair in each.versions if pair[1].partition("+")[0] not in yanked)
    found = highest_version([text for _, text in shown])
    return None if found is None else Latest(found.text, LatestReason.HIGHEST)


def make_documents() -> SplicedDocuments:
    """The cache of the documents of all repositories."""
    return SplicedDocuments({INDEX: "text/plain; charset=utf-8"}, cache_size=CACHE_SIZE)
