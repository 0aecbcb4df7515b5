"""
The blobs that an image serves, because they were pushed to it or mounted from another image, and leases of them.

A mount requires that the client can read the other image. A digest is written ``algorithm:hex``, with the algorithms
``sha256`` and ``sha512``. A blob is stored once, under its sha256; a sha512 digest is a second key of the same link.

A client uploads or mounts a blob, or asks whether the image has it, before it pushes a manifest that refers to it. It
pushes a manifest by digest before it pushes an index or a tag that refers to it. A lease protects such a blob or
manifest from garbage collection during the push, whatever the grace period is:

=========  ============================================================================================================
lease      when
=========  ============================================================================================================
made       a response tells the client that the image has the blob or manifest
renewed    such a response is sent again, after ``FRESH_MS``
ended      the client pushes a manifest or a tag that refers to the object; at the latest after ``LASTS_MS``
=========  ============================================================================================================

A lease is a row per image, digest and client, and survives a crash. A client is one run of a program: its push ends
its own leases, not those to other clients that push the same content.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR, TOUCH_MS
from pkgrepo.storage.catalog.rows import exists, find, rows, scalar

ALGORITHMS = ("sha256", "sha512")
MAX_SOURCES = 100  # images with a blob that one mount request examines, to find one that the client can read


_IMAGES_BY = {
    each: f"""
        SELECT p.repository_id, p.key FROM package_blob x JOIN package p ON p.id = x.package_id
        WHERE x.{each} = ? LIMIT ?
    """
    for each in ALGORITHMS
}
LASTS_MS = 15 * 60_000
FRESH_MS = 60_000  # minimum time between two writes of one lease
MAX_CLIENTS = 16  # clients with a lease of their own for one blob or manifest; the others share one
ANY_CLIENT = ""  # client of a shared lease, or of a client without an id; only expiry ends it


@frozen
class LinkedBlob:
    """
    A blob that is linked to an image; ``size`` in bytes, ``locator`` is empty if the blob is suspect.

    ``touched_ms`` is the time of the last response that let a client skip the upload.
    """

    package_id: int
    sha256: str
    size: int
    locator: str
    touched_ms: int


_LINKED, _linked = rows(
    LinkedBlob,
    "package_blob x JOIN blob b ON b.storage_id = ? AND b.sha256 = x.sha256",
    of="x",
    sha256=bytes.hex,
    size="b.size",
    locator=LOCATOR,
    touched_ms="x.touched_at",
)
_LINKED_BY = {each: f"{_LINKED} WHERE x.package_id = ? AND x.{each} = ?" for each in ALGORITHMS}


def find_linked(r: Reader, storage_id: int, repository_id: int, package_key: str, digest: str) -> LinkedBlob | None:
    """The blob with this digest in an image, or None. Every pull of a layer makes this one look-up."""
    package = r.one("SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, package_key))
    return None if package is None else find_in_package(r, storage_id, package[0], digest)


def find_in_package(r: Reader, storage_id: int, package_id: int, digest: str) -> LinkedBlob | None:
    """The blob with this digest in an image, or None, by the id of the image's row."""
    algorithm, value = split_digest(digest)
    return find(r, _linked, _LINKED_BY[algorithm], (storage_id, package_id, value))


def images_with(r: Reader, digest: str) -> list[tuple[int, str]]:
    """At most ``MAX_SOURCES`` images that have a blob, as pairs (repository id, image key)."""
    algorithm, value = split_digest(digest)
    return r.all(_IMAGES_BY[algorithm], (value, MAX_SOURCES))


def link_blob(
    tx: Transaction, package_id: int, sha256: str, sha512: str | None, publisher_id: int | None, now_ms: int
) -> bool:
    """Link a blob to an image, under its sha512 as well if that is given; returns whether the link is new."""
    key = bytes.fromhex(sha256)
    second = None if sha512 is None else bytes.fromhex(sha512)
    changed = tx.execute(
        "UPDATE package_blob SET touched_at = ?, sha512 = COALESCE(?, sha512) WHERE package_id = ? AND sha256 = ?",
        (now_ms, second, package_id, key),
    )
    if changed:
        return False
    tx.send(
        "INSERT INTO package_blob (package_id, sha256, sha512, touched_at, publisher_id) VALUES (?, ?, ?, ?, ?)",
        (package_id, key, second, now_ms, publisher_id),
    )
    return True


def touch_link(tx: Transaction, package_id: int, sha256: str, now_ms: int) -> bool:
    """Restart the grace period of a link; returns whether it exists."""
    sql = "SELECT touched_at FROM package_blob WHERE package_id = ? AND sha256 = ?"
    touched_ms = scalar(tx, sql, (package_id, bytes.fromhex(sha256)))
    if touched_ms is None:
        return False
    if touched_ms < now_ms - TOUCH_MS:
        tx.send(
            "UPDATE package_blob SET touched_at = ? WHERE package_id = ? AND sha256 = ?",
            (now_ms, package_id, bytes.fromhex(sha256)),
        )
    return True


