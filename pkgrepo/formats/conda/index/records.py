"""
What each change of a package writes in its transaction: fragments of its files, and one of the package.

=============  ===============  ======================================================================
fragment       order            body
=============  ===============  ======================================================================
``record``     version, path    the record in repodata, as JSON
``exports``    version, path    the entry in ``run_exports.json``, as JSON, of files that have any
``about``      one              the entry in ``channeldata.json`` without its folders, as JSON
=============  ===============  ======================================================================

Files of a yanked version have none.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.formats.conda.description import ABOUT as ABOUT_KEYS
from pkgrepo.formats.conda.description import record_of
from pkgrepo.model import File, Version, VersionState
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.storage.catalog.columns import to_ms
from pkgrepo.storage.catalog.packages import files, packages, versions

RECORD: Final = "record"
EXPORTS: Final = "exports"
ABOUT: Final = "about"

DERIVED: Final = "derived_from"  # the attribute of a file that is made of a wheel

_encode = msgspec.json.Encoder(order="sorted").encode


def index_package(index: PackageIndex, change: Change) -> None:
    """Bring the fragments of changed files up to date, and that of the package."""
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
    if not change.last:
        _put_about(index)
        _put_derived(index, change)


def _put(index: PackageIndex, version: Version, file: File) -> None:
    attrs = file.attrs
    subdir = file.path.partition("/")[0]
    record = record_of(attrs["index"], subdir, {**file.digests, "sha256": file.sha256}, file.size)
    if file.origin is None:  # else the record is that of the upstream, with its time
        record["indexed_timestamp"] = to_ms(file.created_at)  # CEP 47
    index.put_fragment(RECORD, version.sort, file.path, _encode(record))
    exports = attrs.get("run_exports")
    if exports:
        index.put_fragment(EXPORTS, version.sort, file.path, _encode(exports))
    else:
        index.remove_fragment(EXPORTS, version.sort, file.path)


def _remove(index: PackageIndex, version: Version, path: str) -> None:
    for kind in (RECORD, EXPORTS):
        index.remove_fragment(kind, version.sort, path)


def _put_derived(index: PackageIndex, change: Change) -> None:
    """Whether the package has files that are made of wheels; only changes of such files change it."""
    if any(DERIVED in each.attrs for each in change.added):
        packages.set_derived(index.tx, index.package.id, True)
    elif any(DERIVED in each.attrs for each in change.removed):
        left = files.files_of_package(index.tx, index.package.id)
        packages.set_derived(index.tx, index.package.id, any(DERIVED in each.attrs for each in left))


def _put_about(index: PackageIndex) -> None:
    """What the highest version says of the package."""
    keys = versions.newest_keys(index.tx, index.package.id, VersionState.LIVE, 1)
    version = versions.find_version(index.tx, index.package.id, keys[0]) if keys else None
    if version is None:
        index.remove_fragment(ABOUT, b"", "")
    else:
        about = {key: version.meta[key] for key in ABOUT_KEYS if key in version.meta}
        index.put_fragment(ABOUT, b"", "", _encode({**about, "version": version.text}))
