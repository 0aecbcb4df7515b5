"""How far a repository follows the wheels of the one that it belongs to, and which of them it cannot convert."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import every, exists, find, rows

_UNCONVERTED = "SELECT path, sha256, package_key, reason FROM unconverted_wheel"


BEGUN: Final = -1  # nothing was followed yet, and readers wait for it
TRIED: Final = -2  # the same, but something went wrong, and readers get what there is


@frozen
class Followed:
    """
    The last event of the other repository that was followed, and whether wheels were converted at that time.

    ``seq`` may also be ``BEGUN`` or ``TRIED``.
    """

    seq: int
    converting: bool

    @property
    def complete(self) -> bool:
        """Whether all wheels were looked at."""
        return self.seq >= 0


_FOLLOWED, _to_followed = rows(Followed, "followed_wheels")


@frozen
class Unconverted:
    """A wheel that cannot be converted: its path in the other repository, and why."""

    path: str
    sha256: str
    package_key: str
    reason: str


def find_followed(r: Reader, repository_id: int) -> Followed | None:
    """How far a repository follows; None if it has never followed all wheels."""
    return find(r, _to_followed, f"{_FOLLOWED} WHERE repository_id = ?", (repository_id,))


def put_followed(tx: Transaction, repository_id: int, followed: Followed) -> None:
    """Record how far a repository follows. :raises NotFound: it was removed meanwhile"""
    _check_exists(tx, repository_id)
    tx.send(
        """
        INSERT INTO followed_wheels (repository_id, seq, converting) VALUES (?, ?, ?)
        ON CONFLICT (repository_id) DO UPDATE SET seq = excluded.seq, converting = excluded.converting
        """,
        (repository_id, followed.seq, int(followed.converting)),
    )


def begin_following(tx: Transaction, repository_id: int) -> None:
    """Have wheels converted from now on, and those that are there. :raises NotFound: it was removed meanwhile"""
    followed = find_followed(tx, repository_id)
    if followed is None or not followed.converting:
        put_followed(tx, repository_id, Followed(BEGUN, converting=True))


def begun_channels(r: Reader) -> set[int]:
    """The ids of the repositories whose wheels were not all looked at yet."""
    return set(every(r, lambda row: int(row[0]), "SELECT repository_id FROM followed_wheels WHERE seq < 0"))


def list_unconverted(r: Reader, repository_id: int, *, after: str = "", limit: int = 1000) -> list[Unconverted]:
    """At most ``limit`` wheels that cannot be converted, after a path, ordered by path."""
    sql = f"{_UNCONVERTED} WHERE repository_id = ? AND path > ? ORDER BY path LIMIT ?"
    return every(r, lambda row: Unconverted(*row), sql, (repository_id, after, limit))


def unconverted_of(r: Reader, repository_id: int, package_key: str) -> list[Unconverted]:
    """The wheels of a package that cannot be converted, ordered by path."""
    sql = f"{_UNCONVERTED} WHERE repository_id = ? AND package_key = ? ORDER BY path"
    return every(r, lambda row: Unconverted(*row), sql, (repository_id, package_key))


def put_unconverted(tx: Transaction, repository_id: int, wheels: Iterable[Unconverted]) -> None:
    """Record that wheels cannot be converted. :raises NotFound: the repository was removed meanwhile"""
    _check_exists(tx, repository_id)
    for each in wheels:
        tx.send(
            """
            INSERT INTO unconverted_wheel (repository_id, path, sha256, package_key, reason) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, path)
            DO UPDATE SET sha256 = excluded.sha256, package_key = excluded.package_key, reason = excluded.reason
            """,
            (repository_id, each.path, each.sha256, each.package_key, each.reason),
        )


def remove_unconverted(tx: Transaction, repository_id: int, path: str) -> None:
    """Forget what is recorded about a wheel, if anything."""
    tx.send("DELETE FROM unconverted_wheel WHERE repository_id = ? AND path = ?", (repository_id, path))


def _check_exists(tx: Transaction, repository_id: int) -> None:
    if not exists(tx, "SELECT 1 FROM repository WHERE id = ?", (repository_id,)):
        raise NotFound("repository", str(repository_id))
