"""
What of an image nothing needs any more.

A manifest is needed when a tag stands for it, or does so for readers while they wait for the signature of another; when
a needed manifest lists it; and when it says of a needed manifest that it belongs to it, as signatures do. A blob is
needed when a manifest of the image refers to it. What somebody touched since a given time counts as needed, and so does
what is promised to a client (see L{promises}), since clients push the parts before the whole.

A plan is made on a reader thread and may be old when it is carried out: everything in it is looked at again, in the
transaction that removes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction

from .linked_blobs import is_needed
from .manifests import has_manifest
from .promises import is_promised, list_promised


@frozen
class Kept:
    """How much nothing needs and stays nevertheless; ``latest_ms`` is the time that says until when, 0 for nothing."""

    count: int
    latest_ms: int


@frozen
class ImagePlan:
    """
    What may go of one image: digests of manifests, those that list others first, and blobs by their sha256.

    ``contents`` are the sha256 of the manifests' own bytes; ``manifests_seen`` and ``blobs_seen`` count what the image
    has. Of what nothing needs, ``young`` was touched too recently, with the time of the last touch, and ``promised`` is
    for pushes under way, with the time when the last promise ends. ``untagged`` counts the manifests that nobody asked
    to remove.
    """

    manifests: tuple[str, ...]
    blobs: tuple[str, ...]
    contents: tuple[str, ...]
    manifests_seen: int
    blobs_seen: int
    young: Kept
    promised: Kept
    untagged: int


@frozen
class _Manifest:
    digest: str
    sha256: str
    subject: str | None
    touched_ms: int
    children: frozenset[str]
    names: frozenset[str]  # of everything that it refers to


def plan_image(r: Reader, package_id: int, before_ms: int, now_ms: int, *, untagged: bool) -> ImagePlan:
    """
    What may go of an image: blobs, and with ``untagged`` also manifests, that nobody touched since ``before_ms`` and
    that are promised to nobody.

    Reads everything that the image consists of, so this is for a reader thread.
    """
    found = _manifests(r, package_id)
    tags = r.all("SELECT digest, served FROM tag WHERE package_id = ?", (package_id,))
    tagged = {digest for row in tags for digest in row if digest is not None}
    promised = list_promised(r, package_id, now_ms)
    in_use = _reachable(found, tagged)
    needed = in_use if untagged else set(found)
    touched = {name: each.touched_ms for name, each in found.items() if each.touched_ms >= before_ms}
    young = _reachable(found, needed | touched.keys()) if untagged else needed
    kept = _reachable(found, young | (promised.keys() & found.keys())) if untagged else needed
    doomed = _parents_first({name: each for name, each in found.items() if name not in kept})
    names = set().union(*(found[name].names for name in kept))
    links = r.all("SELECT sha256, sha512, touched_at FROM package_blob WHERE package_id = ?", (package_id,))
    loose = {
        f"sha256:{sha256.hex()}": touched_ms
        for sha256, sha512, touched_ms in links
        if f"sha256:{sha256.hex()}" not in names and (sha512 is None or f"sha512:{sha512.hex()}" not in names)
    }
    young_blobs = [name for name, touched_ms in loose.items() if touched_ms >= before_ms]
    held_blobs = [name for name in loose if name in promised and name not in young_blobs]
    staying = {*young_blobs, *held_blobs}
    return ImagePlan(
        manifests=doomed,
        blobs=tuple(name.partition(":")[2] for name in loose if name not in staying),
        contents=tuple(found[name].sha256 for name in doomed),
        manifests_seen=len(found),
        blobs_seen=len(links),
        young=_kept([*(young - needed), *young_blobs], {**touched, **loose}),
        promised=_kept([*(kept - young), *held_blobs], promised),
        untagged=0 if untagged else len(found.keys() - in_use),
    )


def still_doomed(
    tx: Transaction, package_id: int, digest: str, doomed: Collection[str], before_ms: int, now_ms: int
) -> bool:
    """Whether a manifest of a plan may still go: nothing that is not ``doomed`` itself needs it, nor a push."""
    row = tx.one("SELECT subject, touched_at FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    if row is None or row[1] >= before_ms:
        return False
    if _is_tagged(tx, package_id, digest) or is_promised(tx, package_id, digest, now_ms):
        return False
    parents = tx.all(
        """
        SELECT m.digest FROM manifest_ref x JOIN manifest m ON m.id = x.manifest_id
        WHERE x.package_id = ? AND x.digest = ?
        """,
        (package_id, digest),
    )
    if any(parent not in doomed for (parent,) in parents):
        return False
    subject = row[0]
    return subject is None or subject in doomed or not has_manifest(tx, package_id, subject)


def loose_blob(tx: Transaction, package_id: int, sha256: str, before_ms: int, now_ms: int) -> bool:
    """
    Whether a blob of a plan may still go.

    Its image has it, nobody touched it, and neither a manifest nor a push needs it.
    """
    row = tx.one(
        "SELECT touched_at FROM package_blob WHERE package_id = ? AND sha256 = ?", (package_id, bytes.fromhex(sha256))
    )
    if row is None or row[0] >= before_ms or is_promised(tx, package_id, f"sha256:{sha256}", now_ms):
        return False
    return not is_needed(tx, package_id, sha256)


def _kept(names: Collection[str], times_ms: Mapping[str, int]) -> Kept:
    return Kept(len(names), max((times_ms[name] for name in names if name in times_ms), default=0))


def _manifests(r: Reader, package_id: int) -> dict[str, _Manifest]:
    references: dict[int, list[tuple[str, str]]] = {}
    for manifest_id, digest, kind in r.all(
        "SELECT manifest_id, digest, kind FROM manifest_ref WHERE package_id = ?", (package_id,)
    ):
        references.setdefault(manifest_id, []).append((digest, kind))
    found = {}
    for id_, digest, sha256, subject, touched_ms in r.all(
        "SELECT id, digest, sha256, subject, touched_at FROM manifest WHERE package_id = ?", (package_id,)
    ):
        named = references.get(id_, [])
        found[digest] = _Manifest(
            digest=digest,
            sha256=sha256.hex(),
            subject=subject,
            touched_ms=touched_ms,
            children=frozenset(name for name, kind in named if kind == "manifest"),
            names=frozenset(name for name, _ in named),
        )
    return found


def _reachable(found: Mapping[str, _Manifest], roots: Iterable[str]) -> set[str]:
    """The roots, what they list, and what belongs to any of these, over again."""
    belonging: dict[str, list[str]] = {}
    for each in found.values():
        if each.subject is not None:
            belonging.setdefault(each.subject, []).append(each.digest)
    reached: set[str] = set()
    open_ = [name for name in roots if name in found]
    while open_:
        name = open_.pop()
        if name in reached:
            continue
        reached.add(name)
        open_ += (child for child in found[name].children if child in found)
        open_ += belonging.get(name, ())
    return reached


def _parents_first(doomed: Mapping[str, _Manifest]) -> tuple[str, ...]:
    """
    An order in which no manifest goes before those that list it, nor before that to which it belongs.

    So that one that comes back into use half-way still has everything. Only the second can go in a circle: a list is
    named by what is in it, so no list holds itself.
    """
    listing: dict[str, set[str]] = {name: set() for name in doomed}
    for name, each in doomed.items():
        for child in each.children & doomed.keys():
            listing[child].add(name)
    both = {name: {*before, *({doomed[name].subject} & doomed.keys())} for name, before in listing.items()}
    try:
        return tuple(str(name) for name in TopologicalSorter(both).static_order())
    except CycleError:
        return tuple(TopologicalSorter(listing).static_order())


def _is_tagged(r: Reader, package_id: int, digest: str) -> bool:
    """Whether a tag stands for a manifest, or did for readers until its successor is trusted."""
    row = r.one("SELECT 1 FROM tag WHERE package_id = ? AND ? IN (digest, served) LIMIT 1", (package_id, digest))
    return row is not None
