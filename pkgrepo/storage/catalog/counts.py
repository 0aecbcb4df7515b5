"""How long the lists are that are shown in pages."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.interfaces import Reader, Value
from pkgrepo.storage.catalog.people.identity import name_key

from .columns import like


def count_users(r: Reader, search: str = "") -> int:
    """How many users ``list_users`` goes through."""
    if not search:
        return _count(r, "SELECT COUNT(*) FROM account")
    return _count(
        r,
        r"""
        SELECT COUNT(*) FROM account
        WHERE key LIKE ? ESCAPE '\' OR lower(name) LIKE ? ESCAPE '\' OR lower(email) LIKE ? ESCAPE '\'
        """,
        [like(name_key(search))] * 3,
    )


def count_tokens(r: Reader, user_id: int) -> int:
    """How many tokens a user has, revoked ones too."""
    return _count(r, "SELECT COUNT(*) FROM token WHERE user_id = ?", (user_id,))


def count_packages(r: Reader, repository_id: int, search: str = "") -> int:
    """How many packages ``list_packages`` goes through."""
    if not search:
        return _count(r, "SELECT COUNT(*) FROM package WHERE repository_id = ?", (repository_id,))
    return _count(
        r,
        r"SELECT COUNT(*) FROM package WHERE repository_id = ? AND key LIKE ? ESCAPE '\'",
        (repository_id, like(search.lower())),
    )


def count_versions(r: Reader, package_id: int) -> int:
    """How many versions a package has."""
    return _count(r, "SELECT COUNT(*) FROM version WHERE package_id = ?", (package_id,))


def _count(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> int:
    row = r.one(sql, parameters)
    assert row is not None
    return int(row[0])
