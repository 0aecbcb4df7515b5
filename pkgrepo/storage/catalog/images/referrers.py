"""What refers to a manifest: signatures, attestations and SBOMs, by subject or by the tags that cosign gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Row
from pkgrepo.storage.catalog.rows import at, column, every, load

TAG_SUFFIXES = ("sig", "att", "sbom")  # of cosign 1 and 2, behind the digest with a dash for its colon
_TAG = re.compile(rf"sha256-([0-9a-f]{{64}})\.(?:{'|'.join(TAG_SUFFIXES)})")


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


_COLUMNS = "m.digest, COALESCE(m.artifact_type, ''), m.media_type, m.size"


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
        SELECT {_COLUMNS}, '', m.annotations, m.created_at FROM manifest m
        WHERE m.package_id = ? AND m.subject = ? ORDER BY m.digest LIMIT ?
        """,
        (package_id, digest, limit),
    )
    stem = digest.replace(":", "-")
    tagged = every(
        r,
        _referrer,
        f"""
        SELECT {_COLUMNS}, t.name, m.annotations, m.created_at FROM tag t
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
    return Referrer(row[0], row[1], row[2], row[3], row[4], load(row[5]), at(row[6]))
