"""What the catalog counts of repositories, against the sums of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.support.data_folder import DataFolder

BYTES: Final = (
    "SELECT repository_id, SUM(size) FROM file GROUP BY repository_id",
    "SELECT repository_id, SUM(size) FROM manifest GROUP BY repository_id",
    """SELECT r.id, SUM(b.size) FROM package_blob x JOIN package p ON p.id = x.package_id
       JOIN repository r ON r.id = p.repository_id JOIN blob b ON b.storage_id = r.storage_id AND b.sha256 = x.sha256
       GROUP BY r.id""",
    "SELECT repository_id, SUM(size) FROM trash WHERE repository_id IS NOT NULL GROUP BY repository_id",
)
PACKAGES: Final = ("SELECT repository_id, COUNT(*) FROM package GROUP BY repository_id",)
VERSIONS: Final = (
    "SELECT p.repository_id, COUNT(*) FROM version v JOIN package p ON p.id = v.package_id GROUP BY p.repository_id",
    "SELECT repository_id, COUNT(*) FROM manifest GROUP BY repository_id",
)
SUMS: Final = {"bytes_used": BYTES, "package_count": PACKAGES, "version_count": VERSIONS}


def wrong_counts(data: DataFolder) -> Iterator[str]:
    """The counts of repositories that are not the sums of their rows, and reservations of room that nobody holds."""
    counted = data.rows(f"SELECT id, key, {', '.join(SUMS)} FROM repository WHERE deleted_at IS NULL")
    for place, (column, queries) in enumerate(SUMS.items(), 2):
        sums = Counter[int]()
        for query in queries:
            sums.update({row[0]: int(row[1]) for row in data.rows(query)})
        for row in counted:
            if int(row[place]) != sums[row[0]]:
                yield f"{column} of {row[1]} is {row[place]}, and its rows have {sums[row[0]]}"
