"""
What each change of a package writes in its transaction: fragments of its files, by path.

=============  =========  ===================================================================
fragment       order      body
=============  =========  ===================================================================
``record``     version    the record in repodata, as JSON
``exports``    version    the entry in ``run_exports.json``, as JSON, of files that have any
=============  =========  ===================================================================

Files of a yanked version have none.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.formats.conda.description import record_of
from pkgrepo.model import File, Version, VersionState
from pkgrepo.repositories.publish.index import Change, PackageIndex

RECORD: Final = "record"
EXPORTS: Final = "exports"


def index_package(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of changed files up to date."""
    version = change.version
    if version is not None:
        shown = version.state is not VersionState.YANKED
        whole = not change.added and not change.removed
        for file in change.removed:
            _remove(index, version, file.path)
        for file in index.files(version) if whole else change.added:
            if shown:
                _put(index, version, file)
            else:
                _remove(index, version, file.path)


def _put(index: PackageIndex, version: Version, file: File) -> None:
    attrs = file.attrs
    subdir = file.path.partition("/")[0]
    record = record_of(attrs["index"], subdir, file.digests["md5"], file.sha256, file.size)
    index.put_fragment(RECORD, version.sort, file.path, msgspec.json.encode(record, order="sorted"))
    exports = attrs.get("run_exports")
    if exports:
        index.put_fragment(EXPORTS, version.sort, file.path, msgspec.json.encode(exports, order="sorted"))
    else:
        index.remove_fragment(EXPORTS, version.sort, file.path)


def _remove(index: PackageIndex, version: Version, path: str) -> None:
    for kind in (RECORD, EXPORTS):
        index.remove_fragment(kind, version.sort, path)
