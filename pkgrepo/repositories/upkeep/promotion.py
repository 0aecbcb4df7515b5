"""
Copies and moves of versions between the hosted repositories of a storage, by reference: no byte is copied.

What the catalog knows of a version is published in the target as any publish does it, in one transaction with the
removal from the source, if it moves. The formats make their documents of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Actor, File, NewFile, Package, Repository, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.model.packages import PUBLISHED_MS
from pkgrepo.repositories.images.manifests import delete_manifest, delete_tag, put_stored_manifest
from pkgrepo.repositories.images.push import Quarantine
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import (
    append_package_event,
    bump_package_serial,
    remove_files,
    set_version_state,
)
from pkgrepo.repositories.publish.releases import Release, publish_release, publish_releases
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import contents, signatures, summaries
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.events import last_data
from pkgrepo.storage.catalog.server.trash import Disposal

PROMOTED: Final = "package.promoted"  # the kind of the event
ATTRIBUTE: Final = "promoted"  # of the files of a version: where it came from
MOST_MANIFESTS: Final = 1000  # of an image with its platforms, signatures and attestations
MOST_REFERRERS: Final = 200  # of one manifest


@frozen(kw_only=True)
class Promotion:
    """
    A version to copy from ``source``, or to ``move``.

    ``reuse`` lets it have the paths of deleted files. A moved version leaves paths that may not be used again with
    ``burn``, and is kept in the trash under the id ``trash``. From a ``stage`` (its id) it is published like any other:
    the event says so, tags that the server gave it there do not come with it, and its metadata become what ``approved``
    returns. ``asked`` are the SHA-256 of the files, or the digests of the manifests, about which the rules of the
    source were asked, that serve all of them; None if the rules of the source are those of the target.
    """

    source: Repository
    move: bool
    reuse: bool
    burn: bool
    trash: str = Factory(lambda: str(uuid.uuid4()))
    stage: str = ""
    asked: Collection[str] | None = None
    approved: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda meta: meta

    @property
    def kind(self) -> str:
        """The kind of the event."""
        return "published" if self.stage else PROMOTED

    def check(self, content: Iterable[str]) -> None:
        """:raises Conflict: something was added to it since the rules were asked"""
        if self.asked is not None and not {*content} <= {*self.asked}:
            raise Conflict("something was added to it in the meantime: try again")

    def origin(self, actor: Actor, now_ms: int) -> dict[str, Any]:
        """Where the version came from, by whom and when, for its files and for the event."""
        origin = {"from": self.source.path, "by": actor.name, "at_ms": now_ms}
        return {**origin, "stage": self.stage} if self.stage else origin


@frozen
class Promoted:
    """What is new in the target, and whether that or its tags ``changed``; ``removed`` are paths of the source."""

    changed: bool
    published: Sequence[str]
    removed: Sequence[str]


def promote_version(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    package_key: str,
    version_key: str,
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> Promoted:
    """
    The write command on the target for versions that consist of files.

    :raises NotFound: the source has no such version
    :raises Conflict: it is yanked there or in the target, where no promotion takes that back; or its bytes are damaged
    :raises FileExists, FileBurned: other content has the path of one of its files in the target, or had it
    """
    copy = _copy_of(tx, target, promotion, package_key, version_key, actor, now_ms)
    published = publish_release(tx, target, copy.release, actor, indexer, now_ms)
    moved = _adopt(tx, target, package_key, copy.version, copy.tags, actor, indexer, now_ms)
    removed: Sequence[str] = ()
    if promotion.move:
        disposal = Disposal(entry=promotion.trash)
        removed = remove_files(
            tx,
            promotion.source,
            package_key,
            version_key,
            None,
            actor,
            indexer,
            promotion.burn,
            now_ms,
            disposal=disposal,
        )
    new = [each.path for each in published.files] if published.changed else []
    return Promoted(published.changed or moved, new, removed)


def promote_versions(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    keys: Sequence[tuple[str, str]],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> None:
    """
    Copy many versions, by the keys of package and version, as L{promote_version} does, with fewer statements for each.

    :raises NotFound, Conflict, FileExists, FileBurned: see there; then none may be published
    """
    copies = [_copy_of(tx, target, promotion, *each, actor, now_ms) for each in keys]
    if copies:
        publish_releases(tx, target, [each.release for each in copies], actor, indexer, now_ms)
    for each in copies:
        _adopt(tx, target, each.release.package_key, each.version, each.tags, actor, indexer, now_ms)


@frozen
class _Copy:
    """A version of the source, its tags, and the release that it becomes in the target."""

    version: Version
    tags: Sequence[str]
    release: Release


def _copy_of(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    package_key: str,
    version_key: str,
    actor: Actor,
    now_ms: int,
) -> _Copy:
    source = promotion.source
    package = existing(packages.find_package(tx, source.id, package_key), "package", package_key)
    version = existing(versions.find_version(tx, package.id, version_key), "version", f"{package_key} {version_key}")
    if version.state is VersionState.YANKED:
        raise Conflict(f"{package.name} {version.text} is yanked in {source.path}: take that back first")
    held = files.files_of_version(tx, version.id)
    promotion.check(each.sha256 for each in held)
    named = tags.names_by_version(tx, package.id).get(version.id, ())
    pointing = (tags.find_tag(tx, package.id, each) for each in named)
    # Those that somebody set: "latest" falls back by itself to an older version when the newest one is moved away.
    names = [each.name for each in pointing if each is not None and each.actor != SYSTEM.name]
    before = packages.find_package(tx, target.id, package_key)
    there = None if before is None else versions.find_version(tx, before.id, version_key)
    if there is not None and there.state is VersionState.YANKED:
        raise Conflict(f"{package.name} {version.text} is yanked in {target.path}: take that back there first")
    origin = promotion.origin(actor, now_ms)
    release = Release(
        package_key=package.key,
        package_name=package.name if before is None else before.name,
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=tuple(_new_file(tx, target, each, origin, now_ms) for each in held),
        meta=promotion.approved(version.meta),
        package_meta=package.meta if before is None else None,
        reuse=promotion.reuse,
        published_ms=None if promotion.stage else min((each.published_ms for each in held), default=None),
        publisher=version.publisher,
        kind=promotion.kind,
        note={**origin, "moved": promotion.move},
    )
    return _Copy(version, names, release)


def promote_image(
    tx: Transaction,
    target: Repository,
    promotion: Promotion,
    image: str,
    tag: str | None,
    digest: str,
    immutable: Collection[str],
    quarantine: Quarantine | None,
    actor: Admitted,
    now_ms: int,
) -> Promoted:
    """
    The write command on the target for an image: a manifest with all it refers to, and what is about these.

    ``tag`` is to point to it in the target; ``immutable`` are tags that do not move there. In ``quarantine`` it waits
    for signatures there, whatever the source knows of them.

    :raises NotFound: the source has no such manifest; :raises Conflict: its bytes are damaged, or it is too large
    :raises TagExists: the tag points to another manifest in the target, and does not move
    """
    source = promotion.source
    package = existing(packages.find_package(tx, source.id, image), "image", image)
    names = _closure(tx, package.id, digest, tag)
    found = {each.digest: each for each in contents.find_manifests(tx, source.storage_id, package.id, names)}
    promotion.check(found)
    existing(found.get(digest), "manifest", digest)
    before = packages.find_package(tx, target.id, image)
    had = (
        set()
        if before is None
        else {each.digest for each in contents.find_manifests(tx, target.storage_id, before.id, names)}
    )
    pointed = None if before is None or tag is None else tags.find_tag(tx, before.id, tag)
    new = [each for each in found if each not in had]
    changed = bool(new) or (tag is not None and (pointed is None or pointed.digest != digest))
    for each, own_tags in names.items():
        if each in found:
            rule = None if found[each].evidence else quarantine
            fixed = [name for name in own_tags if name in immutable]
            put_stored_manifest(
                tx, target, image, found[each], actor, now_ms, tags=own_tags, immutable=fixed, quarantine=rule
            )
    there = existing(packages.find_package(tx, target.id, image), "image", image)
    if quarantine is not None:
        signatures.mark_unverified(tx, there.id)
    if changed:
        data = {"digest": digest, "tags": [] if tag is None else [tag], **promotion.origin(actor, now_ms)}
        append_package_event(tx, there, PROMOTED, {**data, "moved": promotion.move}, actor, now_ms)
    removed: list[str] = []
    if promotion.move:
        removed = _remove_image(tx, promotion, package, tag, names, actor, now_ms)
    return Promoted(changed, new, removed)


def manifests_of_image(r: Reader, source: Repository, package_id: int, digest: str, tag: str | None) -> list[str]:
    """The digests of the manifests that L{promote_image} copies. :raises Conflict: they are too many"""
    names = _closure(r, package_id, digest, tag)
    return [each.digest for each in contents.find_manifests(r, source.storage_id, package_id, names)]


def _closure(r: Reader, package_id: int, digest: str, tag: str | None) -> dict[str, tuple[str, ...]]:
    """
    The digests of a manifest, of those that it lists, and of what is about each of them, with the tags that they get.

    The manifest is the first. :raises Conflict: they are too many
    """
    found: dict[str, tuple[str, ...]] = {digest: () if tag is None else (tag,)}
    waiting = [digest]
    while waiting:
        each = waiting.pop()
        about = summaries.list_referrers(r, package_id, each, MOST_REFERRERS)
        for other, name in [
            *((child, "") for child in contents.children_of(r, package_id, each)),
            *((referrer.digest, referrer.tag) for referrer in about),
        ]:
            if other not in found:
                waiting.append(other)
            found[other] = tuple(dict.fromkeys((*found.get(other, ()), *([name] if name else ()))))
        if len(found) > MOST_MANIFESTS:
            raise Conflict(f"the image has more than {MOST_MANIFESTS} manifests")
    return found


def _remove_image(
    tx: Transaction,
    promotion: Promotion,
    package: Package,
    tag: str | None,
    names: Mapping[str, Sequence[str]],
    actor: Actor,
    now_ms: int,
) -> list[str]:
    """
    Remove from the source the manifests that no other tag or manifest there needs, the first one before the others.

    What is about a manifest that stays, stays, too. If the first one stays, only the tag is removed.
    """
    source, disposal, gone = promotion.source, Disposal(entry=promotion.trash), list[str]()
    kept: set[str] = set()
    for each, own_tags in names.items():
        stored = next(iter(contents.find_manifests(tx, source.storage_id, package.id, [each])), None)
        if stored is None:
            continue  # an index may list what the image does not have
        about = {stored.subject, *map(summaries.subject_of_tag, own_tags)} & kept
        others = {*contents.tags_of(tx, package.id, each, MOST_REFERRERS)} - {*own_tags}
        if about or others or contents.manifests_referring_to(tx, package.id, [each], 1):
            kept.add(each)
            if not gone:
                break
            continue
        delete_manifest(tx, source, package.key, each, actor, now_ms, disposal=disposal)
        gone += [*own_tags, each]
    if not gone and tag is not None:
        delete_tag(tx, source, package.key, tag, actor, now_ms, disposal=disposal)
        gone.append(tag)
    return gone


def _adopt(
    tx: Transaction,
    target: Repository,
    package_key: str,
    version: Version,
    names: Sequence[str],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> bool:
    """Give the version the state and the tags that it has in the source. Returns whether it had others."""
    actor.check(target, package_key)
    package = existing(packages.find_package(tx, target.id, package_key), "package", package_key)
    found = existing(versions.find_version(tx, package.id, version.key), "version", version.text)
    changed = version.state is not found.state
    if changed:
        set_version_state(tx, target, package.key, version.key, version.state, version.reason, actor, indexer, now_ms)
    moved = []
    for name in names:
        present = tags.find_tag(tx, package.id, name)
        if present is None or present.version_id != found.id:
            tags.set_tag(tx, package.id, name, version_id=found.id, actor=actor, now_ms=now_ms)
            moved.append(name)
    if moved:
        package = bump_package_serial(tx, target, package, now_ms)
        indexer(PackageIndex(tx, package, now_ms), Change())
        append_package_event(tx, package, "tagged", {"tags": moved}, actor, now_ms, version=found)
    return changed or bool(moved)


def _new_file(tx: Transaction, target: Repository, file: File, origin: dict[str, Any], now_ms: int) -> NewFile:
    blob = blobs.use_again(tx, target.storage_id, file.sha256, file.path, now_ms)
    attrs = {**file.attrs, ATTRIBUTE: origin}
    if "stage" not in origin:  # what is approved is published by that
        attrs[PUBLISHED_MS] = file.published_ms
    return NewFile(file.path, blob, file.media_type, attrs)


def find_image_origin(r: Reader, package_id: int, digest: str) -> dict[str, Any] | None:
    """Where a manifest of an image came from last, as L{Promotion.origin} says it; None if it was pushed here."""
    return last_data(r, package_id, PROMOTED, digest)
