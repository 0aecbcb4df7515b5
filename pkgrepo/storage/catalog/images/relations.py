"""
What rules ask about a manifest or blob of an image: its age and labels, the manifests around it, their tags.

What a manifest has inside is known by its digest in all repositories, and by the chain ids of its layers, see
L{pkgrepo.storage.catalog.file_facts}: many images have the lowest layers in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.file_facts import FileFacts, find_facts, note_facts
from pkgrepo.storage.catalog.rows import batches, column, dump, load, placeholders, scalar

from .first_sights import Age, find_age

MOST: int = 1000  # manifests that refer to one blob, which are looked at

Labels = Mapping[str, str]

NOTHING_INSIDE: Final = FileFacts(contents=())  # of signatures and their kind: no program runs them
_OF_IMAGES, _ALL = "images", ""  # in place of a format and a package: it is known in the same way of all images


@frozen
class Relations:
    """
    A manifest with its ``tags``, the manifests that it lists, and those that refer to it (``within``).

    Of a blob only the last are there. ``known`` tells whether it is a manifest that is kept; ``route`` is that of the
    upstream that had it. ``labels`` are its own, of an index those of each manifest that it lists; None for one of
    which they are not known. ``unread`` are the digests of those whose configuration was not read yet. ``insides``
    are what the manifest has inside, of an index what each that it lists has; None for one that was not read yet.
    """

    digest: str
    tags: tuple[str, ...]
    lists: tuple[str, ...]
    within: tuple[str, ...]
    age: Age
    known: bool
    route: str = ""
    labels: tuple[Labels | None, ...] = ()
    unread: tuple[str, ...] = ()
    insides: tuple[FileFacts | None, ...] = ()


def find_relations(r: Reader, repository_id: int, image: str, digest: str) -> Relations:
    """The relations of a manifest or blob of an image."""
    package_id = scalar(r, "SELECT id FROM package WHERE repository_id = ? AND key = ?", (repository_id, image)) or 0
    at = (package_id, digest)
    tags = column(r, "SELECT name FROM tag WHERE package_id = ? AND digest = ? ORDER BY name", at)
    tags += column(r, "SELECT name FROM tag WHERE package_id = ? AND served = ? ORDER BY name", at)
    within = column(
        r,
        "SELECT m.digest FROM manifest_ref x JOIN manifest m ON m.id = x.manifest_id "
        "WHERE x.package_id = ? AND x.digest = ? ORDER BY m.digest LIMIT ?",
        (*at, MOST),
    )
    own = r.one("SELECT route, evidence, labels FROM manifest WHERE package_id = ? AND digest = ?", at)
    listed = [] if own is None else _listed(r, package_id, digest)
    described = [*listed]
    if own is not None and not listed:
        described = [(digest, own[1], own[2])]
    return Relations(
        digest,
        tuple(dict.fromkeys(tags)),
        tuple(each for each, _, _ in listed),
        tuple(within),
        find_age(r, repository_id, image, digest),
        own is not None,
        route="" if own is None else own[0],
        labels=tuple({} if evidence else load(labels or "null") for _, evidence, labels in described),
        unread=tuple(each for each, evidence, labels in described if not evidence and labels is None),
        insides=tuple(NOTHING_INSIDE if evidence else find_inside(r, each) for each, evidence, _ in described),
    )


def _listed(r: Reader, package_id: int, digest: str) -> Sequence[tuple[str, int | None, str | None]]:
    """The manifests that an index lists: digests, whether they are about another one, and labels if they are kept."""
    found = r.all(
        """
        SELECT x.digest, c.evidence, c.labels
        FROM manifest m JOIN manifest_ref x ON x.manifest_id = m.id
        LEFT JOIN manifest c ON c.package_id = x.package_id AND c.digest = x.digest
        WHERE m.package_id = ? AND m.digest = ? AND x.kind = 'manifest' ORDER BY x.digest
        """,
        (package_id, digest),
    )
    return [(each[0], each[1], each[2]) for each in found]


def find_inside(r: Reader, name: str) -> FileFacts | None:
    """What a manifest has inside, or with the chain id of a stack of layers what these have; None: it was not read."""
    return find_facts(r, _OF_IMAGES, _ALL, name)


def note_inside(tx: Transaction, name: str, facts: FileFacts, now_ms: int) -> None:
    """Keep that."""
    note_facts(tx, _OF_IMAGES, _ALL, name, facts, now_ms, shown=True)


def configuration_of(r: Reader, repository_id: int, image: str, digest: str) -> tuple[bool, str | None]:
    """Whether an image has a manifest, and the digest of its configuration, None if it has none."""
    found = r.one(
        """
        SELECT x.digest FROM package p JOIN manifest m ON m.package_id = p.id
        LEFT JOIN manifest_ref x ON x.manifest_id = m.id AND x.kind = 'config'
        WHERE p.repository_id = ? AND p.key = ? AND m.digest = ?
        """,
        (repository_id, image, digest),
    )
    return (False, None) if found is None else (True, found[0])


def note_labels(tx: Transaction, repository_id: int, image: str, digest: str, labels: Labels | None) -> None:
    """Store the labels of a manifest; None: they cannot be read."""
    tx.send(
        "UPDATE manifest SET labels = ? WHERE digest = ? AND package_id = "
        "(SELECT id FROM package WHERE repository_id = ? AND key = ?)",
        (dump(labels), digest, repository_id, image),
    )


def note_route(tx: Transaction, repository_id: int, image: str, digest: str, route: str) -> None:
    """Store the name of the route that a manifest came from."""
    tx.send(
        "UPDATE manifest SET route = ? WHERE digest = ? AND package_id = "
        "(SELECT id FROM package WHERE repository_id = ? AND key = ?)",
        (route, digest, repository_id, image),
    )


def manifests_of_blob(r: Reader, repository_ids: Sequence[int], digest: str) -> list[bytes]:
    """The sha256 of the manifests in some repositories of which a blob is a layer or the configuration."""
    found: set[bytes] = set()
    for some in batches(repository_ids):
        sql = f"""
            SELECT m.sha256 FROM package p JOIN manifest_ref x ON x.package_id = p.id AND x.digest = ?
            JOIN manifest m ON m.id = x.manifest_id
            WHERE p.repository_id IN ({placeholders(len(some))}) AND x.kind <> 'manifest'
        """
        found.update(column(r, sql, (digest, *some)))
    return sorted(found)


def former_digests(r: Reader, repository_id: int, image: str, tag: str, limit: int) -> list[str]:
    """The digests that a tag pointed to, the latest first."""
    return column(
        r,
        "SELECT digest FROM first_sight WHERE repository_id = ? AND package_key = ? AND tag = ? "
        "ORDER BY moved_at DESC, digest LIMIT ?",
        (repository_id, image, tag, limit),
    )
