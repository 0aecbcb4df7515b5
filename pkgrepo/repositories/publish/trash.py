"""What the catalog knew of a deleted version, as the trash keeps it; L{upkeep.trash} restores it."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Package, Version
from pkgrepo.storage.catalog.packages import files, tags, versions
from pkgrepo.storage.catalog.server.trash import Kept

VERSION = "version"  # the kinds of items
FILES = "files"


@frozen
class TrashedVersion:
    """A version with the files that were removed, and the tags that pointed to it; its package as it was then."""

    package: Package
    version: Version
    files: Sequence[File]
    tags: Sequence[str] = ()


def keep_versions(r: Reader, package: Package, version_ids: Sequence[int]) -> list[Kept]:
    """What the trash keeps of whole versions, which are not removed yet."""
    found = versions.versions_by_id(r, version_ids)
    of_version = files.files_of_versions(r, version_ids)
    named = tags.names_by_version(r, package.id)
    return [keep_files(package, each, of_version.get(each.id, ()), tags=named.get(each.id, ())) for each in found]


def keep_files(package: Package, version: Version, doomed: Sequence[File], *, tags: Sequence[str] | None) -> Kept:
    """What the trash keeps of files of a version; without ``tags`` the version itself stays."""
    return Kept(
        kind=FILES if tags is None else VERSION,
        name=version.text,
        data=TrashedVersion(package, version, tuple(doomed), tuple(tags or ())),
        size=sum(each.size for each in doomed),
        sha256s=[each.sha256 for each in doomed],
    )
