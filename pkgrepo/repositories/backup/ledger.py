"""
What a backup has to copy: the blobs of a copy of the catalog, compared with the copies that the place has.

Both may be millions, so they are compared in a temporary database. Every method blocks: call it on the disk threads. A
call goes on in its thread when a backup is cancelled, so one waits for the other, and ``close`` ends what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

import apsw
from attrs import frozen

from .manifests import LOST, Entry

_DIGEST: Final = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})\.")  # in the locators that have one

_TABLES: Final = """
CREATE TABLE present (locator TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE copy (
    sha256 TEXT NOT NULL, locator TEXT NOT NULL, size INTEGER NOT NULL, rank INTEGER NOT NULL,
    PRIMARY KEY (sha256, locator)
) WITHOUT ROWID;
CREATE TABLE used (locator TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE wanted (sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, locator TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
"""


@frozen
class Wanted:
    """A blob that the backup has to have: the copy in the place (empty: none), and where the server has it."""

    sha256: str
    size: int
    locator: str
    sources: Sequence[tuple[int, str]]  # the id of a storage, and the locator there


class Ledger:
    """A temporary database at ``path``; ``catalog`` is the copy of the catalog."""

    def __init__(self, path: Path, catalog: Path | None = None) -> None:
        self._lock = Lock()
        self._database = apsw.Connection(str(path))
        self._database.pragma("synchronous", "off")
        self._database.pragma("journal_mode", "off")
        self._database.execute(_TABLES)
        self._catalog = catalog
        if catalog is not None:
            self._database.execute("ATTACH ? AS catalog", (str(catalog),))
            self._database.execute(
                """
                INSERT INTO wanted (sha256, size)
                SELECT lower(hex(sha256)), max(size) FROM catalog.blob WHERE state <> 'deleting' GROUP BY sha256
                """
            )

    def close(self) -> None:
        """Close it; its file may be removed. What another thread still does here ends with an error."""
        self._database.interrupt()
        with self._lock:
            self._database.close()

    @contextmanager
    def _alone(self) -> Iterator[apsw.Connection]:
        """The database in a transaction, for one thread at a time."""
        with self._lock, self._database:
            yield self._database

    def add_present(self, found: Iterable[tuple[str, int]]) -> None:
        """Note copies that the place has, by locator and size."""
        rows = list(found)
        with self._alone() as database:
            database.executemany("INSERT OR IGNORE INTO present VALUES (?, ?)", rows)
            named = [(match[1], locator, size) for locator, size in rows if (match := _DIGEST.match(locator))]
            database.executemany("INSERT OR IGNORE INTO copy VALUES (?, ?, ?, 0)", named)

    def add_listed(self, entries: Iterable[Entry], rank: int) -> None:
        """Note the digests of copies by the list of an earlier backup; of several, that of the highest rank is used."""
        with self._alone() as database:
            database.executemany(
                "INSERT INTO copy VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET rank = max(rank, excluded.rank)",
                ((each.sha256, each.locator, each.size, rank) for each in entries if each.locator != LOST),
            )

    def match(self) -> None:
        """Give each wanted blob the copy that is there, whole by its size."""
        with self._alone() as database:
            database.execute(
                """
                UPDATE wanted SET locator = coalesce((
                    SELECT c.locator FROM copy c JOIN present p ON p.locator = c.locator AND p.size = c.size
                    WHERE c.sha256 = wanted.sha256 AND c.size = wanted.size ORDER BY c.rank DESC, c.locator LIMIT 1
                ), '')
                """
            )

    def totals(self) -> tuple[int, int]:
        """How many blobs are wanted, and their bytes."""
        with self._alone() as database:
            row: Any = database.execute("SELECT count(*), coalesce(sum(size), 0) FROM wanted").fetchall()[0]
        return int(row[0]), int(row[1])

    def page(self, after: str, limit: int) -> list[Wanted]:
        """A page of the wanted blobs, ordered by sha256."""
        found = []
        with self._alone() as database:
            rows: list[Any] = database.execute(
                "SELECT sha256, size, locator FROM wanted WHERE sha256 > ? ORDER BY sha256 LIMIT ?", (after, limit)
            ).fetchall()
            for sha256, size, locator in rows:
                sources: list[Any] = database.execute(
                    "SELECT storage_id, locator FROM catalog.blob WHERE sha256 = ? ORDER BY storage_id",
                    (bytes.fromhex(sha256),),
                ).fetchall()
                found.append(Wanted(sha256, size, locator, [(int(storage), str(place)) for storage, place in sources]))
        return found

    def set_locators(self, copied: Iterable[tuple[str, str]]) -> None:
        """Note the copies that were made: sha256 and locator, which is ``LOST`` for one that could not be."""
        with self._alone() as database:
            rows = [(locator, sha256) for sha256, locator in copied]
            database.executemany("UPDATE wanted SET locator = ? WHERE sha256 = ?", rows)

    def write_list(self, path: Path) -> None:
        """Write the list of the wanted blobs. :raises OSError: it cannot be written"""
        with self._alone() as database, path.open("x", encoding="ascii", newline="") as file:
            rows: Any = database.execute("SELECT sha256, size, locator FROM wanted ORDER BY sha256")
            for sha256, size, locator in rows:
                file.write(Entry(sha256, size, locator).line)

    def add_used(self, locators: Iterable[str]) -> None:
        """Note copies that a kept backup has."""
        with self._alone() as database:
            database.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((each,) for each in locators))

    def unused(self, after: str, limit: int) -> list[str]:
        """A page of the copies that are present and that no kept backup has, ordered by locator."""
        sql = """
            SELECT locator FROM present WHERE locator > ? AND locator NOT IN (SELECT locator FROM used)
            ORDER BY locator LIMIT ?
        """
        with self._alone() as database:
            return [str(locator) for (locator,) in database.execute(sql, (after, limit))]
