"""
What the rules select among the tags and untagged manifests of an image, and how it is removed.

A manifest goes when every tag that pointed to it goes. With it go the children of an index that no other index lists,
and what refers to it: signatures, also those under cosign's tags, and other referrers. Manifests that were touched
within ``GRACE_MS``, or are leased to a push, are not taken without a tag: an index or a tag may follow. What a manifest
in the trash needs to be restored whole stays as long as that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial

from attrs import evolve

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.images.manifests import delete_manifest, delete_tag
from pkgrepo.repositories.images.push import fixed_tags
from pkgrepo.storage.catalog.images.gc import Loss, find_loss, held_by_trash
from pkgrepo.storage.catalog.images.linked_blobs import list_leased
from pkgrepo.storage.catalog.images.retained import ManifestAge, TagAge, manifest_ages, tag_ages
from pkgrepo.storage.catalog.images.summaries import subject_of_tag
from pkgrepo.storage.catalog.packages.pins import pinned_names
from pkgrepo.storage.catalog.packages.retained import PackageName, downloads_of
from pkgrepo.storage.catalog.server.trash import Disposal

from .rules import DAY_MS, Rules, Selected, Unit
from .versions import Plan, Victim

GRACE_MS = DAY_MS


def plan_images(r: Reader, repository: Repository, some: Sequence[PackageName], rules: Rules, now_ms: int) -> Plan:
    """Decide about the tags and manifests of some images. Reads all of them: call it on a reader thread."""
    examined, victims = 0, list[Victim]()
    pins = pinned_names(r, repository.id, [each.key for each in some])
    for package in some:
        manifests, tags = manifest_ages(r, package.id), tag_ages(r, package.id)
        plan = _plan_image(r, repository, package, manifests, tags, rules, pins.get(package.key, set()), now_ms)
        examined += plan.examined
        victims += plan.victims
    return Plan(examined, tuple(victims))


def _plan_image(
    r: Reader,
    repository: Repository,
    package: PackageName,
    manifests: Mapping[str, ManifestAge],
    tags: Sequence[TagAge],
    rules: Rules,
    pins: Set[str],
    now_ms: int,
) -> Plan:
    every_tag, tags = tags, [each for each in tags if not _follows(each, manifests)]
    leased, held = list_leased(r, package.id, now_ms), held_by_trash(r, package.id).digests
    loose = [
        each
        for each in manifests.values()
        if each.is_top
        and each.subject not in manifests
        and not each.tagged
        and each.touched_ms < now_ms - GRACE_MS
        and each.digest not in leased
    ]
    examined = len(tags) + len(loose)
    if not rules.takes_package(package.name):
        return Plan(examined, ())
    since = rules.used_since_day
    used = {} if since is None else downloads_of(r, "manifest", [each.id for each in manifests.values()], since)
    if rules.cached:
        for fetched in manifests.values():  # fetching counts as use
            used[fetched.id] = max(used.get(fetched.id, 0), fetched.created_ms // DAY_MS)
    fixed = set(fixed_tags(repository, (each.name for each in tags)))
    units = [_tag_unit(each, manifests, used, fixed | leased.keys(), pins) for each in tags]
    units += [
        Unit(each.id, each.digest, each.created_ms, used_day=used.get(each.id), pinned=each.digest in pins)
        for each in loose
    ]
    digests = [each.digest for each in tags] + [each.digest for each in loose]
    order = sorted(range(len(units)), key=lambda index: (units[index].published_ms, units[index].text))
    selected = rules.select(package.name, [units[index] for index in order])
    chosen = [(order[each.index], each) for each in selected]
    chosen = [each for each in chosen if each[1].action != "untag" or each[0] < len(tags)]

    going = {index for index, each in chosen if each.action != "untag"}
    staying = {digest for index, digest in enumerate(digests) if index not in going}
    staying |= {each.digest for each in manifests.values() if not each.is_top}  # it goes with its index
    staying |= held
    doomed = {digests[index]: each for index, each in chosen if index in going and digests[index] not in staying}
    victims = []
    for index, each in chosen:
        if index < len(tags) and digests[index] not in doomed and not rules.cached:
            note = (
                "" if each.action == "untag" else " (its manifest stays: it has other tags, or is part of another one)"
            )
            victims.append(_victim(package, units[index].text, each, 0, note, action="untag"))
    if doomed:
        losses = find_loss(r, repository.storage_id, package.id, doomed, now_ms)
        victims += _manifests_that_go(package, losses, doomed, every_tag)
    return Plan(examined, tuple(victims))


def _follows(tag: TagAge, manifests: Mapping[str, ManifestAge]) -> bool:
    """Whether a tag is that of a signature or another referrer, which goes with what it is about."""
    target = manifests.get(tag.digest)
    return subject_of_tag(tag.name) is not None or (target is not None and target.subject in manifests)


def _tag_unit(
    tag: TagAge, manifests: Mapping[str, ManifestAge], used: Mapping[int, int], fixed: set[str], pins: Set[str]
) -> Unit:
    target = manifests.get(tag.digest)
    return Unit(
        id=0,
        text=tag.name,
        published_ms=tag.updated_ms,
        tags=(tag.name,),
        used_day=None if target is None else used.get(target.id),
        in_use=target is not None and not target.is_top,
        pinned=not pins.isdisjoint((tag.name, tag.digest)),
        fixed="it is immutable, or a push needs it" if tag.name in fixed or tag.digest in fixed else "",
    )


def _manifests_that_go(
    package: PackageName, losses: Sequence[Loss], doomed: Mapping[str, Selected], tags: Sequence[TagAge]
) -> list[Victim]:
    """The manifests in the order of their removal; what goes with another one has its action and says so."""
    named: dict[str, list[str]] = {}
    for tag in tags:
        named.setdefault(tag.digest, []).append(tag.name)
    victims = []
    for loss in losses:
        selected = doomed.get(loss.digest) or doomed[loss.cause]
        note = "" if loss.digest in doomed else f" (with {loss.cause})"
        names = ", ".join(named.get(loss.digest, ()))
        found = _victim(package, loss.digest, selected, loss.size, note)
        victims.append(evolve(found, name=names or loss.digest))
    return victims


def _victim(
    package: PackageName, key: str, selected: Selected, size: int, note: str, action: str | None = None
) -> Victim:
    return Victim(
        package=package.name,
        package_key=package.key,
        key=key,
        name=key,
        size=size,
        action=action or selected.action,
        rule=selected.rule,
        reason=f"{selected.reason}{note}",
    )


def remove_images(
    tx: Transaction,
    repository: Repository,
    image: str,
    victims: Sequence[Victim],
    disposals: Mapping[str, Disposal],
    actor: Actor,
    now_ms: int,
) -> None:
    """Remove what a plan, made in this transaction, has of an image; ``disposals`` are by action."""
    for each in victims:
        command = delete_manifest if ":" in each.key else delete_tag
        try:
            partial(command, disposal=disposals[each.action])(tx, repository, image, each.key, actor, now_ms)
        except NotFound:
            continue  # its last tag, or the image, went with another one
