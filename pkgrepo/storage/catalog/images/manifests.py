"""
Manifests of images, and their references to blobs and other manifests.

The bytes of a manifest are a blob. A digest is written ``algorithm:hex``. Queries with a parameter ``keys`` return only
manifests that readers may see, see L{trust}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR
from pkgrepo.storage.catalog.rows import (
    column,
    columns_of,
    every,
    exists,
    find,
    insert,
    placeholders,
    rows,
    scalar,
)

from .trust import Keys, visible


@frozen
class Manifest:
    """
    A stored manifest; ``size`` in bytes, ``locator`` is empty if its blob is suspect.

    ``artifact_type`` is the value for lists of referrers: the manifest's own, else the media type of its config.
    """

    id: int
    package_id: int
    digest: str
    sha256: str
    media_type: str
    size: int
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    created_at: datetime
    touched_ms: int
    locator: str


@frozen(kw_only=True)
class ManifestRecord:
    """
    The fields of a manifest that the catalog stores.

    ``references`` are pairs (digest, kind), where kind is config, layer or manifest. ``evidence`` means that its layers
    are signatures, attestations or SBOMs, and not runnable content.
    """

    digest: str
    sha256: str
    media_type: str
    size: int
    subject: str | None = None
    artifact_type: str | None = None
    annotations: Mapping[str, str] = Factory(dict)
    references: tuple[tuple[str, str], ...] = ()
    evidence: bool = False


_STORED, _manifest = rows(
    Manifest,
    "manifest m JOIN blob b ON b.storage_id = ? AND b.sha256 = m.sha256",
    of="m",
    sha256=bytes.hex,
    touched_ms="m.touched_at",
    locator=LOCATOR,
)
_PACKAGE = "SELECT id FROM package WHERE repository_id = ? AND key = ?"


def find_manifest(
    r: Reader, storage_id: int, repository_id: int, package_key: str, digest: str, keys: Keys = None
) -> Manifest | None:
    """The manifest with this digest in an image, or None; with ``keys``, only if readers may see it."""
    return find(
        r,
        _manifest,
        f"{_STORED} WHERE m.package_id = ({_PACKAGE}) AND m.digest = ?{visible(keys)}",
        (storage_id, repository_id, package_key, digest, *(keys or ())),
    )


def find_tagged(
    r: Reader, storage_id: int, repository_id: int, package_key: str, tag: str, keys: Keys = None
) -> Manifest | None:
    """
    The manifest to which a tag of an image points, or None.

    With ``keys`` it is the one that readers get: while the new manifest is in quarantine, the one served before.
    """
    target = "m.digest = t.digest" if keys is None else "m.digest IN (t.digest, t.served)"
    return find(
        r,
        _manifest,
        f"""
        SELECT {columns_of(_STORED)} FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND {target}
        JOIN blob b ON b.storage_id = ? AND b.sha256 = m.sha256
        WHERE t.package_id = ({_PACKAGE}) AND t.name = ?{visible(keys)}
        ORDER BY CASE WHEN m.digest = t.digest THEN 0 ELSE 1 END LIMIT 1
        """,
        (storage_id, repository_id, package_key, tag, *(keys or ())),
    )


def manifest_size(r: Reader, package_id: int, digest: str) -> int | None:
    """The size in bytes of a manifest, or None if the image has none with this digest."""
    return scalar(r, "SELECT size FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))


def is_listed(r: Reader, package_id: int, digest: str) -> bool:
    """Whether an index of the image lists this manifest."""
    sql = "SELECT 1 FROM manifest_ref WHERE package_id = ? AND digest = ? AND kind = 'manifest' LIMIT 1"
    return exists(r, sql, (package_id, digest))


def has_manifest(r: Reader, package_id: int, digest: str) -> bool:
    """Whether an image has a manifest with this digest."""
    return exists(r, "SELECT 1 FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))


def has_manifests(r: Reader, package_id: int) -> bool:
    """Whether an image has at least one manifest."""
    return exists(r, "SELECT 1 FROM manifest WHERE package_id = ? LIMIT 1", (package_id,))


def add_manifest(
    tx: Transaction, repository_id: int, package_id: int, new: ManifestRecord, publisher_id: int | None, now_ms: int
) -> bool:
    """
    Add a manifest and its references; returns whether it is new. Its blob must have been claimed before.

    An existing manifest is touched and keeps its first media type, since the content of a digest must never change.
    """
    changed = tx.execute(
        """
        UPDATE manifest SET touched_at = ?, evidence = CASE WHEN ? = 1 THEN 1 ELSE evidence END
        WHERE package_id = ? AND digest = ?
        """,
        (now_ms, int(new.evidence), package_id, new.digest),
    )
    if changed:
        return False
    manifest_id = insert(
        tx,
        "manifest",
        repository_id=repository_id,
        package_id=package_id,
        digest=new.digest,
        sha256=bytes.fromhex(new.sha256),
        media_type=new.media_type,
        size=new.size,
        subject=new.subject,
        artifact_type=new.artifact_type,
        annotations=new.annotations,
        evidence=new.evidence,
        created_at=now_ms,
        touched_at=now_ms,
        publisher_id=publisher_id,
    )
    for digest, kind in dict.fromkeys(new.references):
        tx.send(
            "INSERT INTO manifest_ref (manifest_id, package_id, digest, kind) VALUES (?, ?, ?, ?)",
            (manifest_id, package_id, digest, kind),
        )
    return True


def set_created_at(tx: Transaction, package_id: int, digest: str, created_ms: int) -> None:
    """Set the time of a manifest that was restored, to the one that it had before."""
    tx.send("UPDATE manifest SET created_at = ? WHERE package_id = ? AND digest = ?", (created_ms, package_id, digest))


def touch_manifest(tx: Transaction, package_id: int, digest: str, now_ms: int) -> bool:
    """Restart the grace period of a manifest; returns whether it exists."""
    return bool(
        tx.execute(
            "UPDATE manifest SET touched_at = ? WHERE package_id = ? AND digest = ?", (now_ms, package_id, digest)
        )
    )


@frozen
class TagChanges:
    """
    The names of the tags that the removal of a manifest changed.

    ``removed`` were removed with it. ``released`` pointed to it in quarantine, and point to the manifest served before.
    ``hidden`` served it while another manifest is in quarantine, and serve nothing until that one is signed.
    """

    removed: list[str]
    released: list[str]
    hidden: list[str]


def remove_manifest(tx: Transaction, package_id: int, digest: str) -> TagChanges:
    """Remove a manifest, and remove or change its tags; returns which tags were affected."""
    # The tags are selected before they are updated: only the SELECT is sure to use the index on the digest.
    served_at = "SELECT name FROM tag WHERE package_id = ? AND served = ? ORDER BY name"
    hidden = column(tx, served_at, (package_id, digest))
    if hidden:
        tx.send("UPDATE tag SET served = NULL WHERE package_id = ? AND served = ?", (package_id, digest))
    tags_of_manifest = "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name"
    before = column(tx, tags_of_manifest, (package_id, digest))
    removed: list[str] = []
    if before:
        tx.send(
            """
            UPDATE tag SET digest = served, served = NULL, expires_at = NULL
            WHERE package_id = ? AND digest = ? AND served IS NOT NULL
            """,
            (package_id, digest),
        )
        removed = column(tx, tags_of_manifest, (package_id, digest))
        tx.send("DELETE FROM tag WHERE package_id = ? AND digest = ?", (package_id, digest))
    tx.send("DELETE FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    return TagChanges(removed, sorted(set(before).difference(removed)), hidden)


def list_referrers(
    r: Reader,
    storage_id: int,
    package_id: int,
    subject: str,
    *,
    artifact_types: Iterable[str] = (),
    after: str = "",
    limit: int = 100,
    keys: Keys = None,
) -> list[Manifest]:
    """
    A page of the referrers of a digest: manifests of the image with this subject, after the digest ``after``.

    Ordered by digest. Without ``artifact_types``, referrers of all types; with ``keys``, only what readers may see.
    """
    wanted = tuple(artifact_types)
    of_types = f" AND m.artifact_type IN ({placeholders(len(wanted))})" if wanted else ""
    return every(
        r,
        _manifest,
        f"{_STORED} WHERE m.package_id = ? AND m.subject = ? AND m.digest > ?{of_types}{visible(keys)} "
        "ORDER BY m.digest LIMIT ?",
        (storage_id, package_id, subject, after, *wanted, *(keys or ()), limit),
    )


def list_images(
    r: Reader, repository_id: int, *, after: str = "", limit: int = 100, alone: bool | None = None
) -> list[str]:
    """
    A page of the keys of the images with at least one manifest, after the key ``after``, in bytewise order.

    With ``alone`` True only the images whose last push named them without their repository, with False only the others.
    """
    only = "" if alone is None else " AND alone = ?"
    return column(
        r,
        f"""
        SELECT key FROM package p
        WHERE repository_id = ? AND key > ? AND EXISTS (SELECT 1 FROM manifest m WHERE m.package_id = p.id){only}
        ORDER BY key LIMIT ?
        """,
        (repository_id, after, *([] if alone is None else [int(alone)]), limit),
    )
