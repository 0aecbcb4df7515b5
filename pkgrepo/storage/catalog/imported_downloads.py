"""
Downloads at the sources of imports: totals, of which the days are not known.

They are counted on a day, and in a week, before the epoch. So they are in totals and in the order by downloads, and in
no figure of a day or of the last days; nothing that asks when something was downloaded last finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number, scalar

BEFORE: Final = -1  # the day, and the week, of what was downloaded elsewhere


@frozen
class Downloads:
    """
    What a source says of a package: all its downloads, those by the text of a version, and pulls by the digest.

    ``total`` is 0 if the source has counts of versions alone.
    """

    total: int = 0
    versions: Mapping[str, int] = Factory(dict)
    manifests: Mapping[str, int] = Factory(dict)


def keep_downloads(tx: Transaction, repository_id: int, package_key: str, said: Downloads) -> bool:
    """
    Raise the imported counts of a package to what a source says; return whether the total of the package was changed.

    Counts are not added to those of an earlier import, from whatever address: the highest one is kept. What is not in
    the repository is left out, but the total of the package is that of the source, or else the sum of its versions.
    """
    package_id = scalar(tx, "SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, package_key))
    if package_id is None:
        return False
    ids = tx.all("SELECT text, id FROM version WHERE package_id = ?", (package_id,)) if said.versions else ()
    for text, version_id in ids:
        if text in said.versions:
            tx.execute(
                """
                INSERT INTO version_download (version_id, week, count) VALUES (?, ?, ?)
                ON CONFLICT (version_id, week) DO UPDATE SET count = excluded.count
                WHERE version_download.count < excluded.count
                """,
                (version_id, BEFORE, said.versions[text]),
            )
    for digest, count in said.manifests.items():
        tx.execute(
            """
            INSERT INTO download_count (kind, item_id, day, repository_id, package_id, count)
            SELECT 'manifest', id, CAST(? AS BIGINT), CAST(? AS BIGINT), package_id, CAST(? AS BIGINT)
            FROM manifest WHERE package_id = ? AND digest = ?
            ON CONFLICT (kind, item_id, day) DO UPDATE SET count = excluded.count
            WHERE download_count.count < excluded.count
            """,
            (BEFORE, repository_id, count, package_id, digest),
        )
    of_versions = number(
        tx,
        """
        SELECT COALESCE(SUM(d.count), 0) FROM version v JOIN version_download d ON d.version_id = v.id AND d.week = ?
        WHERE v.package_id = ?
        """,
        (BEFORE, package_id),
    )
    before = number(tx, "SELECT count FROM package_download WHERE package_id = ? AND day = ?", (package_id, BEFORE))
    total = max(said.total, of_versions)
    if total <= before:
        return False
    tx.execute(
        """
        INSERT INTO package_download (package_id, day, count) VALUES (?, ?, ?)
        ON CONFLICT (package_id, day) DO UPDATE SET count = excluded.count
        """,
        (package_id, BEFORE, total),
    )
    tx.execute("UPDATE package SET downloads = downloads + ? WHERE id = ?", (total - before, package_id))
    return True


def imported_downloads(r: Reader, repository_id: int) -> int:
    """The downloads at the sources of the packages that a repository has."""
    return number(
        r,
        """
        SELECT COALESCE(SUM(d.count), 0) FROM package p JOIN package_download d ON d.package_id = p.id AND d.day = ?
        WHERE p.repository_id = ?
        """,
        (BEFORE, repository_id),
    )
