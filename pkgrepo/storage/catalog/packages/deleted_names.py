"""
Names that are taken by what was deleted: paths of files, and names of packages; from one server to another one.

A proxy notes those of the repository that it follows. They count once it is a hosted repository.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.blobs.blobs import REWRITTEN
from pkgrepo.storage.catalog.packages import files, packages, release_batches
from pkgrepo.storage.catalog.packages.events import append_event
from pkgrepo.storage.catalog.packages.files import Tombstone
from pkgrepo.storage.catalog.rows import every, rows

_FILE, _PACKAGE = "f", "p"  # how the keys of the two kinds begin
_TOMBSTONE, _to_tombstone = rows(Tombstone, "tombstone", sha256=bytes.hex)

MOST_AT_ONCE: Final = 1000  # in a page


@frozen
class DeletedName:
    """
    A name that is taken: the path of a file of a package, with the digest of its bytes.

    Without a path and digest it is the name of the package itself, which was removed.
    """

    package_key: str
    path: str
    sha256: str
    deleted_at: datetime

    @property
    def key(self) -> str:
        """By which they are in order: files before packages."""
        return f"{_FILE}{self.path}" if self.path else f"{_PACKAGE}{self.package_key}"


def list_deleted(
    r: Reader, repository_id: int, *, after: str = "", limit: int = MOST_AT_ONCE, package: str = ""
) -> list[DeletedName]:
    """A page of the deleted names after a key; with ``package`` (a key) only those of that package."""
    kind, last = after[:1], after[1:]
    gone: Sequence[Tombstone] = ()
    if kind == _PACKAGE:
        pass
    elif package:
        of_package = files.tombstones_of_package(r, repository_id, package)
        gone = [each for each in of_package if each.path > last][:limit]
    else:
        sql = f"{_TOMBSTONE} WHERE repository_id = ? AND path > ? AND package_key <> '' ORDER BY path LIMIT ?"
        gone = every(r, _to_tombstone, sql, (repository_id, last, limit))
    found = [DeletedName(each.package_key, each.path, each.sha256, each.deleted_at) for each in gone]
    left, begin = limit - len(found), last if kind == _PACKAGE else ""
    if not left:
        return found
    if package:
        one = packages.find_retired(r, repository_id, package)
        retired = [one] if one is not None and package > begin else []
    else:
        retired = packages.list_retired(r, repository_id, after=begin, limit=left)
    return [*found, *(DeletedName(each.key, "", "", each.retired_at) for each in retired)]


def adopt_deleted(tx: Transaction, repository_id: int, names: Sequence[DeletedName], now_ms: int) -> None:
    """
    Note deleted names in a proxy. None is later than now, and none is taken from a file that is there.

    Names of packages are noted also while something of them is kept: it may go in any order.
    """
    new: dict[str, None] = {}
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    for each in names:
        at = min(each.deleted_at, now)
        if each.path:
            gone = Tombstone(each.path, each.package_key, each.sha256, at, SYSTEM.name)
            changed = files.restore_tombstone(tx, repository_id, gone)
        else:
            changed = packages.note_retired(tx, repository_id, each.package_key, round(at.timestamp() * 1000))
        if changed:
            new[each.package_key] = None
    for key in new:
        _tell_layout(tx, repository_id, key, now_ms)


def take_back(tx: Transaction, repository_id: int, package_key: str, paths: Collection[str], now_ms: int) -> None:
    """Forget that the paths of files of a package are taken: the files are back at the source."""
    release_batches.remove_tombstones(tx, repository_id, paths)
    _tell_layout(tx, repository_id, package_key, now_ms)


def _tell_layout(tx: Transaction, repository_id: int, package_key: str, now_ms: int) -> None:
    append_event(
        tx,
        repository_id=repository_id,
        package_id=None,
        package_key=package_key,
        version_key="",
        kind=REWRITTEN,
        data={},
        actor=SYSTEM,
        now_ms=now_ms,
    )