def unlink_blob(tx: Transaction, package_id: int, sha256: str) -> bool:
    """Remove the link of a blob, under both digests; returns whether it existed."""
    return bool(
        tx.execute("DELETE FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, bytes.fromhex(sha256)))
    )


def has_links(r: Reader, package_id: int) -> bool:
    """Whether an image has a linked blob."""
    return exists(r, "SELECT 1 FROM package_blob WHERE package_id = ? LIMIT 1", (package_id,))


def is_needed(r: Reader, package_id: int, sha256: str) -> bool:
    """Whether a manifest of the image refers to a blob, by its sha256 or its sha512 digest."""
    sql = "SELECT sha512 FROM package_blob WHERE package_id = ? AND sha256 = ?"
    sha512 = scalar(r, sql, (package_id, bytes.fromhex(sha256)))
    digests = [f"sha256:{sha256}"]
    if sha512 is not None:
        digests.append(f"sha512:{sha512.hex()}")
    return any(
        exists(r, "SELECT 1 FROM manifest_ref WHERE package_id = ? AND digest = ? LIMIT 1", (package_id, digest))
        for digest in digests
    )


def split_digest(digest: str) -> tuple[str, bytes]:
    """
    The algorithm of a digest, which is the name of its column, and its raw bytes.

    :raises ValueError: the algorithm is unknown, or the value is not hexadecimal
    """
    algorithm, _, text = digest.partition(":")
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm} is not a digest algorithm of this catalog")
    return algorithm, bytes.fromhex(text)


def valid_since_ms(now_ms: int) -> int:
    """The earliest time at which a lease that is still valid was made."""
    return now_ms - LASTS_MS - FRESH_MS


def is_fresh(r: Reader, package_id: int, digest: str, client: str, now_ms: int) -> bool:
    """Whether a lease to this client was written within ``FRESH_MS``, so it need not be renewed."""
    sql = "SELECT 1 FROM push_lease WHERE package_id = ? AND digest = ? AND client IN (?, ?) AND made_at >= ?"
    return exists(r, sql, (package_id, digest, client, ANY_CLIENT, now_ms - FRESH_MS))


def lease(tx: Transaction, package_id: int, digest: str, client: str, now_ms: int) -> None:
    """Insert or renew the lease of a blob or manifest to a client."""
    if is_fresh(tx, package_id, digest, client, now_ms):
        return
    others = tx.all(
        "SELECT 1 FROM push_lease WHERE package_id = ? AND digest = ? AND client <> ? LIMIT ?",
        (package_id, digest, client, MAX_CLIENTS),
    )
    tx.send(
        """
        INSERT INTO push_lease (package_id, digest, client, made_at) VALUES (?, ?, ?, ?)
        ON CONFLICT (package_id, digest, client) DO UPDATE SET made_at = excluded.made_at
        """,
        (package_id, digest, client if len(others) < MAX_CLIENTS else ANY_CLIENT, now_ms),
    )


def end_leases(tx: Transaction, package_id: int, digests: Iterable[str], client: str) -> None:
    """End a client's leases for some blobs and manifests, to which its pushed manifest or tag now refers."""
    if client == ANY_CLIENT:
        return
    for digest in digests:
        tx.send(
            "DELETE FROM push_lease WHERE package_id = ? AND digest = ? AND client = ?", (package_id, digest, client)
        )


def list_leased(r: Reader, package_id: int, now_ms: int) -> dict[str, int]:
    """The digests of an image's blobs and manifests with a valid lease, each with the ms when its last one ends."""
    rows = r.all(
        "SELECT digest, MAX(made_at) FROM push_lease WHERE package_id = ? AND made_at >= ? GROUP BY digest",
        (package_id, valid_since_ms(now_ms)),
    )
    return {digest: made_ms + now_ms - valid_since_ms(now_ms) for digest, made_ms in rows}


def is_leased(r: Reader, package_id: int, digest: str, now_ms: int) -> bool:
    """Whether a blob or manifest of an image has a valid lease to any client."""
    sql = "SELECT 1 FROM push_lease WHERE package_id = ? AND digest = ? AND made_at >= ? LIMIT 1"
    return exists(r, sql, (package_id, digest, valid_since_ms(now_ms)))


def remove_expired_leases(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove at most ``limit`` expired leases; returns the number of removed ones."""
    return tx.execute(
        """
        DELETE FROM push_lease WHERE (package_id, digest, client) IN (
            SELECT package_id, digest, client FROM push_lease WHERE made_at < ? ORDER BY made_at LIMIT ?
        )
        """,
        (valid_since_ms(now_ms), limit),
    )
