"""
What packages say of themselves, as searches read it: a short text for each package, indexed by trigrams.

The text is the name of the package, and the summary and the keywords of its highest live version; its length is
bounded. It is written in the transaction that changes the package. Packages that have none yet, since they are from an
earlier release or have no versions (images), get theirs from L{fill}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Version, VersionState
from pkgrepo.storage.catalog.rows import column

from . import versions

LONGEST: Final = 500  # characters; most summaries have less than 100
_SUMMARIES: Final = ("summary", "description")  # the first that there is; some formats have a long text in the second


def text_of(name: str, meta: Mapping[str, Any]) -> str:
    """The text of a package from its name and the metadata of a version."""
    summary = next((text for key in _SUMMARIES if isinstance(text := meta.get(key), str) and text.strip()), "")
    keywords = meta.get("keywords")
    words = [each for each in keywords if isinstance(each, str)] if isinstance(keywords, Sequence) else []
    if isinstance(keywords, str):
        words = [keywords]
    # Keywords come before a long summary: they are what the package is meant to be found by.
    joined = " ".join((name, *(each[:LONGEST] for each in words[:LONGEST]), summary[: 4 * LONGEST]))
    return " ".join(joined.split())[:LONGEST].lower()


def put_about(tx: Transaction, package_id: int, name: str, known: Version | None = None) -> None:
    """Bring the text of a package up to date; ``known`` is the version that was changed, if it was one."""
    keys = versions.newest_keys(tx, package_id, VersionState.LIVE, 1)
    found = known if known is not None and keys == [known.key] else None
    if found is None and keys:
        found = versions.find_version(tx, package_id, keys[0])
    text = text_of(name, {} if found is None else found.meta)
    tx.send(
        """
        INSERT INTO package_about (package_id, text) VALUES (?, ?)
        ON CONFLICT (package_id) DO UPDATE SET text = excluded.text WHERE package_about.text <> excluded.text
        """,
        (package_id, text),
    )


def without_about(r: Reader, after: int, limit: int) -> list[int]:
    """The ids of packages behind ``after`` that have no text yet. Reads the index of all packages in the worst case."""
    sql = """
        SELECT p.id FROM package p
        WHERE p.id > ? AND NOT EXISTS (SELECT 1 FROM package_about a WHERE a.package_id = p.id) ORDER BY p.id LIMIT ?
    """
    return column(r, sql, (after, limit))


def fill(tx: Transaction, package_ids: Sequence[int]) -> None:
    """Write the texts of packages that have none; those that were removed meanwhile are skipped."""
    for package_id in package_ids:
        row = tx.one("SELECT name FROM package WHERE id = ?", (package_id,))
        if row is not None:
            put_about(tx, package_id, row[0])
