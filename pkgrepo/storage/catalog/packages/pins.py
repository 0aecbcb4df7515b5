"""Pins: versions that retention keeps, by the names of packages, so that a version that comes back is pinned again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor
from pkgrepo.storage.catalog.rows import batches, every, exists, placeholders, put, rows


@frozen
class Pin:
    """A pinned version; ``name`` is its text, or of an image a tag or the digest of a manifest."""

    repository_id: int
    package_key: str
    name: str
    reason: str
    actor: str
    pinned_at: datetime


_PIN, _pin = rows(Pin, "pin")


def put_pin(
    tx: Transaction, repository_id: int, package_key: str, name: str, reason: str, actor: Actor, now_ms: int
) -> None:
    """Pin a version; one that is pinned already gets the reason."""
    put(
        tx,
        "pin",
        "repository_id, package_key, name",
        repository_id=repository_id,
        package_key=package_key,
        name=name,
        reason=reason,
        user_id=actor.user_id,
        actor=actor.name,
        pinned_at=now_ms,
    )


def remove_pin(tx: Transaction, repository_id: int, package_key: str, name: str) -> bool:
    """Unpin a version. Returns whether it was pinned."""
    sql = "DELETE FROM pin WHERE repository_id = ? AND package_key = ? AND name = ?"
    return tx.execute(sql, (repository_id, package_key, name)) > 0


def list_pins(r: Reader, repository_id: int, package_key: str | None = None) -> list[Pin]:
    """The pins of a repository, or of one package, ordered by package and name."""
    if package_key is not None:
        sql = f"{_PIN} WHERE repository_id = ? AND package_key = ? ORDER BY name"
        return every(r, _pin, sql, (repository_id, package_key))
    return every(r, _pin, f"{_PIN} WHERE repository_id = ? ORDER BY package_key, name", (repository_id,))


def repositories_with_pins(r: Reader) -> list[int]:
    """The catalog keys of the repositories that have pins."""
    return [each for (each,) in r.all("SELECT DISTINCT repository_id FROM pin ORDER BY repository_id")]


def pinned_units(r: Reader, repository_id: int) -> set[tuple[str, str]]:
    """
    What the pins of a repository stand for: the key of the package, with the key of a version, the digest of a
    manifest, or the empty text, for the package itself.

    Manifests that a pinned one lists are among them.
    """
    pinned = {(each.package_key, each.name) for each in list_pins(r, repository_id)}
    if not pinned:
        return set()
    found = {(key, "") for key, _ in pinned} | {(key, name) for key, name in pinned if ":" in name}
    for sql in (
        """
        SELECT p.key, v.key FROM pin x JOIN package p ON p.repository_id = x.repository_id AND p.key = x.package_key
        JOIN version v ON v.package_id = p.id AND v.text = x.name WHERE x.repository_id = ?
        """,
        """
        SELECT p.key, t.digest FROM pin x JOIN package p ON p.repository_id = x.repository_id AND p.key = x.package_key
        JOIN tag t ON t.package_id = p.id AND t.name = x.name WHERE x.repository_id = ? AND t.digest IS NOT NULL
        """,
    ):
        found.update((key, name) for key, name in r.all(sql, (repository_id,)))
    children: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, parent, child in r.all(
        """
        SELECT DISTINCT p.key, m.digest, f.digest
        FROM pin x JOIN package p ON p.repository_id = x.repository_id AND p.key = x.package_key
        JOIN manifest m ON m.package_id = p.id JOIN manifest_ref f ON f.manifest_id = m.id AND f.kind = 'manifest'
        WHERE x.repository_id = ?
        """,
        (repository_id,),
    ):
        children.setdefault((key, parent), set()).add((key, child))
    new = found
    while new:
        new = set[tuple[str, str]]().union(*(children.get(each, ()) for each in new)) - found
        found |= new
    return found


def pinned_names(r: Reader, repository_id: int, package_keys: Sequence[str]) -> dict[str, set[str]]:
    """The pinned names of packages, by the key of the package; nothing for packages without pins."""
    found: dict[str, set[str]] = {}
    if not exists(r, "SELECT 1 FROM pin WHERE repository_id = ? LIMIT 1", (repository_id,)):
        return found
    for some in batches(package_keys):
        sql = (
            f"SELECT package_key, name FROM pin WHERE repository_id = ? AND package_key IN ({placeholders(len(some))})"
        )
        for key, name in r.all(sql, (repository_id, *some)):
            found.setdefault(key, set()).add(name)
    return found
