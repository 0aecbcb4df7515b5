"""Fragments: prerendered parts of a package's documents, which are joined in the order of (sort, key)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Fragment
from pkgrepo.storage.catalog.rows import batches, every, placeholders


def put_fragment(tx: Transaction, package_id: int, kind: str, sort: bytes, key: str, body: bytes) -> None:
    """Upsert one fragment."""
    put_fragments(tx, package_id, [(kind, Fragment(sort, key, body))])


def put_fragments(tx: Transaction, package_id: int, new: Sequence[tuple[str, Fragment]]) -> None:
    """Upsert fragments, given with their kinds, by statements for many; no two have the same kind, sort and key."""
    for some in batches(new):
        values: list[Value] = []
        for kind, fragment in some:
            values += (package_id, kind, *fragment)
        tx.send(
            f"""
            INSERT INTO fragment (package_id, kind, sort, key, body) VALUES {placeholders(len(some), "(?, ?, ?, ?, ?)")}
            ON CONFLICT (package_id, kind, sort, key) DO UPDATE SET body = excluded.body
            """,
            values,
        )


def remove_fragment(tx: Transaction, package_id: int, kind: str, sort: bytes, key: str) -> None:
    """Remove one fragment if it exists."""
    tx.send(
        "DELETE FROM fragment WHERE package_id = ? AND kind = ? AND sort = ? AND key = ?",
        (package_id, kind, sort, key),
    )


def find_fragment(r: Reader, package_id: int, kind: str, sort: bytes, key: str) -> bytes | None:
    """The body of one fragment, or None."""
    row = r.one(
        "SELECT body FROM fragment WHERE package_id = ? AND kind = ? AND sort = ? AND key = ?",
        (package_id, kind, sort, key),
    )
    return None if row is None else row[0]


def list_fragments(r: Reader, package_id: int, kind: str) -> list[Fragment]:
    """All fragments of one kind of a package, in order."""
    return every(
        r,
        Fragment._make,
        "SELECT sort, key, body FROM fragment WHERE package_id = ? AND kind = ? ORDER BY sort, key",
        (package_id, kind),
    )


def all_fragments(r: Reader, package_id: int) -> list[tuple[str, Fragment]]:
    """All fragments of a package as pairs of kind and fragment, in order."""
    rows = r.all(
        "SELECT kind, sort, key, body FROM fragment WHERE package_id = ? ORDER BY kind, sort, key", (package_id,)
    )
    return [(row[0], Fragment._make(row[1:])) for row in rows]


def fragments_after(r: Reader, repository_id: int, kind: str, after: str, limit: int) -> list[tuple[str, bytes | None]]:
    """
    A page of packages after the key ``after``, ordered by key, as pairs (package key, fragment body or None).

    Only for kinds of which a package has at most one fragment.
    """
    return r.all(
        """
        SELECT p.key, f.body FROM package p LEFT JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? AND p.key > ? ORDER BY p.key LIMIT ?
        """,
        (kind, repository_id, after, limit),
    )


def find_single_fragment(r: Reader, repository_id: int, key: str, kind: str) -> bytes | None:
    """The fragment of a package by package key, or None. Only for kinds of which a package has at most one."""
    row = r.one(
        """
        SELECT f.body FROM package p JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? AND p.key = ?
        """,
        (kind, repository_id, key),
    )
    return None if row is None else row[0]


def fragments_by_package(r: Reader, repository_id: int, kind: str) -> list[tuple[str, list[Fragment]]]:
    """
    All fragments of one kind of a repository, by package key and in order, of packages that have any.

    Takes 2 us for each fragment: call it on a thread, or rarely.
    """
    rows = r.all(
        """
        SELECT p.key, f.sort, f.key, f.body FROM package p JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? ORDER BY p.key, f.sort, f.key
        """,
        (kind, repository_id),
    )
    return [(key, [Fragment(*row[1:]) for row in some]) for key, some in groupby(rows, key=itemgetter(0))]
