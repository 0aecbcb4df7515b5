"""
What each change of a package writes inside its transaction: fragments, search row, and the ``latest`` tag.

Documents are spliced from the fragments when they are requested (see ``packument``), so that the cost of a publish does
not grow with the number of versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from pkgrepo.formats.npm.packument import document
from pkgrepo.formats.npm.packument.splicing import deprecation, manifest_of
from pkgrepo.formats.npm.search.rows import LISTED, ROW, encode_row, make_row, render_member
from pkgrepo.formats.npm.signing import ensure_signer
from pkgrepo.model import SYSTEM, File, Fragment, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.semver import highest_version
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.packages.versions import VersionRow

from .names import DEFAULT_TAG


def index_package(index: PackageIndex, change: Change) -> None:
    """
    Write the fragments of the changed version and the package's search row; set ``latest`` when it is missing.

    A version of an upstream has no fragments here: they are in the upstream's document, with its signatures and tags.
    """
    if not change.last:
        _index(index, change)


def index_states(index: PackageIndex, rows: Sequence[VersionRow]) -> None:
    """Write the new deprecation of many versions into their fragments."""
    for kind in (document.FULL, document.SHORT):
        bodies = versions.find_fragments(index.tx, index.package.id, kind, rows)
        parts = [
            (row, document.with_deprecation(bodies[row.key], deprecation(row))) for row in rows if row.key in bodies
        ]
        versions.put_fragments(index.tx, index.package.id, kind, parts)
    index_package(index, Change())


def index_removed(index: PackageIndex, rows: Sequence[VersionRow]) -> None:
    """Remove the fragments of many removed versions, and set ``latest`` when it is missing."""
    for kind in (document.FULL, document.SHORT, document.TIME):
        versions.remove_fragments(index.tx, index.package.id, kind, rows)
    index_package(index, Change())


@frozen
class Publishing:
    """
    The indexer of a publish.

    It sets the ``tags`` on the new version, and its deprecation when the manifest has one. The publisher of a
    package's first version becomes its maintainer.
    """

    tags: tuple[str, ...]
    deprecated: str
    maintainer: Mapping[str, str]
    actor: Admitted

    def __call__(self, index: PackageIndex, change: Change) -> None:
        """Set tags, deprecation and maintainer, and index the new version."""
        package, version, meta = index.package, change.version, None
        assert version is not None
        for tag in self.tags:
            tags.set_tag(index.tx, package.id, tag, version_id=version.id, actor=self.actor, now_ms=index.now_ms)
        if self.deprecated:
            versions.set_state(index.tx, version.id, VersionState.DEPRECATED, self.deprecated)
            found = versions.find_version(index.tx, package.id, version.key)
            change = evolve(change, version=found)
        if "maintainers" not in package.meta:
            meta = {**package.meta, "maintainers": [dict(self.maintainer)]}
            index.package = evolve(package, meta=meta)
        _index(index, change, latest=change.version if DEFAULT_TAG in self.tags else None, meta=meta)


def _index(
    index: PackageIndex, change: Change, *, latest: Version | None = None, meta: Mapping[str, Any] | None = None
) -> None:
    """Write what a change makes new, in few statements. ``latest`` has that tag, if known; ``meta`` is to be stored."""
    files = index.files_after(change)
    cached = any("upstream" in file.attrs for file in files)
    new: list[tuple[str, Fragment]] = []
    if change.version is not None and not cached:
        new += _index_version(index, change.version, files)
    if latest is None or cached:
        latest = _ensure_latest(index, highest=cached)
    if latest.text != index.package.latest or meta is not None:
        packages.touch_package(
            index.tx, index.package.id, serial=index.package.serial, now_ms=index.now_ms, latest=latest.text, meta=meta
        )
    row = make_row(index.package, latest, deprecated=bool(deprecation(latest)))
    new += ((ROW, Fragment(b"", "", encode_row(row))), (LISTED, Fragment(b"", "", render_member(row))))
    index.put_fragments(new)


def _index_version(index: PackageIndex, version: Version, files: Sequence[File]) -> list[tuple[str, Fragment]]:
    """The fragments of a version, with their kinds; those of a version without a tarball are removed."""
    if all(file.role is not None for file in files):
        for kind in (document.FULL, document.SHORT, document.TIME):
            index.remove_fragment(kind, version.sort, version.key)
        return []
    manifest, message = manifest_of(version), deprecation(version)
    dist = manifest["dist"]
    # Signed here, not when the version was published: a catalog that is rebuilt from files then signs with its own key.
    signature = ensure_signer(index.tx).sign(manifest["name"], version.text, dist["integrity"])
    manifest["dist"] = {**dist, "signatures": [signature]}
    return [
        (kind, Fragment(version.sort, version.key, body))
        for kind, body in (
            (document.FULL, document.full_fragment(manifest, message)),
            (document.SHORT, document.short_fragment(manifest, message)),
            (document.TIME, document.time_fragment(version.text, version.published_at)),
        )
    ]


def _ensure_latest(index: PackageIndex, *, highest: bool) -> Version:
    """
    The version tagged ``latest``.

    When none is, or with ``highest``, the highest release gets the tag, or else the highest prerelease.
    """
    latest = None if highest else tags.find_tagged_version(index.tx, index.package.id, DEFAULT_TAG)
    if latest is not None:
        return latest
    chosen = highest_version(index.version_texts())
    assert chosen is not None
    latest = versions.find_version(index.tx, index.package.id, chosen.key)
    assert latest is not None
    tags.set_tag(index.tx, index.package.id, DEFAULT_TAG, version_id=latest.id, actor=SYSTEM, now_ms=index.now_ms)
    return latest
