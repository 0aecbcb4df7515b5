"""
Garbage collection of images: which manifests and blobs of an image are not needed.

=========  ============================================================================================================
object     is needed if
=========  ============================================================================================================
manifest   a tag points to it, or did so when it went to the trash, or serves it while the new one is in quarantine;
           or a needed index lists it; or its subject is a needed manifest (signatures and other referrers). A manifest
           in the trash is needed: it may come back. A tag that cosign made about another manifest of the image counts
           only while that one is needed
blob       a manifest of the image refers to it
both       touched within the grace period, or leased to a client (see L{linked_blobs}): clients push blobs before the
           manifest, and manifests before the index
=========  ============================================================================================================

A plan is made on a reader thread, so it may be outdated when it is executed. The transaction that removes an object
checks all conditions again.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec
from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.images.linked_blobs import is_leased, list_leased
from pkgrepo.storage.catalog.images.summaries import subject_of_tag
from pkgrepo.storage.catalog.rows import scalar

from .linked_blobs import is_needed
from .manifests import has_manifest

# Name and digest of the tags of an image that are in the trash: to restore them needs the manifest.
_IN_TRASH = """
    SELECT i.name, i.digest FROM package p
    JOIN trash t ON t.repository_id = p.repository_id AND t.package_key = p.key
    JOIN trash_item i ON i.trash_id = t.id
    WHERE p.id = ? AND i.digest IS NOT NULL
"""
# What the trash keeps of the manifests of an image, as JSON.
_MANIFESTS_IN_TRASH = """
    SELECT i.data FROM package p
    JOIN trash t ON t.repository_id = p.repository_id AND t.package_key = p.key
    JOIN trash_item i ON i.trash_id = t.id
    WHERE p.id = ? AND i.kind = 'manifest'
