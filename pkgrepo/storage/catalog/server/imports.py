"""
The journal of imports: what was taken in from a source, and what was left out.

A package is noted once everything of it was taken in, or left out for good, with a fingerprint of what the source said.
Another run has nothing to do for a package whose fingerprint is the same. What failed for a reason that may pass is
listed among what is left out, and its package is not noted.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import every, insert, put, rows, scalar


@frozen
class LeftOut:
    """Something of a source that was not taken in; ``item`` is empty for a whole package."""

    package: str
    item: str
    reason: str


_LEFT_OUT, _left_out = rows(LeftOut, "import_left_out")


def ensure_import(tx: Transaction, repository_id: int, kind: str, source: str) -> int:
    """Return the id of the journal of a source that is taken into a repository."""
    found = scalar(
        tx,
        "SELECT id FROM import_source WHERE repository_id = ? AND kind = ? AND source = ?",
        (repository_id, kind, source),
    )
    return (
        insert(tx, "import_source", repository_id=repository_id, kind=kind, source=source)
        if found is None
        else int(found)
    )


def find_fingerprint(r: Reader, import_id: int, name: str) -> tuple[str, int] | None:
    """The fingerprint of a package that was taken in, and the number of its files; None if it was not."""
    row = r.one("SELECT fingerprint, files FROM import_package WHERE import_id = ? AND name = ?", (import_id, name))
    return None if row is None else (row[0], row[1])


def note_package(
    tx: Transaction,
    import_id: int,
    name: str,
    fingerprint: str | None,
    files: int,
    left_out: Sequence[LeftOut],
    now_ms: int,
) -> None:
    """Note what has become of a package; its ``fingerprint`` is None if another run has to try again."""
    tx.execute("DELETE FROM import_left_out WHERE import_id = ? AND package = ?", (import_id, name))
    for each in {(each.package, each.item): each for each in left_out}.values():
        put(
            tx,
            "import_left_out",
            "import_id, package, item",
            import_id=import_id,
            package=each.package,
            item=each.item,
            reason=each.reason,
        )
    if fingerprint is None:
        tx.execute("DELETE FROM import_package WHERE import_id = ? AND name = ?", (import_id, name))
        return
    put(
        tx,
        "import_package",
        "import_id, name",
        import_id=import_id,
        name=name,
        fingerprint=fingerprint,
        files=files,
        updated_at=now_ms,
    )


def left_out_of(r: Reader, import_id: int, package: str) -> list[LeftOut]:
    """What was left out of a package, ordered by file."""
    return every(r, _left_out, f"{_LEFT_OUT} WHERE import_id = ? AND package = ? ORDER BY item", (import_id, package))
