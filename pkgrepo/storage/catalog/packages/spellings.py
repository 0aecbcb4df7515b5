"""Spellings: what the names of packages have in common that people mistake for each other."""

from __future__ import annotations

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import VersionState
from pkgrepo.storage.catalog.rows import column


def put_spelling(tx: Transaction, repository_id: int, package_id: int, spelling: str) -> None:
    """Record the spelling of a package, which never changes. It is removed with the package."""
    tx.send(
        """
        INSERT INTO package_spelling (package_id, repository_id, spelling) VALUES (?, ?, ?)
        ON CONFLICT (package_id) DO NOTHING
        """,
        (package_id, repository_id, spelling),
    )


def live_names(r: Reader, repository_id: int, spelling: str) -> list[str]:
    """The names of the packages with this spelling that have a live version, in order."""
    return column(
        r,
        """
        SELECT p.name FROM package_spelling s JOIN package p ON p.id = s.package_id
        WHERE s.repository_id = ? AND s.spelling = ?
          AND EXISTS (SELECT 1 FROM version v WHERE v.package_id = p.id AND v.state = ?)
        ORDER BY p.name
        """,
        (repository_id, spelling, VersionState.LIVE),
    )
