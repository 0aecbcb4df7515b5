"""
Restores what is in the trash.

What an entry holds is published again as it was: files at their paths with their times, the state of a version, tags
that stand for nothing else now. The formats make their documents of it as they do for every publish. A restore is
refused whole if other content was published at one of its paths meanwhile, or if a manifest that an index lists is
gone. Some items at a time are written by one transaction, in which each leaves the trash, so that a crash leaves an
item either in the trash or restored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from pkgrepo.errors import Conflict, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, NewFile, Package, Repository, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.images.manifests import put_manifest, put_stored_manifest
from pkgrepo.repositories.images.push import Push
from pkgrepo.repositories.images.trash import MANIFEST, TAG, TrashedManifest, TrashedTag
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import (
    append_package_event,
    bump_package_serial,
    set_version_state,
)
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.repositories.publish.trash import TrashedVersion
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import manifests
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.storage.catalog.packages import packages, release_batches, tags, versions
from pkgrepo.storage.catalog.server import trash
from pkgrepo.storage.catalog.server.trash import TrashEntry, TrashItem

BATCH = 20  # items of one transaction: some ten milliseconds of the writer
RESTORED = "restored"  # the kind of the events

T = TypeVar("T")


async def restore_entry(restore: Callable[[bool], Awaitable[tuple[int, bool]]]) -> int:
    """
    Restore all items of an entry by ``restore``, which runs L{restore_some} with its ``check``. Returns their number.

    :raises NotFound: the trash has no such entry of the repository
    :raises Conflict: other content took the place of something, its bytes are damaged, or a part of it is gone
    """
    restored = 0
    while True:
        done, left = await restore(restored == 0)
        restored += done
        if not left:
            return restored


def restore_some(
    tx: Transaction, repository: Repository, uid: str, indexer: Indexer, actor: Admitted, check: bool, now_ms: int
) -> tuple[int, bool]:
    """
    The write command: restore the first items of an entry. Returns their number, and whether there are more.

    With ``check`` all items are compared first with what is there.

    :raises NotFound: the trash has no such entry; :raises Conflict: see ``restore_entry``
    """
    entry = trash.find_entry(tx, uid)
    if entry is None or entry.repository_id != repository.id:
        if check:
            raise NotFound("entry of the trash", uid)
        return 0, False
    if check:
        check_restorable(tx, repository, entry)
    items = trash.items_of(tx, entry.id, BATCH)
    for item in items:
        trash.take_out(tx, entry, item)
        if item.kind == MANIFEST:
            _restore_manifest(tx, repository, entry, _read(item, TrashedManifest), actor, now_ms)
        elif item.kind == TAG:
            _restore_tag(tx, repository, entry, _read(item, TrashedTag), actor, now_ms)
        else:
            _restore_version(tx, repository, _read(item, TrashedVersion), indexer, actor, now_ms)
    return len(items), entry.items > len(items)


def check_restorable(r: Reader, repository: Repository, entry: TrashEntry) -> None:
    """
    Check that an entry can be restored whole.

    :raises Conflict: other content was published at a path of it, which the message names, or a manifest that an index
        of it lists is not there any more
    """
    after = 0
    coming: set[str] = set()
    needed: dict[str, str] = {}  # the manifests that an index lists, each with one of these
    while items := trash.items_of(r, entry.id, BATCH * 5, after=after):
        after = items[-1].id
        for item in items:
            if item.kind == MANIFEST:
                kept = _read(item, TrashedManifest)
                coming.add(kept.manifest.digest)
                needed |= dict.fromkeys(kept.needed, kept.manifest.digest)
                continue
            if item.kind == TAG:
                continue
            found = {each.path: each.sha256 for each in _read(item, TrashedVersion).files}
            present = release_batches.find_files(r, repository.id, found)
            for path, file in present.items():
                if file.sha256 != found[path]:
                    raise Conflict(f"{path} was published again with other content: delete that first")
    package = packages.find_package(r, repository.id, entry.package_key)
    for digest in sorted(needed.keys() - coming):
        if package is None or not manifests.has_manifest(r, package.id, digest):
            raise Conflict(f"{digest}, which {needed[digest]} lists, was deleted: restore or push that first")


def _restore_version(
    tx: Transaction, repository: Repository, kept: TrashedVersion, indexer: Indexer, actor: Admitted, now_ms: int
) -> None:
    version = kept.version
    files = []
    for each in kept.files:
        blob = blobs.use_again(tx, repository.storage_id, each.sha256, each.path, now_ms)
        created_ms = round(each.created_at.timestamp() * 1000)
        files.append(NewFile(each.path, blob, each.media_type, each.attrs, created_ms))
    before = packages.find_package(tx, repository.id, kept.package.key)
    release = Release(
        package_key=kept.package.key,
        package_name=kept.package.name if before is None else before.name,
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=tuple(files),
        meta=version.meta,
        package_meta=kept.package.meta if before is None else None,
        reuse=True,
        published_ms=round(version.published_at.timestamp() * 1000),
        publisher=version.publisher,
        kind=RESTORED,
    )
    publish_release(tx, repository, release, actor, indexer, now_ms)
    package = packages.find_package(tx, repository.id, kept.package.key)
    assert package is not None
    if before is None:
        packages.set_times(tx, package.id, round(kept.package.created_at.timestamp() * 1000), now_ms)
    _restore_tags(tx, repository, package, kept, indexer, actor, now_ms)
    if version.state is not VersionState.LIVE:
        found = versions.find_version(tx, package.id, version.key)
        if found is not None and found.state is VersionState.LIVE:
            state = (version.state, version.reason)
            set_version_state(tx, repository, package.key, version.key, *state, actor, indexer, now_ms)


def _restore_tags(
    tx: Transaction,
    repository: Repository,
    package: Package,
    kept: TrashedVersion,
    indexer: Indexer,
    actor: Admitted,
    now_ms: int,
) -> None:
    """Set the tags that stand for nothing now, or for what the server itself has chosen instead."""
    actor.check(repository, package.key)
    found = versions.find_version(tx, package.id, kept.version.key)
    assert found is not None
    moved = []
    for name in kept.tags:
        present = tags.find_tag(tx, package.id, name)
        if present is None or (present.actor == SYSTEM.name and present.version_id != found.id):
            tags.set_tag(tx, package.id, name, version_id=found.id, actor=actor, now_ms=now_ms)
            moved.append(name)
    if moved:
        package = bump_package_serial(tx, repository, package, now_ms)
        indexer(PackageIndex(tx, package, now_ms), Change())
        append_package_event(tx, package, "tagged", {"tags": moved}, actor, now_ms, version=found)


def _restore_manifest(
    tx: Transaction, repository: Repository, entry: TrashEntry, kept: TrashedManifest, actor: Admitted, now_ms: int
) -> None:
    image, stored = entry.package_key, kept.manifest
    package = packages.find_package(tx, repository.id, image)
    free = tuple(each for each in kept.tags if package is None or tags.find_tag(tx, package.id, each) is None)
    put_stored_manifest(tx, repository, image, stored, actor, now_ms, tags=free)
    package = packages.find_package(tx, repository.id, image)
    assert package is not None
    manifests.set_created_at(tx, package.id, stored.digest, round(stored.created_at.timestamp() * 1000))
    for each in free:
        if each in kept.times:
            tags.set_time(tx, package.id, each, kept.times[each])


def _restore_tag(
    tx: Transaction, repository: Repository, entry: TrashEntry, kept: TrashedTag, actor: Admitted, now_ms: int
) -> None:
    package = packages.find_package(tx, repository.id, entry.package_key)
    if package is None or manifests.manifest_size(tx, package.id, kept.digest) is None:
        raise Conflict(f"the manifest {kept.digest} of tag {kept.name} was deleted: restore that first")
    there = tags.find_tag(tx, package.id, kept.name) is not None
    set_image_tag(tx, repository, package, kept.name, kept.digest, actor, now_ms, moves=False)
    if kept.updated_ms is not None and not there:
        tags.set_time(tx, package.id, kept.name, kept.updated_ms)


def set_image_tag(
    tx: Transaction,
    repository: Repository,
    package: Package,
    name: str,
    digest: str,
    actor: Admitted,
    now_ms: int,
    *,
    moves: bool,
) -> None:
    """
    Let a tag of an image point to a manifest that it has, as the push of that manifest under the tag does.

    :raises NotFound: the image has no such manifest
    :raises Conflict: the tag stands for another one, without ``moves``
    """
    found = tags.find_tag(tx, package.id, name)
    if found is not None and not moves and found.digest != digest:
        raise Conflict(f"tag {name} was pushed again meanwhile: delete that first")
    stored = existing(
        manifests.find_manifest(tx, repository.storage_id, repository.id, package.key, digest), "manifest", digest
    )
    record = ManifestRecord(digest=stored.digest, sha256=stored.sha256, media_type=stored.media_type, size=stored.size)
    blob = blobs.use_again(tx, repository.storage_id, stored.sha256, digest, now_ms)
    put_manifest(
        tx, repository, package.key, Push(manifest=record, blob=blob, required=(), tags=(name,)), actor, now_ms
    )


def _read(item: TrashItem, kind: type[T]) -> T:
    return msgspec.json.decode(item.data, type=kind)
