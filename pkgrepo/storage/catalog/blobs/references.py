"""The files and images that contain a blob, to report what a damaged blob affects."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import batches, column, placeholders


@frozen
class BlobReference:
    """A file, or an image (with empty ``version`` and ``path``), that contains a blob."""

    repository_id: int
    package_key: str
    package: str
    version: str = ""
    path: str = ""


def blobs_in_repository(r: Reader, repository_id: int, sha256s: Sequence[str]) -> set[str]:
    """Those of the blobs, given by sha256, that a file, a manifest or an image of a repository contains."""
    found: set[str] = set()
    for some in batches([bytes.fromhex(each) for each in sha256s]):
        marks = placeholders(len(some))
        rows = column(
            r,
            f"""
            SELECT sha256 FROM file WHERE repository_id = ? AND sha256 IN ({marks})
            UNION SELECT sha256 FROM manifest WHERE repository_id = ? AND sha256 IN ({marks})
            UNION SELECT x.sha256 FROM package_blob x JOIN package p ON p.id = x.package_id
            WHERE p.repository_id = ? AND x.sha256 IN ({marks})
            """,
            (repository_id, *some, repository_id, *some, repository_id, *some),
        )
        found.update(each.hex() for each in rows)
    return found


def blob_references(r: Reader, storage_id: int, sha256: str, limit: int) -> list[BlobReference]:
    """At most ``limit`` files, and at most ``limit`` images, that contain a blob of a storage."""
    key = bytes.fromhex(sha256)
    files = r.all(
        """
        SELECT f.repository_id, COALESCE(p.key, ''), COALESCE(p.name, ''), COALESCE(v.text, ''), f.path
        FROM file f LEFT JOIN package p ON p.id = f.package_id LEFT JOIN version v ON v.id = f.version_id
        WHERE f.sha256 = ? AND f.storage_id = ? ORDER BY f.id LIMIT ?
        """,
        (key, storage_id, limit),
    )
    images = r.all(
        """
        SELECT p.repository_id, p.key, p.name FROM package p JOIN repository r ON r.id = p.repository_id
        WHERE r.storage_id = ? AND p.id IN (
            SELECT package_id FROM package_blob WHERE sha256 = ? UNION SELECT package_id FROM manifest WHERE sha256 = ?
        )
        ORDER BY p.id LIMIT ?
        """,
        (storage_id, key, key, limit),
    )
    return [BlobReference(*row) for row in (*files, *images)]
