"""
Maintains the fragments of metadata in the transaction of each change; see ``joining`` for what is made of them.

==========  ===============  ========  ======================================================================
form        key              kind      a fragment for
==========  ===============  ========  ======================================================================
artifact    group:artifact   version   each version that has files and is not yanked, in their order
snapshot    group:artifact:  build     each file of a snapshot; the kind ends with ``:`` and the version
            version
both                         uploaded  what the last upload of the document said, see ``uploaded``
==========  ===============  ========  ======================================================================

A change of a version writes its own fragments alone, whatever the number of versions.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.formats.maven.names import SNAPSHOT, is_literal_snapshot, package_directory
from pkgrepo.formats.maven.paths import METADATA_NAME
from pkgrepo.model import Actor, File, Fragment, Version, VersionState
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.plain_files import remove_plain_file
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.server import repositories

from .document import version_fragment
from .upload_fragment import UPLOADED, Uploaded, encode
from .values import VERSION, SnapshotFile, build_kind, time_of

FOLDED: Final = "metadata"  # the attribute of a plain file of metadata that has what a fragment needs of it


def index_artifact(index: PackageIndex, change: Change) -> None:
    """Bring the fragments up to date: see L{Indexer}."""
    version = change.version
    if version is None:
        return
    snapshot = is_literal_snapshot(version.text)
    if snapshot:
        for file in change.removed:
            fragment = _build_fragment(file, version)
            index.remove_fragment(build_kind(version.text), fragment.sort, fragment.key)
        for file in change.added:
            index.put_fragment(build_kind(version.text), *_build_fragment(file, version))
    if version.state is VersionState.YANKED or (change.removed and not change.added and not index.files(version)):
        index.remove_fragment(VERSION, version.sort, version.text)
        if snapshot and version.state is not VersionState.YANKED:
            index.remove_fragment(UPLOADED, b"", version.text)
    elif fragments.find_fragment(index.tx, index.package.id, VERSION, version.sort, version.text) is None:
        index.put_fragment(VERSION, version.sort, version.text, version_fragment(version.text))
        _fold(index, "")
        if snapshot:
            _fold(index, version.text)


def _build_fragment(file: File, version: Version) -> Fragment:
    """The fragment of a file of a snapshot. Files with the literal version sort before all builds."""
    attrs = file.attrs
    timestamp, build = attrs.get("timestamp"), attrs.get("build")
    if timestamp is None or build is None:
        value, updated, sort = version.text, time_of(file.created_at), b""
    else:
        value = f"{version.text[: -len(SNAPSHOT)]}{timestamp}-{build}"
        updated = timestamp.replace(".", "")
        sort = updated.encode() + build.to_bytes(4, "big")
    listed = SnapshotFile(attrs.get("classifier", ""), attrs.get("extension", ""), value, updated, timestamp, build)
    return Fragment(sort, file.path.rpartition("/")[2], msgspec.json.encode(listed))


def _fold(index: PackageIndex, version: str) -> None:
    """
    Make metadata that are a plain file the upload of a document, since files of the directory are stored now.

    Its bytes are not kept: the document has versions of its own.
    """
    directory = package_directory(index.package.key)
    path = f"{directory}/{version}/{METADATA_NAME}" if version else f"{directory}/{METADATA_NAME}"
    file = files.find_file(index.tx, index.package.repository_id, path)
    if file is None or file.package_id is not None:
        return
    said = file.attrs.get(FOLDED)
    if said is not None:
        index.put_fragment(UPLOADED, b"", version, encode(msgspec.convert(said, Uploaded)))
    repository = repositories.get_repository(index.tx, index.package.repository_id)
    remove_plain_file(index.tx, repository, path, Actor(), index.now_ms)
