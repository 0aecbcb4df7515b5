"""
The metadata of an artifact as far as its files are kept: of the versions and builds that were fetched.

Metadata of several routes are joined, and all files of a version come from one: each route gets what came from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from attrs import frozen

from pkgrepo.formats.maven.metadata.document import version_fragment
from pkgrepo.formats.maven.metadata.values import SnapshotFile
from pkgrepo.formats.maven.names import is_snapshot
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.interfaces import Reader
from pkgrepo.model import Origin, Package, Version
from pkgrepo.proxy.documents.held import DocumentRequest
from pkgrepo.proxy.parts.values import Entry, Normalised
from pkgrepo.storage.catalog.packages import files, versions

from .normaliser import BUILD, VERSION, build_sort
from .questions import metadata_question


@frozen
class _Kept:
    """A version of which some files came from a route, with their origins."""

    version: Version
    files: Sequence[tuple[ArtifactFile, Origin]]

    @property
    def newest(self) -> Origin:
        """The origin of the file that was fetched last."""
        return max((origin for _, origin in self.files), key=lambda each: each.fetched_ms)


def restore_metadata(reader: Reader, package: Package) -> Iterator[tuple[DocumentRequest, Origin, Normalised]]:
    """The parts of the metadata of an artifact and of its snapshots, with the file that was fetched last, by route."""
    for route, kept in _by_route(reader, package).items():
        question = metadata_question(package.key).of_route(route)
        entries = (_entry(each, each.version.sort, each.version.text, VERSION) for each in kept)
        yield question, _newest(kept), Normalised(_top(kept), entries)
        for each in kept:
            builds = list(_builds(each))
            if builds:
                question = metadata_question(f"{package.key}:{each.version.text}").of_route(route)
                yield question, each.newest, Normalised(_top([each]), iter(builds))


def _by_route(reader: Reader, package: Package) -> dict[str, list[_Kept]]:
    found: dict[str, list[_Kept]] = {}
    for version in versions.list_versions(reader, package.id):
        routes: dict[str, list[tuple[ArtifactFile, Origin]]] = {}
        for file in files.files_of_version(reader, version.id):
            target, origin = parse_text(file.path), file.origin
            if origin is not None and isinstance(target, ArtifactFile):
                routes.setdefault(origin.route, []).append((target, origin))
        for route, some in routes.items():
            found.setdefault(route, []).append(_Kept(version, some))
    return found


def _newest(kept: Sequence[_Kept]) -> Origin:
    return max((each.newest for each in kept), key=lambda each: each.fetched_ms)


def _top(kept: Sequence[_Kept]) -> dict[str, object]:
    newest = _newest(kept)
    updated_ms = newest.fetched_ms if newest.published_ms is None else newest.published_ms
    return {"last_updated_ms": updated_ms, "plugins": [], "others": []}


def _builds(kept: _Kept) -> Iterator[Entry]:
    """The files of a snapshot that belong to builds; none of a release."""
    if not is_snapshot(kept.version.text):
        return
    for file, _ in kept.files:
        if file.timestamp is None or file.build is None or file.role is not None:
            continue
        updated = file.timestamp.replace(".", "")
        listed = SnapshotFile(file.classifier, file.extension, file.file_version, updated, file.timestamp, file.build)
        yield _entry(kept, build_sort(updated, file.build), file.filename, BUILD, msgspec.json.encode(listed))


def _entry(kept: _Kept, sort: bytes, key: str, kind: str, body: bytes | None = None) -> Entry:
    origin, text = kept.newest, kept.version.text
    return Entry(
        sort=sort,
        key=key,
        version=text,
        published_ms=origin.fetched_ms if origin.published_ms is None else origin.published_ms,
        first_seen=origin.published_ms is None,
        fragments={kind: version_fragment(text) if body is None else body},
        files=[],
    )
