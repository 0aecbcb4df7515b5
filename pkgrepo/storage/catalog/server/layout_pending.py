"""
What the readable layout does not show yet: pending entries, and the events after the cursor.

A pending entry is removed once it is shown. There is at most one entry per package and version. What was shown of the
events up to the mark is on the disk; of those between mark and cursor, a power cut may lose or empty files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages.events import last_seq_of_content
from pkgrepo.storage.catalog.rows import every, rows

from . import settings

CURSOR = "readable_layout_cursor"  # the setting with the sequence number of the last event that was handled
MARK = "readable_layout_mark"  # the same of the last one that was handled when all files were made durable


@frozen(order=True)
class Entry:
    """
    Something that the layout shows.

    It is a version of a package; with an empty ``version`` the package's documents that belong to no version; with an
    empty ``package_key`` too, the repository's own document. With an empty ``package_key`` alone, it is the file that
    belongs to no package and has ``version`` as its path. ``whole``: the package with all its versions.
    """

    repository_id: int
    package_key: str = ""
    version_key: str = ""
    version: str = ""
    whole: bool = False

    @classmethod
    def of_file(cls, repository_id: int, path: str) -> Entry:
        """The entry of a file that belongs to no package."""
        return cls(repository_id, "", path, path)

    @property
    def of_repository(self) -> bool:
        """Whether it is the repository's own document."""
        return not self.package_key and not self.version


_ENTRY, _to_entry = rows(Entry, "layout_pending")


@frozen
class Backlog:
    """
    How far the layout is behind: the number of unhandled events, and of entries that wait for their first attempt.

    ``failed`` is the number of entries that could not be shown, by catalog key of the storage; ``reason`` is the reason
    for one of them.
    """

    events: int
    waiting: int
    failed: Mapping[int, int]
    reason: str

    @property
    def behind(self) -> int:
        """The number of events and entries that were not tried yet."""
        return self.events + self.waiting


def cursor(r: Reader) -> int:
    """The sequence number of the last event that was handled."""
    return int(settings.get(r, CURSOR) or 0)


def move_cursor(tx: Transaction, seq: int, failed: Mapping[Entry, str]) -> None:
    """Move the cursor to ``seq``, and add the entries that could not be shown, with the reasons."""
    _put_failed(tx, failed)
    settings.put(tx, CURSOR, str(seq))


def move_mark(tx: Transaction, seq: int) -> None:
    """Move the mark to ``seq``, the cursor at a time after which everything was made durable."""
    settings.put(tx, MARK, str(seq))


def return_to_mark(tx: Transaction) -> int:
    """
    Move the cursor back to the mark, for the events after it to be handled again. Returns the number of these.

    Without a mark, as in a catalog of an earlier release, it is set to the cursor.
    """
    seq = cursor(tx)
    mark = settings.get(tx, MARK)
    if mark is None:
        move_mark(tx, seq)
        return 0
    if int(mark) < seq:
        settings.put(tx, CURSOR, mark)
    return max(0, seq - int(mark))


def record_attempts(tx: Transaction, tried: Iterable[Entry], failed: Mapping[Entry, str]) -> None:
    """Remove the entries in ``tried`` that did not fail, and store the reasons of those that failed."""
    for each in tried:
        if each not in failed:
            tx.execute(
                """
                DELETE FROM layout_pending
                WHERE repository_id = ? AND package_key = ? AND version_key = ? AND version = ? AND whole <= ?
                """,
                (each.repository_id, each.package_key, each.version_key, each.version, int(each.whole)),
            )
    _put_failed(tx, failed)


def list_pending(r: Reader, after: Entry | None, limit: int) -> list[Entry]:
    """A page of pending entries in their order, beginning after the entry ``after``."""
    first = after or Entry(0)
    return every(
        r,
        _to_entry,
        f"""
        {_ENTRY} WHERE (repository_id, package_key, version_key, version) > (?, ?, ?, ?)
        ORDER BY repository_id, package_key, version_key, version LIMIT ?
        """,
        (first.repository_id, first.package_key, first.version_key, first.version, limit),
    )


def backlog(r: Reader) -> Backlog:
    """How far the layout is behind. Reads all pending entries."""
    found = r.all(
        """
        SELECT COALESCE(r.storage_id, 0), p.reason = '', COUNT(*), MAX(p.reason)
        FROM layout_pending p LEFT JOIN repository r ON r.id = p.repository_id
        GROUP BY COALESCE(r.storage_id, 0), p.reason = ''
        """
    )
    handled = cursor(r)
    return Backlog(
        events=last_seq_of_content(r, handled) - handled,
        waiting=sum(count for _, waiting, count, _ in found if waiting),
        failed={storage_id: count for storage_id, waiting, count, _ in found if not waiting},
        reason=next((reason for _, waiting, _, reason in found if not waiting), ""),
    )


def add_repositories(tx: Transaction, repository_ids: Sequence[int]) -> None:
    """Add entries for whole repositories: their own documents, each package with all versions, and plain files."""
    for repository_id in repository_ids:
        tx.execute(
            "INSERT INTO layout_pending (repository_id) VALUES (?) ON CONFLICT DO NOTHING",
            (repository_id,),
        )
        tx.execute(
            """
            INSERT INTO layout_pending (repository_id, package_key, whole)
            SELECT repository_id, key, 1 FROM package WHERE repository_id = ?
            ON CONFLICT (repository_id, package_key, version_key, version) DO UPDATE SET whole = 1
            """,
            (repository_id,),
        )
        tx.execute(
            """
            INSERT INTO layout_pending (repository_id, version_key, version)
            SELECT repository_id, path, path FROM file WHERE repository_id = ? AND package_id IS NULL
            ON CONFLICT DO NOTHING
            """,
            (repository_id,),
        )


def remove_repositories(tx: Transaction, repository_ids: Sequence[int]) -> None:
    """Remove the entries of repositories that the layout shows no more."""
    for repository_id in repository_ids:
        tx.execute("DELETE FROM layout_pending WHERE repository_id = ?", (repository_id,))


def _put_failed(tx: Transaction, failed: Mapping[Entry, str]) -> None:
    for each, reason in failed.items():
        tx.execute(
            """
            INSERT INTO layout_pending (repository_id, package_key, version_key, version, whole, reason)
            VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, package_key, version_key, version) DO UPDATE
            SET whole = CASE WHEN excluded.whole = 1 THEN 1 ELSE layout_pending.whole END, reason = excluded.reason
            """,
            (each.repository_id, each.package_key, each.version_key, each.version, int(each.whole), reason),
        )
