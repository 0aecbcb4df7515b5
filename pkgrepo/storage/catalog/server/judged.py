"""
What rules were found to hide of packages: lists over all packages leave that out, and read no facts for it.

Only rules that need more than a name, a version and a source are noted here; lists decide over the others themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import dump, every, load, number, rows

MOST: Final = 5000  # packages of a repository; of more, the oldest are shown again until they are judged anew

Opens = Mapping[str, int | None]  # when each hidden version is shown again by itself (ms; None: never), by its text


@frozen
class Judged:
    """What the rules with a ``stamp`` hide of a package."""

    package_key: str
    stamp: str
    versions: Opens


_JUDGED, _judged = rows(Judged, "judged", versions=load)


def find_judged(r: Reader, repository_id: int, package_key: str, stamp: str) -> Opens | None:
    """What is noted of a package; None for nothing."""
    row = r.one(
        "SELECT versions FROM judged WHERE repository_id = ? AND package_key = ? AND stamp = ?",
        (repository_id, package_key, stamp),
    )
    found: Opens | None = None if row is None else load(row[0])
    return found


def list_judged(r: Reader, repository_id: int) -> list[Judged]:
    """What is noted of all packages of a repository."""
    return every(r, _judged, f"{_JUDGED} WHERE repository_id = ?", (repository_id,))


def judged_serial(r: Reader, repository_id: int) -> int:
    """A number that grows with each change of what is noted; 0 if nothing was ever."""
    return number(r, "SELECT COALESCE(MAX(seq), 0) FROM judged WHERE repository_id = ?", (repository_id,))


def put_judged(
    tx: Transaction, repository_id: int, package_key: str, stamp: str, versions: Opens, *, whole: bool = True
) -> None:
    """Note what rules hide of a package: in place of what they hid before, or beside it if it is not the ``whole``."""
    if not whole:
        versions = {**(find_judged(tx, repository_id, package_key, stamp) or {}), **versions}
    tx.execute(
        "DELETE FROM judged WHERE repository_id = ? AND package_key = ? AND stamp = ?",
        (repository_id, package_key, stamp),
    )
    tx.execute(
        """
        INSERT INTO judged (repository_id, package_key, stamp, versions)
        SELECT id, ?, ?, ? FROM repository WHERE id = ?
        """,
        (package_key, stamp, dump(dict(versions)), repository_id),
    )
    surplus = number(tx, "SELECT COUNT(*) FROM judged WHERE repository_id = ?", (repository_id,)) - MOST
    if surplus > 0:
        tx.execute(
            "DELETE FROM judged WHERE seq IN (SELECT seq FROM judged WHERE repository_id = ? ORDER BY seq LIMIT ?)",
            (repository_id, surplus),
        )
