"""Images as lists show them: what a tag stands for, or a manifest that no tag and no other manifest names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Value
from pkgrepo.storage.catalog.columns import at, load
from pkgrepo.storage.catalog.rows import column, every, find, number

from .linked_blobs import find_in_package
from .trust import Keys, shown

MOST_PARTS = 10_000  # manifests and blobs of one image that are looked at for its size


@frozen
class ImageVersion:
    """
    A tag of an image, or a manifest without one: ``name`` is the tag, else the digest.

    ``pushed_at`` is when the tag was last set; ``waiting`` says that readers do not see it before it is signed.
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
    """A manifest or blob that an image consists of; ``kind`` is manifest, config or layer, ``size`` in bytes."""

    digest: str
    kind: str
    media_type: str
    size: int
    uploaded_at: datetime


_COLUMNS = "m.digest, m.media_type, m.artifact_type, m.subject, m.annotations, m.expires_at"
_LOOSE = """
    NOT EXISTS (SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.digest = m.digest)
    AND NOT EXISTS (SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.served = m.digest)
    AND NOT EXISTS (
        SELECT 1 FROM manifest_ref f WHERE f.package_id = m.package_id AND f.digest = m.digest AND f.kind = 'manifest'
    )
"""


def list_image_versions(
    r: Reader, package_id: int, *, before: tuple[int, str] | None = None, limit: int = 50, keys: Keys = None
) -> list[ImageVersion]:
    """
    What was pushed last comes first; a page begins below the time and name in ``before``.

    With ``keys`` only what readers who trust those may see.
    """
    below = "" if before is None else "WHERE (pushed, name) < (?, ?)"
    sql = f"SELECT * FROM ({_every(keys)}) x {below} ORDER BY pushed DESC, name DESC LIMIT ?"
    return every(r, _version, sql, (*_twice(package_id, keys), *(before or ()), limit))


def count_image_versions(r: Reader, package_id: int, keys: Keys = None) -> int:
    """How many there are."""
    return number(r, f"SELECT COUNT(*) FROM ({_every(keys)}) x", _twice(package_id, keys))


def find_image_version(r: Reader, package_id: int, name: str, keys: Keys = None) -> ImageVersion | None:
    """The version of this tag, or the manifest of this digest, whatever names that; None when there is none."""
    if ":" in name:
        sql = f"SELECT m.digest, m.created_at, '', {_COLUMNS} FROM manifest m WHERE m.package_id = ? AND m.digest = ?"
    else:
        sql = f"{_tags(keys)} AND t.name = ?"
    return find(r, _version, f"{sql}{shown(keys)}", (package_id, name, *(keys or ())))


def tags_of_manifest(r: Reader, package_id: int, digest: str) -> list[str]:
    """Names of the tags that stand for a manifest, in order."""
    return column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name", (package_id, digest))


def image_parts(r: Reader, storage_id: int, package_id: int, digest: str) -> list[ImagePart]:
    """
    What an image consists of, each part once: the manifest, those that it names, and the blobs of all of them.

    What is named and not there is left out.
    """
    found: list[ImagePart] = []
    waiting, seen = [digest], {digest}
    while waiting and len(found) < MOST_PARTS:
        current = waiting.pop(0)
        row = r.one(
            "SELECT id, media_type, size, created_at FROM manifest WHERE package_id = ? AND digest = ?",
            (package_id, current),
        )
        if row is None:
            continue
        uploaded_at = at(row[3])
        found.append(ImagePart(current, "manifest", row[1], row[2], uploaded_at))
        for name, kind in r.all(
            "SELECT digest, kind FROM manifest_ref WHERE manifest_id = ? ORDER BY kind, digest", (row[0],)
        ):
            if name in seen:
                continue
            seen.add(name)
            blob = None if kind == "manifest" else find_in_package(r, storage_id, package_id, name)
            if kind == "manifest":
                waiting.append(name)
            elif blob is not None:
                found.append(ImagePart(name, kind, "application/octet-stream", blob.size, uploaded_at))
    return found


def _every(keys: Keys) -> str:
    return f"""
        {_tags(keys)}{shown(keys)}
        UNION ALL
        SELECT m.digest, m.created_at, '', {_COLUMNS} FROM manifest m WHERE m.package_id = ? AND {_LOOSE}{shown(keys)}
    """


def _twice(package_id: int, keys: Keys) -> list[Value]:
    """The parameters of ``_every``."""
    return [package_id, *(keys or ())] * 2


def _tags(keys: Keys) -> str:
    standing = "t.digest" if keys is None else "COALESCE(t.served, t.digest)"
    return f"""
        SELECT t.name AS name, t.updated_at AS pushed, t.actor AS actor, {_COLUMNS} FROM tag t
        JOIN manifest m ON m.package_id = t.package_id AND m.digest = {standing} WHERE t.package_id = ?
    """


def _version(row: Row) -> ImageVersion:
    return ImageVersion(
        name=row[0],
        pushed_at=at(row[1]),
        pushed_ms=row[1],
        publisher=row[2],
        digest=row[3],
        media_type=row[4],
        artifact_type=row[5],
        subject=row[6],
        annotations=load(row[7]),
        waiting=row[8] is not None,
    )
