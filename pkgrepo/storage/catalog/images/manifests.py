"""Manifests of images, and what they refer to. Their bytes are blobs; a digest is written ``algorithm:hex``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import Factory, frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR
from pkgrepo.storage.catalog.clauses import placeholders
from pkgrepo.storage.catalog.columns import at, dump, load
from pkgrepo.storage.catalog.rows import column, every, exists, find

from .trust import Keys, shown


@frozen
class Manifest:
    """
    A stored manifest; ``locator`` is empty when its bytes were found damaged.

    ``artifact_type`` is what lists of referrers say: its own, else an image's type of configuration.
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
    What the catalog stores of a manifest.

    ``references`` are (digest, kind), where kind is config, layer or manifest. ``evidence`` means that its layers are
    signatures, attestations or SBOMs, and nothing to run.
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


_COLUMNS = f"""
    m.id, m.package_id, m.digest, m.sha256, m.media_type, m.size, m.subject, m.artifact_type, m.annotations,
    m.created_at, m.touched_at, {LOCATOR}
"""
_STORED = f"SELECT {_COLUMNS} FROM manifest m JOIN blob b ON b.storage_id = ? AND b.sha256 = m.sha256"
_PACKAGE = "SELECT id FROM package WHERE repository_id = ? AND key = ?"


def find_manifest(
    r: Reader, storage_id: int, repository_id: int, package_key: str, digest: str, keys: Keys = None
) -> Manifest | None:
    """The manifest of this digest in an image, or None; with ``keys`` only what readers who trust those may see."""
    return find(
        r,
        _manifest,
        f"{_STORED} WHERE m.package_id = ({_PACKAGE}) AND m.digest = ?{shown(keys)}",
        (storage_id, repository_id, package_key, digest, *(keys or ())),
    )


def find_tagged(
    r: Reader, storage_id: int, repository_id: int, package_key: str, tag: str, keys: Keys = None
) -> Manifest | None:
    """
    The manifest that a tag of an image stands for, or None.

    With ``keys`` it is what readers who trust those get: while what was pushed last waits for its signature, the one
    before.
    """
    standing = "m.digest = t.digest" if keys is None else "m.digest IN (t.digest, t.served)"
    return find(
        r,
        _manifest,
        f"""
        SELECT {_COLUMNS} FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND {standing}
        JOIN blob b ON b.storage_id = ? AND b.sha256 = m.sha256
        WHERE t.package_id = ({_PACKAGE}) AND t.name = ?{shown(keys)}
        ORDER BY CASE WHEN m.digest = t.digest THEN 0 ELSE 1 END LIMIT 1
        """,
        (storage_id, repository_id, package_key, tag, *(keys or ())),
    )


