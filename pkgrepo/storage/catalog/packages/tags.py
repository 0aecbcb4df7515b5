"""Tags of a package: each name points to one version or manifest, and can be moved to another."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Version
from pkgrepo.storage.catalog.rows import column, every, find, rows

from .versions import VERSION, to_version


@frozen
class Tag:
    """A tag and its target: a version (``version_id``) or a manifest (``digest``); the other one is None."""

    package_id: int
    name: str
    version_id: int | None
    digest: str | None
    updated_at: datetime
    actor: str


_TAG, _tag = rows(Tag, "tag")


def find_tag(r: Reader, package_id: int, name: str) -> Tag | None:
    """The tag of this name, or None."""
    return find(r, _tag, f"{_TAG} WHERE package_id = ? AND name = ?", (package_id, name))


def list_tags(r: Reader, package_id: int, *, after: str = "", limit: int = 50) -> list[Tag]:
    """A page of tags after the name ``after``, ordered by name."""
    return every(r, _tag, f"{_TAG} WHERE package_id = ? AND name > ? ORDER BY name LIMIT ?", (package_id, after, limit))


def list_tag_names(r: Reader, package_id: int, *, after: str, limit: int) -> list[str]:
    """The names of the same page, cheaper than ``list_tags``: an image may have tens of thousands of tags."""
    return column(
        r, "SELECT name FROM tag WHERE package_id = ? AND name > ? ORDER BY name LIMIT ?", (package_id, after, limit)
    )


def every_tag_name(r: Reader, package_id: int) -> list[str]:
    """The names of all tags, in order. An image may have tens of thousands: call it on a reader thread."""
    return column(r, "SELECT name FROM tag WHERE package_id = ? ORDER BY name", (package_id,))


def tagged_versions(r: Reader, package_id: int) -> dict[str, str]:
    """The text of the version of each tag, by tag name in order; tags that point to a manifest are left out."""
    sql = """
        SELECT t.name, v.text FROM tag t JOIN version v ON v.id = t.version_id
        WHERE t.package_id = ? ORDER BY t.name
    """
    return dict(r.all(sql, (package_id,)))


def names_by_version(r: Reader, package_id: int) -> dict[int, list[str]]:
    """The names of the tags that point to a version, by the id of the version."""
    found: dict[int, list[str]] = {}
    sql = "SELECT version_id, name FROM tag WHERE package_id = ? AND version_id IS NOT NULL ORDER BY name"
    for version_id, name in r.all(sql, (package_id,)):
        found.setdefault(version_id, []).append(name)
    return found


def find_tagged_version(r: Reader, package_id: int, name: str) -> Version | None:
    """The version that a tag points to, or None."""
    sql = f"{VERSION} WHERE id = (SELECT version_id FROM tag WHERE package_id = ? AND name = ?)"
    return find(r, to_version, sql, (package_id, name))


def set_tag(
    tx: Transaction,
    package_id: int,
    name: str,
    *,
    actor: Actor,
    now_ms: int,
    version_id: int | None = None,
    digest: str | None = None,
) -> None:
    """Upsert a tag that points to a version or a manifest. If the tag was in quarantine, that ends."""
    tx.send(
        """
        INSERT INTO tag (package_id, name, version_id, digest, updated_at, actor) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (package_id, name) DO UPDATE
        SET version_id = excluded.version_id, digest = excluded.digest, updated_at = excluded.updated_at,
            actor = excluded.actor, served = NULL, expires_at = NULL
        """,
        (package_id, name, version_id, digest, now_ms, actor.name),
    )


def times_of_digest(r: Reader, package_id: int, digest: str) -> dict[str, int]:
    """When the tags that point to a manifest were set, in ms, by their names."""
    return dict(r.all("SELECT name, updated_at FROM tag WHERE package_id = ? AND digest = ?", (package_id, digest)))


def set_time(tx: Transaction, package_id: int, name: str, updated_ms: int) -> None:
    """Set the time of a tag that was restored, to the one that it had before: it does not become the newest."""
    tx.send("UPDATE tag SET updated_at = ? WHERE package_id = ? AND name = ?", (updated_ms, package_id, name))


def remove_tag(tx: Transaction, package_id: int, name: str) -> bool:
    """Remove a tag; returns whether it existed."""
    return bool(tx.execute("DELETE FROM tag WHERE package_id = ? AND name = ?", (package_id, name)))