"""
_STAMP_OF_TRASH = _MANIFESTS_IN_TRASH.replace("i.data", "COUNT(*), COALESCE(SUM(i.id), 0)")


@frozen
class Kept:
    """The number of unneeded objects that stay for now; ``latest_ms`` is the latest of their times, 0 without any."""

    count: int
    latest_ms: int


@frozen
class ImagePlan:
    """
    What can be removed from one image: digests of manifests, indexes before their children, and sha256 of blobs.

    ``contents`` are the sha256 of the manifests' own blobs. ``manifests_seen`` and ``blobs_seen`` count all objects of
    the image. ``young`` counts unneeded objects that were touched within the grace period, with the time of the latest
    touch; ``leased`` those with a lease, with the time when the last lease ends. ``untagged`` counts unneeded
    manifests that stay because the option ``untagged`` is not set.
    """

    manifests: tuple[str, ...]
    blobs: tuple[str, ...]
    contents: tuple[str, ...]
    manifests_seen: int
    blobs_seen: int
    young: Kept
    leased: Kept
    untagged: int


@frozen
class _Manifest:
    digest: str
    sha256: str
    subject: str | None
    touched_ms: int
    children: frozenset[str]
    references: frozenset[str]  # digests of manifests and blobs


@frozen
class _InTrash:
    """The fields that are read here of a manifest in the trash, see L{ManifestRecord}."""

    digest: str
    references: Sequence[tuple[str, str]]


@frozen
class _TrashItem:
    manifest: _InTrash


def plan_image(r: Reader, package_id: int, before_ms: int, now_ms: int, *, untagged: bool) -> ImagePlan:
    """
    Plan what can be removed from an image: unneeded blobs and, with ``untagged``, unneeded manifests.

    Objects touched at or after ``before_ms``, or with a lease, are kept. Reads all rows of the image: call it on a
    reader thread.
    """
    found = _manifests(r, package_id)
    tagged, about = _tagged(r, package_id, found)
    leased = list_leased(r, package_id, now_ms)
    in_use = _reachable(found, about, tagged | _roots_in_trash(r, package_id, found))
    needed = in_use if untagged else set(found)
    touched = {name: each.touched_ms for name, each in found.items() if each.touched_ms >= before_ms}
    young = _reachable(found, about, needed | _with_subjects(touched, about)) if untagged else needed
    held = _with_subjects(leased.keys() & found.keys(), about)
    kept = _reachable(found, about, young | held) if untagged else needed
    removable = _parents_first({name: each for name, each in found.items() if name not in kept}, about)
    referenced = set().union(*(found[name].references for name in kept))
    links = r.all("SELECT sha256, sha512, touched_at FROM package_blob WHERE package_id = ?", (package_id,))
    unreferenced = {
        f"sha256:{sha256.hex()}": touched_ms
        for sha256, sha512, touched_ms in links
        if f"sha256:{sha256.hex()}" not in referenced and (sha512 is None or f"sha512:{sha512.hex()}" not in referenced)
    }
    young_blobs = [name for name, touched_ms in unreferenced.items() if touched_ms >= before_ms]
    leased_blobs = [name for name in unreferenced if name in leased and name not in young_blobs]
    kept_blobs = {*young_blobs, *leased_blobs}
    return ImagePlan(
        manifests=removable,
        blobs=tuple(name.partition(":")[2] for name in unreferenced if name not in kept_blobs),
        contents=tuple(found[name].sha256 for name in removable),
        manifests_seen=len(found),
        blobs_seen=len(links),
        young=_kept([*(young - needed), *young_blobs], {**touched, **unreferenced}),
        leased=_kept([*(kept - young), *leased_blobs], leased),
        untagged=0 if untagged else len(found.keys() - in_use),
    )


@frozen
class Loss:
    """
    A manifest that goes, with the bytes that only it and earlier ones of the list need.

    ``cause`` is the one of those asked for with which it goes: itself, its index or its subject.
    """

    digest: str
    size: int
    cause: str


def find_loss(r: Reader, storage_id: int, package_id: int, doomed: Collection[str], now_ms: int) -> list[Loss]:
    """
    What an image loses with some manifests: these, and their children and referrers that nothing else needs.

    Other manifests stay with all they need, and so does what is leased, and what the trash needs. In the order of
    removal: indexes before their children, subjects before their referrers.
    """
    found = _manifests(r, package_id)
    tagged, about = _tagged(r, package_id, found)
    reached = {name: _reachable(found, about, [name]) for name in doomed}
    going = set[str]().union(*reached.values())
    leased = list_leased(r, package_id, now_ms)
    held = _roots_in_trash(r, package_id, found)
    kept = _reachable(found, about, (found.keys() - going) | (tagged - set(doomed)) | leased.keys() | held)
    causes = {name: cause for cause, names in reached.items() for name in names if name not in kept}
    causes |= {name: name for name in doomed if name in causes}
    needed = set[str]().union(*(each.references for name, each in found.items() if name not in causes))
    rows = r.all(
        """
        SELECT x.sha256, x.sha512, b.size FROM package_blob x CROSS JOIN blob b
        WHERE x.package_id = ? AND b.storage_id = ? AND b.sha256 = x.sha256
        """,
        (package_id, storage_id),
    )
    sizes: dict[str, int] = {f"sha256:{sha256.hex()}": size for sha256, _, size in rows}
    sizes |= {f"sha512:{sha512.hex()}": size for _, sha512, size in rows if sha512 is not None}
    own: dict[str, int] = dict(r.all("SELECT digest, size FROM manifest WHERE package_id = ?", (package_id,)))
    losses = []
    for name in _parents_first({name: found[name] for name in causes}, about):
        freed = found[name].references - needed
        needed |= freed
        losses.append(Loss(name, own.get(name, 0) + sum(sizes.get(each, 0) for each in freed), causes[name]))
    return losses


@frozen
class Held:
    """
    The manifests of an image that those in the trash need to come back whole: their children and their referrers.

    ``stamp`` is another one when other manifests of the image are in the trash.
    """

    stamp: tuple[int, int] = (0, 0)
    digests: frozenset[str] = frozenset()


def held_by_trash(r: Reader, package_id: int, known: Held | None = None) -> Held:
    """
    What the trash holds of an image, by all rows of an image of which something is in the trash.

    It is what is ``known`` if the same manifests are in the trash: all that came to need others since was pushed or
    tagged since, which L{may_remove_manifest} sees.
    """
    row = r.one(_STAMP_OF_TRASH, (package_id,))  # read first, so that what comes meanwhile is another stamp
    assert row is not None, "it counts"
    count, total = row
    if known is not None and known.stamp == (count, total):
        return known
    if not count:
        return Held()
    found = _manifests(r, package_id)
    needed = _reachable(found, _tagged(r, package_id, found)[1], _roots_in_trash(r, package_id, found))
    return Held((count, total), frozenset(needed))


def may_remove_manifest(
    tx: Transaction, package_id: int, digest: str, planned: Container[str], before_ms: int, now_ms: int
) -> bool:
    """
    Whether a manifest of a plan is still unneeded, now that it is to be removed.

    References from manifests that are ``planned`` for removal as well do not count, and neither do the tags of cosign
    about those that are removed already.
    """
    row = tx.one("SELECT subject, touched_at FROM manifest WHERE package_id = ? AND digest = ?", (package_id, digest))
    if row is None:
        return False
    subject, touched_ms = row
    if (
        touched_ms >= before_ms
        or _is_tagged(tx, package_id, digest, planned)
        or is_leased(tx, package_id, digest, now_ms)
    ):
        return False
    parents = tx.all(
        """
        SELECT m.digest FROM manifest_ref x JOIN manifest m ON m.id = x.manifest_id
        WHERE x.package_id = ? AND x.digest = ?
        """,
        (package_id, digest),
    )
    if any(parent not in planned for (parent,) in parents):
        return False
    return subject is None or subject in planned or not has_manifest(tx, package_id, subject)


def may_remove_blob(tx: Transaction, package_id: int, sha256: str, before_ms: int, now_ms: int) -> bool:
    """
    Whether a blob of a plan is still unneeded, now that it is to be removed.

    That is: the image has it, it was last touched before ``before_ms``, it has no lease, no manifest refers to it.
    """
    sql = "SELECT touched_at FROM package_blob WHERE package_id = ? AND sha256 = ?"
    touched_ms = scalar(tx, sql, (package_id, bytes.fromhex(sha256)))
    if touched_ms is None or touched_ms >= before_ms or is_leased(tx, package_id, f"sha256:{sha256}", now_ms):
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
            references=frozenset(name for name, _ in named),
        )
    return found


def _tagged(r: Reader, package_id: int, found: Mapping[str, _Manifest]) -> tuple[set[str], dict[str, list[str]]]:
    """
    The digests that tags point to; and, by the manifest found that they are about, those at the tags of cosign.

    Signatures may be kept apart from their images (COSIGN_REPOSITORY): a tag about what the image does not have counts.
    """
    tagged: set[str] = set()
    about: dict[str, list[str]] = {}
    tags = r.all("SELECT name, digest, served FROM tag WHERE package_id = ?", (package_id,))
    for name, *digests in (*tags, *r.all(_IN_TRASH, (package_id,))):
        subject = subject_of_tag(name)
        for digest in digests:
            if digest is None:
                continue
            if subject is None or subject not in found or subject == digest:
                tagged.add(digest)
            else:
                about.setdefault(subject, []).append(digest)
    return tagged, about


def _roots_in_trash(r: Reader, package_id: int, found: Mapping[str, _Manifest]) -> set[str]:
    """The digests, of the manifests found, that a manifest in the trash lists or refers to as its subject."""
    gone: set[str] = set()
    listed: set[str] = set()
    for (data,) in r.all(_MANIFESTS_IN_TRASH, (package_id,)):
        each = msgspec.json.decode(data, type=_TrashItem).manifest
        gone.add(each.digest)
        listed.update(name for name, _ in each.references)
    return {name for name, each in found.items() if name in listed or each.subject in gone}


def _with_subjects(names: Collection[str], about: Mapping[str, list[str]]) -> set[str]:
    """These manifests, and what they are about by a tag of cosign: one is not removed before the other."""
    return {*names, *(subject for subject, some in about.items() if any(each in names for each in some))}


def _reachable(found: Mapping[str, _Manifest], about: Mapping[str, list[str]], roots: Iterable[str]) -> set[str]:
    """The roots, and recursively the children and the referrers of each manifest found."""
    referrers = {subject: [each for each in some if each in found] for subject, some in about.items()}
    for each in found.values():
        if each.subject is not None:
            referrers.setdefault(each.subject, []).append(each.digest)
    reached: set[str] = set()
    pending = [name for name in roots if name in found]
    while pending:
        name = pending.pop()
        if name in reached:
            continue
        reached.add(name)
        pending += (child for child in found[name].children if child in found)
        pending += referrers.get(name, ())
    return reached


def _parents_first(manifests: Mapping[str, _Manifest], about: Mapping[str, list[str]]) -> tuple[str, ...]:
    """
    The manifests in removal order: an index before its children, and a subject before its referrers.

    If a manifest becomes needed during the removal, then its children and referrers are all still there. Subjects may
    form a cycle, and are then ignored. Indexes cannot, since the digest of an index depends on those of its children.
    """
    parents: dict[str, set[str]] = {name: set() for name in manifests}
    for name, each in manifests.items():
        for child in each.children & manifests.keys():
            parents[child].add(name)
    both = {name: {*before, *({manifests[name].subject} & manifests.keys())} for name, before in parents.items()}
    for subject in about.keys() & manifests.keys():
        for name in manifests.keys() & about[subject]:
            both[name].add(subject)
    try:
        return tuple(str(name) for name in TopologicalSorter(both).static_order())
    except CycleError:
        return tuple(TopologicalSorter(parents).static_order())


def _is_tagged(r: Reader, package_id: int, digest: str, planned: Container[str]) -> bool:
    """Whether a tag that counts points to a manifest, or serves it while the new one is in quarantine."""
    tags = r.all("SELECT name FROM tag WHERE package_id = ? AND ? IN (digest, served)", (package_id, digest))
    for name, *_ in (*tags, *r.all(f"{_IN_TRASH} AND i.digest = ?", (package_id, digest))):
        subject = subject_of_tag(name)
        if subject is None or subject not in planned or has_manifest(r, package_id, subject):
            return True
    return False