def manifest_size(r: Reader, package_id: int, digest: str) -> int | None:
    """The size in bytes of an image's manifest, or None when it has none of this digest."""
    row = r.one("SELECT size FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    return None if row is None else int(row[0])


def is_part(r: Reader, package_id: int, digest: str) -> bool:
    """Whether another manifest of the image names this one, as an index does."""
    sql = "SELECT 1 FROM manifest_ref WHERE package_id = ? AND digest = ? AND kind = 'manifest' LIMIT 1"
    return exists(r, sql, (package_id, digest))


def has_manifest(r: Reader, package_id: int, digest: str) -> bool:
    """Whether an image has the manifest of this digest."""
    return exists(r, "SELECT 1 FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))


def has_manifests(r: Reader, package_id: int) -> bool:
    """Whether an image has any manifest."""
    return exists(r, "SELECT 1 FROM manifest WHERE package_id = ? LIMIT 1", (package_id,))


def add_manifest(tx: Transaction, repository_id: int, package_id: int, new: ManifestRecord, now_ms: int) -> bool:
    """
    Store a manifest whose blob has been claimed, with its references; whether the image did not have it.

    One that it has keeps the type under which it came first: readers were promised that a digest never changes.
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
    manifest_id = tx.insert(
        """
        INSERT INTO manifest (repository_id, package_id, digest, sha256, media_type, size, subject, artifact_type,
                              annotations, evidence, created_at, touched_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """,
        (
            repository_id,
            package_id,
            new.digest,
            bytes.fromhex(new.sha256),
            new.media_type,
            new.size,
            new.subject,
            new.artifact_type,
            dump(new.annotations),
            int(new.evidence),
            now_ms,
            now_ms,
        ),
    )
    for digest, kind in dict.fromkeys(new.references):
        tx.execute(
            "INSERT INTO manifest_ref (manifest_id, package_id, digest, kind) VALUES (?, ?, ?, ?)",
            (manifest_id, package_id, digest, kind),
        )
    return True


def touch_manifest(tx: Transaction, package_id: int, digest: str, now_ms: int) -> bool:
    """Keep a manifest from the gc for another while; whether there is one."""
    return bool(
        tx.execute(
            "UPDATE manifest SET touched_at = ? WHERE package_id = ? AND digest = ?", (now_ms, package_id, digest)
        )
    )


@frozen
class Untagged:
    """
    Names of the tags of a manifest that was removed.

    ``gone`` went with it; ``released`` went back to the manifest that readers still get by them; by ``hidden`` readers
    got this one while another waits for its signature, and get nothing until that has come.
    """

    gone: list[str]
    released: list[str]
    hidden: list[str]


def remove_manifest(tx: Transaction, package_id: int, digest: str) -> Untagged:
    """Remove a manifest, with the tags that stand for it and for nothing else; what became of its tags."""
    # Looked for before it is written: only a look-up of names is sure to go by the index over digests.
    hidden = tx.all("SELECT name FROM tag WHERE package_id = ? AND served = ? ORDER BY name", (package_id, digest))
    if hidden:
        tx.execute("UPDATE tag SET served = NULL WHERE package_id = ? AND served = ?", (package_id, digest))
    standing = "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name"
    standing_before = tx.all(standing, (package_id, digest))
    gone: list[Row] = []
    if standing_before:
        tx.execute(
            """
            UPDATE tag SET digest = served, served = NULL, expires_at = NULL
            WHERE package_id = ? AND digest = ? AND served IS NOT NULL
            """,
            (package_id, digest),
        )
        gone = tx.all(standing, (package_id, digest))
        tx.execute("DELETE FROM tag WHERE package_id = ? AND digest = ?", (package_id, digest))
    tx.execute("DELETE FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    released = {row[0] for row in standing_before} - {row[0] for row in gone}
    return Untagged([row[0] for row in gone], sorted(released), [row[0] for row in hidden])


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
    Manifests of an image whose subject is this digest, by digest, from after ``after``; of certain types, or all.

    With ``keys`` only those that readers who trust those may see.
    """
    wanted = tuple(artifact_types)
    of_types = f" AND m.artifact_type IN ({placeholders(len(wanted))})" if wanted else ""
    return every(
        r,
        _manifest,
        f"{_STORED} WHERE m.package_id = ? AND m.subject = ? AND m.digest > ?{of_types}{shown(keys)} "
        "ORDER BY m.digest LIMIT ?",
        (storage_id, package_id, subject, after, *wanted, *(keys or ()), limit),
    )


def list_images(
    r: Reader, repository_id: int, *, after: str = "", limit: int = 100, alone: bool | None = None
) -> list[str]:
    """
    Keys of the images of a repository that have a manifest, bytewise ordered, from after ``after``.

    With ``alone`` only those that were pushed last by their names alone, or only the others.
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


def _manifest(row: Row) -> Manifest:
    return Manifest(
        id=row[0],
        package_id=row[1],
        digest=row[2],
        sha256=row[3].hex(),
        media_type=row[4],
        size=row[5],
        subject=row[6],
        artifact_type=row[7],
        annotations=load(row[8]),
        created_at=at(row[9]),
        touched_ms=row[10],
        locator=row[11],
    )
