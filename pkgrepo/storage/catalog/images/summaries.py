"""Summaries of images for lists: an entry per tag, and per manifest without a tag or an index; and referrers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Value
from pkgrepo.storage.catalog.images.linked_blobs import find_in_package
from pkgrepo.storage.catalog.images.trust import Keys, visible
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import at, column, every, find, load, number, only_row

MAX_PARTS = 10_000  # manifests and blobs that one call of image_parts reads


_COLUMNS = "m.digest, m.media_type, m.artifact_type, m.subject, m.annotations, m.expires_at"
# The condition on a manifest ``m`` that no tag and no index refers to it.
_UNREFERENCED = """
    NOT EXISTS (SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.digest = m.digest)
    AND NOT EXISTS (SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.served = m.digest)
    AND NOT EXISTS (
        SELECT 1 FROM manifest_ref f WHERE f.package_id = m.package_id AND f.digest = m.digest AND f.kind = 'manifest'
    )
"""
TAG_SUFFIXES = ("sig", "att", "sbom")  # of cosign 1 and 2, behind the digest with a dash for its colon
_NO_STATEMENT_TAG = """
    AND t.name NOT LIKE 'sha256-%.sig' AND t.name NOT LIKE 'sha256-%.att' AND t.name NOT LIKE 'sha256-%.sbom'
