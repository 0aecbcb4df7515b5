"""
Retired names: those of packages that a hosted repository had, and has not any more.

Somebody else could publish a package under such a name to an upstream, and clients that still install it would get
that. So a name stays that of the hosted repository until it is released, or published there again.

=========  =================================================  ============================================
name       becomes                                            by
=========  =================================================  ============================================
of a       retired                                            the removal of the package with its last
package                                                       version
retired    that of a package; or nobody's, and upstreams are  a publish; a release by a caller who may edit the
           asked for it                                       repository
=========  =================================================  ============================================
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import RepositoryType
from pkgrepo.storage.catalog.rows import at, every, exists

RETIRED: Final = -1  # in place of the serial of a package


@frozen
class RetiredName:
    """A retired name (the key of the package), and when the package was removed."""

    key: str
    retired_at: datetime


def ownership(r: Reader, repository_id: int, key: str) -> int | None:
    """
    The serial of a package, ``RETIRED`` if its name is; None if the repository has never had it.

    A package with the serial 0 does not count: an image of which only blobs were uploaded.
    """
    row = r.one("SELECT serial FROM package WHERE repository_id = ? AND key = ? AND serial > 0", (repository_id, key))
    if row is not None:
        return int(row[0])
    sql = "SELECT 1 FROM retired_name WHERE repository_id = ? AND package_key = ?"
    return RETIRED if exists(r, sql, (repository_id, key)) else None


def owned_keys(r: Reader, repository_ids: Iterable[int]) -> set[str]:
    """The keys of all packages that repositories have or had: no upstream is asked for them."""
    sql = """
        SELECT key FROM package WHERE repository_id = ? AND serial > 0
        UNION SELECT package_key FROM retired_name WHERE repository_id = ?
    """
    return {key for each in repository_ids for (key,) in r.all(sql, (each, each))}


def list_retired(r: Reader, repository_id: int, *, after: str = "", limit: int = 50) -> list[RetiredName]:
    """A page of retired names after the key ``after``, ordered by key."""
    return every(
        r,
        lambda row: RetiredName(row[0], at(row[1])),
        """
        SELECT package_key, retired_at FROM retired_name WHERE repository_id = ? AND package_key > ?
        ORDER BY package_key LIMIT ?
        """,
        (repository_id, after, limit),
    )


def retire(tx: Transaction, package_id: int) -> None:
    """Retire the name of a package that is about to be removed, if its repository is hosted and owned the name."""
    tx.send(
        """
        INSERT INTO retired_name (repository_id, package_key, retired_at)
        SELECT p.repository_id, p.key, p.updated_at FROM package p JOIN repository r ON r.id = p.repository_id
        WHERE p.id = ? AND r.type = ? AND p.serial > 0
        ON CONFLICT (repository_id, package_key) DO UPDATE SET retired_at = excluded.retired_at
        """,
        (package_id, RepositoryType.HOSTED.value),
    )


def release(tx: Transaction, repository_id: int, key: str) -> bool:
    """Forget that a name is retired; returns whether it was."""
    return bool(
        tx.execute("DELETE FROM retired_name WHERE repository_id = ? AND package_key = ?", (repository_id, key))
    )
