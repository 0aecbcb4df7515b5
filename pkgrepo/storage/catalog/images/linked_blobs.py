"""
Which blobs an image may serve: those that were pushed to it, or mounted from an image that the pusher could read.

A digest is written ``algorithm:hex`` as on the wire; ``sha256`` and ``sha512`` are known. A blob is stored once
whatever it is called, so its sha512 is a second name of the same link.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR, TOUCH_MS
from pkgrepo.storage.catalog.rows import exists, find

ALGORITHMS = ("sha256", "sha512")
MOST_SOURCES = 100  # images that are looked at for one that has a blob and may be read


@frozen
class LinkedBlob:
    """
    A blob as an image has it; ``locator`` is empty when the bytes were found damaged.

    ``touched_ms`` is when somebody was last told that it need not be uploaded.
    """

    package_id: int
    sha256: str
    size: int
    locator: str
    touched_ms: int


_LINKED = f"""
    SELECT x.package_id, x.sha256, b.size, {LOCATOR}, x.touched_at
    FROM package_blob x JOIN blob b ON b.storage_id = ? AND b.sha256 = x.sha256
"""
_LINKED_BY = {each: f"{_LINKED} WHERE x.package_id = ? AND x.{each} = ?" for each in ALGORITHMS}
_IMAGES_BY = {
    each: f"""
        SELECT p.repository_id, p.key FROM package_blob x JOIN package p ON p.id = x.package_id
        WHERE x.{each} = ? LIMIT ?
    """
    for each in ALGORITHMS
}


def find_linked(r: Reader, storage_id: int, repository_id: int, package_key: str, digest: str) -> LinkedBlob | None:
    """The blob of this digest in an image, or None. The one look-up of every pull of a layer."""
    package = r.one("SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, package_key))
    return None if package is None else find_in_package(r, storage_id, package[0], digest)


def find_in_package(r: Reader, storage_id: int, package_id: int, digest: str) -> LinkedBlob | None:
    """The same, for an image that is known by its catalog key."""
    algorithm, value = split_digest(digest)
    return find(r, _linked, _LINKED_BY[algorithm], (storage_id, package_id, value))


def images_with(r: Reader, digest: str) -> list[tuple[int, str]]:
    """Some of the images that have a blob, as catalog key of the repository and key of the image."""
    algorithm, value = split_digest(digest)
    return [(row[0], row[1]) for row in r.all(_IMAGES_BY[algorithm], (value, MOST_SOURCES))]


def link_blob(tx: Transaction, package_id: int, sha256: str, sha512: str | None, now_ms: int) -> bool:
    """Let an image serve a blob, also by its sha512 if that is given; whether it could not before."""
    key = bytes.fromhex(sha256)
    second = None if sha512 is None else bytes.fromhex(sha512)
    changed = tx.execute(
        "UPDATE package_blob SET touched_at = ?, sha512 = COALESCE(?, sha512) WHERE package_id = ? AND sha256 = ?",
        (now_ms, second, package_id, key),
    )
    if changed:
        return False
    tx.execute(
        "INSERT INTO package_blob (package_id, sha256, sha512, touched_at) VALUES (?, ?, ?, ?)",
        (package_id, key, second, now_ms),
    )
    return True


def touch_link(tx: Transaction, package_id: int, sha256: str, now_ms: int) -> bool:
    """Keep an image's link from the gc for another while; whether there is one."""
    row = tx.one(
        "SELECT touched_at FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, bytes.fromhex(sha256))
    )
    if row is None:
        return False
    if row[0] < now_ms - TOUCH_MS:
        tx.execute(
            "UPDATE package_blob SET touched_at = ? WHERE package_id = ? AND sha256 = ?",
            (now_ms, package_id, bytes.fromhex(sha256)),
        )
    return True


def unlink_blob(tx: Transaction, package_id: int, sha256: str) -> bool:
    """Take a blob out of an image, by all of its names; whether it was in it."""
    return bool(
        tx.execute("DELETE FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, bytes.fromhex(sha256)))
    )


def has_links(r: Reader, package_id: int) -> bool:
    """Whether an image has any blob."""
    return exists(r, "SELECT 1 FROM package_blob WHERE package_id = ? LIMIT 1", (package_id,))


def is_needed(r: Reader, package_id: int, sha256: str) -> bool:
    """Whether a manifest of the image refers to a blob of it, by whichever name."""
    row = r.one(
        "SELECT sha512 FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, bytes.fromhex(sha256))
    )
    names = [f"sha256:{sha256}"]
    if row is not None and row[0] is not None:
        names.append(f"sha512:{row[0].hex()}")
    return any(
        r.one("SELECT 1 FROM manifest_ref WHERE package_id = ? AND digest = ? LIMIT 1", (package_id, name)) is not None
        for name in names
    )


def split_digest(digest: str) -> tuple[str, bytes]:
    """
    The column for a digest's algorithm, and its raw bytes.

    :raises ValueError: of another algorithm, or not hex
    """
    algorithm, _, text = digest.partition(":")
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm} is not a digest algorithm of this catalog")
    return algorithm, bytes.fromhex(text)


def _linked(row: Row) -> LinkedBlob:
    return LinkedBlob(package_id=row[0], sha256=row[1].hex(), size=row[2], locator=row[3], touched_ms=row[4])
