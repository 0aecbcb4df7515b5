"""What packages are told apart by in lists and searches: what they say that they are, licence, withdrawn versions."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import batches, placeholders


@frozen
class Facts:
    """
    Of the highest live version of a package: summary and licence, each at most 300 characters and maybe empty.

    ``withdrawn`` tells whether a version is yanked or deprecated.
    """

    summary: str = ""
    license: str = ""
    withdrawn: bool = False


NONE = Facts()


@frozen
class Described:
    """
    What packages say of themselves and need is in the catalog up to the event ``seq``. Queries for that demand this.

    It is made by L{pkgrepo.repositories.descriptions}, which follows the events up to ``last`` first, where it can.
    """

    seq: int
    last: int

    @property
    def is_behind(self) -> bool:
        """Whether there are events up to ``last`` that were not followed."""
        return self.seq < self.last


def facts_of(r: Reader, _: Described, places: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Facts]:
    """The facts of packages by repository id and key; those that are gone are left out."""
    by_repository: dict[int, list[str]] = {}
    for owner, key in places:
        by_repository.setdefault(owner, []).append(key)
    found: dict[tuple[int, str], Facts] = {}
    for owner, keys in by_repository.items():
        for batch in batches(keys):
            rows = r.all(
                f"""
                SELECT p.key, COALESCE(a.summary, ''), COALESCE(a.license, ''),
                       CASE WHEN EXISTS (SELECT 1 FROM version v WHERE v.package_id = p.id AND v.state <> 'live')
                       THEN 1 ELSE 0 END
                FROM package p LEFT JOIN package_about a ON a.package_id = p.id
                WHERE p.repository_id = ? AND p.key IN ({placeholders(len(batch))})
                """,
                (owner, *batch),
            )
            found |= {(owner, key): Facts(about, terms, bool(withdrawn)) for key, about, terms, withdrawn in rows}
    return found