"""
_TAG = re.compile(rf"sha256-([0-9a-f]{{64}})\.(?:{'|'.join(TAG_SUFFIXES)})")
_REFERRER = "m.digest, COALESCE(m.artifact_type, ''), m.media_type, m.size"


@frozen
class ImageVersion:
    """
    A tag of an image, or a manifest without a tag: ``name`` is the tag, else the digest.

    ``pushed_at`` is the time when the tag was last set, else when the manifest was pushed (``pushed_ms``: the same in
    ms). ``publisher`` is empty for a manifest. ``waiting`` means that the manifest is in quarantine.
    """

    name: str
    digest: str
    pushed_at: datetime
    pushed_ms: int
    publisher: str
    media_type: str
    artifact_type: str | None
    subject: str | None
    annotations: Mapping[str, str]
    waiting: bool


@frozen
class ImagePart:
    """A manifest or blob of an image; ``kind`` is manifest, config or layer, ``size`` in bytes."""

    digest: str
    kind: str
    media_type: str
    size: int
    uploaded_at: datetime


IMAGE_ORDERS: Final[Mapping[str, Order[ImageVersion]]] = both_ways(
    {
        "published_at": [("pushed", int, lambda each: each.pushed_ms), ("name", str, lambda each: each.name)],
        "version": [("name", str, lambda each: each.name), ("pushed", int, lambda each: each.pushed_ms)],
    }
)


def list_image_versions(
    r: Reader,
    package_id: int,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    order: str = "-published_at",
    keys: Keys = None,
    alone: bool = False,
) -> list[ImageVersion]:
    """
    A page of an image's versions in one of the ``IMAGE_ORDERS``, where ``version`` is the name.

    It starts after the position of the last one of the page before. With ``keys`` only what readers may
    see, see L{trust}. With ``alone`` without manifests about others, and the tags of cosign.
    """
    sorting = IMAGE_ORDERS[order]
    beyond = f"WHERE {sorting.beyond}" if after else ""
    sql = f"SELECT * FROM ({_versions_sql(keys, alone)}) x {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _version, sql, (*_versions_parameters(package_id, keys), *after, limit))


def count_image_versions(r: Reader, package_id: int, keys: Keys = None, *, alone: bool = False) -> int:
    """The number of versions that ``list_image_versions`` returns over all pages."""
    return number(r, f"SELECT COUNT(*) FROM ({_versions_sql(keys, alone)}) x", _versions_parameters(package_id, keys))


def find_image_version(r: Reader, package_id: int, name: str, keys: Keys = None) -> ImageVersion | None:
    """The version with this tag, or the manifest with this digest even if a tag or index refers to it; or None."""
    if ":" in name:
        sql = f"SELECT m.digest, m.created_at, '', {_COLUMNS} FROM manifest m WHERE m.package_id = ? AND m.digest = ?"
    else:
        sql = f"{_tags_sql(keys)} AND t.name = ?"
    return find(r, _version, f"{sql}{visible(keys)}", (package_id, name, *(keys or ())))


def tags_of_manifest(r: Reader, package_id: int, digest: str) -> list[str]:
    """The names of the tags that point to a manifest, in order."""
    return column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name", (package_id, digest))


def pulls_of_manifest(r: Reader, package_id: int, digest: str) -> tuple[int, int | None]:
    """How often a manifest was pulled, by whatever tag, and the last day since the epoch; None if it never was here."""
    sql = """
        SELECT COALESCE(SUM(d.count), 0), MAX(CASE WHEN d.day >= 0 THEN d.day END) FROM manifest m
        JOIN download_count d ON d.kind = 'manifest' AND d.item_id = m.id
        WHERE m.package_id = ? AND m.digest = ?
    """
    count, day = only_row(r, sql, (package_id, digest))
    return int(count), day


def most_pulled_tags(r: Reader, package_id: int, from_day: int, limit: int, keys: Keys = None) -> list[tuple[str, int]]:
    """
    The tags whose manifests were pulled most since a day, as pairs (tag, count).

    Without the tags of cosign. With ``keys`` only what readers may see, see L{trust}.
    """
    target = "t.digest" if keys is None else "COALESCE(t.served, t.digest)"
    return r.all(
        f"""
        SELECT t.name, SUM(d.count) FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest = {target}
        JOIN download_count d ON d.kind = 'manifest' AND d.item_id = m.id AND d.day >= ?
        WHERE t.package_id = ? AND m.evidence = 0{visible(keys)} GROUP BY t.name ORDER BY 2 DESC, t.name LIMIT ?
        """,
        (from_day, package_id, *(keys or ()), limit),
    )


def image_parts(r: Reader, storage_id: int, package_id: int, digest: str) -> list[ImagePart]:
    """
    A manifest, its descendants, and the blobs of all of them, each once.

    References to objects that the image does not have are left out. No more manifests are read after ``MAX_PARTS``.
    """
    found: list[ImagePart] = []
    pending, seen = [digest], {digest}
    while pending and len(found) < MAX_PARTS:
        current = pending.pop(0)
        row = r.one(
            "SELECT id, media_type, size, created_at FROM manifest WHERE package_id = ? AND digest = ?",
            (package_id, current),
        )
        if row is None:
            continue
        manifest_id, media_type, size, created_ms = row
        uploaded_at = at(created_ms)
        found.append(ImagePart(current, "manifest", media_type, size, uploaded_at))
        for name, kind in r.all(
            "SELECT digest, kind FROM manifest_ref WHERE manifest_id = ? ORDER BY kind, digest", (manifest_id,)
        ):
            if name in seen:
                continue
            seen.add(name)
            blob = None if kind == "manifest" else find_in_package(r, storage_id, package_id, name)
            if kind == "manifest":
                pending.append(name)
            elif blob is not None:
                found.append(ImagePart(name, kind, "application/octet-stream", blob.size, uploaded_at))
    return found


def _versions_sql(keys: Keys, alone: bool) -> str:
    shown = visible(keys)
    tags = _NO_STATEMENT_TAG if alone else ""
    manifests = "AND m.subject IS NULL" if alone else ""
    return f"""
        {_tags_sql(keys)} {tags}{shown}
        UNION ALL
        SELECT m.digest, m.created_at, '', {_COLUMNS} FROM manifest m
        WHERE m.package_id = ? AND {_UNREFERENCED} {manifests}{shown}
    """


def _versions_parameters(package_id: int, keys: Keys) -> list[Value]:
    """The parameters of ``_versions_sql``, which has two SELECTs with the same ones."""
    return [package_id, *(keys or ())] * 2


def _tags_sql(keys: Keys) -> str:
    target = "t.digest" if keys is None else "COALESCE(t.served, t.digest)"
    return f"""
        SELECT t.name AS name, t.updated_at AS pushed, t.actor AS actor, {_COLUMNS} FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest = {target} WHERE t.package_id = ?
    """


def _version(row: Row) -> ImageVersion:
    name, pushed_ms, publisher, digest, media_type, artifact_type, subject, annotations, expires_ms = row
    return ImageVersion(
        *(name, digest, at(pushed_ms), pushed_ms, publisher, media_type, artifact_type, subject),
        annotations=load(annotations),
        waiting=expires_ms is not None,
    )


@frozen
class Referrer:
    """A manifest about another one. ``tag`` is the one that says so; empty if its subject does. ``size`` in bytes."""

    digest: str
    artifact_type: str
    media_type: str
    size: int
    tag: str
    annotations: Mapping[str, str]
    pushed_at: datetime


def subject_of_tag(tag: str) -> str | None:
    """The digest of the manifest that a tag of cosign is about; None for other tags."""
    match = _TAG.fullmatch(tag)
    return None if match is None else f"sha256:{match[1]}"


def list_referrers(r: Reader, package_id: int, digest: str, limit: int) -> list[Referrer]:
    """At most ``limit`` manifests that have this one as subject, and those at the tags of cosign."""
    by_subject = every(
        r,
        _referrer,
        f"""
        SELECT {_REFERRER}, '', m.annotations, m.created_at FROM manifest m
        WHERE m.package_id = ? AND m.subject = ? ORDER BY m.digest LIMIT ?
        """,
        (package_id, digest, limit),
    )
    stem = digest.replace(":", "-")
    tagged = every(
        r,
        _referrer,
        f"""
        SELECT {_REFERRER}, t.name, m.annotations, m.created_at FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest = t.digest
        WHERE t.package_id = ? AND t.name IN (?, ?, ?) ORDER BY t.name
        """,
        (package_id, *(f"{stem}.{suffix}" for suffix in TAG_SUFFIXES)),
    )
    return [*by_subject, *tagged]


def signers_of(r: Reader, package_id: int, digest: str) -> list[str]:
    """The ids of the keys by whose signatures a manifest is trusted, in order."""
    return column(
        r,
        """
        SELECT x.key_id FROM manifest_trust x JOIN manifest m ON m.id = x.manifest_id
        WHERE m.package_id = ? AND m.digest = ? ORDER BY x.key_id
        """,
        (package_id, digest),
    )


def _referrer(row: Row) -> Referrer:
    *stored, annotations, pushed_ms = row
    return Referrer(*(*stored, load(annotations), at(pushed_ms)))
