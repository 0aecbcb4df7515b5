"""Restore packages, repositories and images in the catalog from their sidecars in the readable layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from attrs import evolve

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import Invalid
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Actor, BlobInfo, Repository, RepositoryType, Visibility
from pkgrepo.repositories.images.blobs import link_blob
from pkgrepo.repositories.images.manifests import put_manifest
from pkgrepo.repositories.images.push import Push, Quarantine
from pkgrepo.repositories.images.quarantine import window_ms
from pkgrepo.repositories.layout.images.directory import ManifestSidecar, TagEntry
from pkgrepo.repositories.layout.sidecars import BurnedSidecar, PackageSidecar, RepositorySidecar, VersionSidecar
from pkgrepo.repositories.layout.trees import KeptSidecar
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import bump_package_serial, set_package_meta
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.images import manifests, trust
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.packages.files import restore_tombstone
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage

BATCH = 50  # blobs, manifests or tags per transaction


def restore_published_at(
    tx: Transaction, repository: Repository, sidecar: VersionSidecar, indexer: Indexer, now_ms: int
) -> None:
    """Set the time of publication of a version, which differs from that of its files when these were replaced."""
    package = packages.find_package(tx, repository.id, sidecar.package)
    version = None if package is None else versions.find_version(tx, package.id, sidecar.key)
    if package is None or version is None or version.published_at == sidecar.published_at:
        return
    versions.set_published_at(tx, version.id, round(sidecar.published_at.timestamp() * 1000))
    indexer(PackageIndex(tx, package, now_ms), Change(version=evolve(version, published_at=sidecar.published_at)))


def restore_package(
    tx: Transaction, repository: Repository, sidecar: PackageSidecar, indexer: Indexer, now_ms: int
) -> None:
    """Set the name, metadata, tags and times of a package, whose versions were restored before."""
    package = packages.find_package(tx, repository.id, sidecar.key)
    if package is None:
        return
    tagged = tags.tagged_versions(tx, package.id)
    if (package.name, package.meta, tagged) != (sidecar.name, sidecar.meta, sidecar.tags):
        restored = admit_server(Road.REINDEX, repository, Actor())
        packages.touch_package(tx, package.id, serial=package.serial, now_ms=now_ms, name=sidecar.name)
        by_text = {each.text: each.id for each in versions.list_versions(tx, package.id)} if sidecar.tags else {}
        for tag, text in sidecar.tags.items():
            if text in by_text and tagged.get(tag) != text:
                tags.set_tag(tx, package.id, tag, version_id=by_text[text], actor=restored, now_ms=now_ms)
        set_package_meta(tx, repository, sidecar.key, sidecar.meta, restored, indexer, now_ms)
    if sidecar.created_at is not None and sidecar.updated_at is not None:
        created_ms, updated_ms = (round(at.timestamp() * 1000) for at in (sidecar.created_at, sidecar.updated_at))
        packages.set_times(tx, package.id, created_ms, updated_ms)


def restore_kept(tx: Transaction, repository: Repository, sidecar: KeptSidecar, now_ms: int) -> None:
    """Restore fragments of a package, which need not have any version, unless it has them or other ones."""
    package, added = packages.ensure_package(
        tx, repository.id, key=sidecar.package, name=sidecar.name, serial=0, now_ms=now_ms
    )
    missing = [
        each
        for each in sidecar.fragments
        if index_documents.find_fragment(tx, package.id, each.kind, each.sort, each.key) is None
    ]
    for each in missing:
        index_documents.put_fragment(tx, package.id, each.kind, each.sort, each.key, each.body)
    if added:
        repositories.add_usage(tx, repository.id, Usage(packages=1))
        repositories.bump_names_serial(tx, repository.id)
        packages.release_name(tx, repository.id, package.key)
    if added or missing:
        bump_package_serial(tx, repository, package, now_ms)


def restore_burned(tx: Transaction, repository: Repository, sidecar: BurnedSidecar) -> None:
    """
    Restore the tombstones of a package, and that its name is retired.

    Its files and manifests come first, because a burned or retired name may be in use again.
    """
    for tombstone in sidecar.tombstones():
        restore_tombstone(tx, repository.id, tombstone)
    if sidecar.retired_at is not None and repository.type is RepositoryType.HOSTED:
        retired_ms = round(sidecar.retired_at.timestamp() * 1000)
        packages.restore_retired(tx, repository.id, sidecar.package, retired_ms)


def restore_repository(
    tx: Transaction, storage_id: int, sidecar: RepositorySidecar, parent_id: int | None, now_ms: int
) -> None:
    """Add a repository with the public id and the time of creation that it had."""
    repositories.add_repository(
        tx,
        storage_id=storage_id,
        name=sidecar.name,
        format=sidecar.format,
        type=RepositoryType(sidecar.type),
        visibility=Visibility(sidecar.visibility),
        description=sidecar.description,
        active=sidecar.active,
        config=sidecar.config,
        settings=sidecar.settings,
        now_ms=now_ms,
        created_ms=round(sidecar.created_at.timestamp() * 1000),
        uid=sidecar.uid,
        parent_id=parent_id,
    )


async def restore_manifests(
    catalog: ICatalog,
    repository: Repository,
    sidecars: Sequence[ManifestSidecar],
    blobs: Mapping[str, BlobInfo],
    now_ms: int,
) -> int:
    """
    Add those manifests of one image that the catalog does not have, with their times. Returns their number.

    The image is as old as the first of them.

    ``blobs`` are the durable blobs and manifests by digest. Blobs that are not among them are left out, and so are
    manifests whose own bytes are not.
    """
    if not sidecars:
        return 0
    image = sidecars[0].image
    names = sorted({blob.digest for each in sidecars for blob in each.blobs if blob.digest in blobs})
    for some in batches(names, BATCH):
        batch = {name: blobs[name] for name in some}
        await catalog.write(_link_blobs, repository, image, batch, now_ms)
    whole = [each for each in sidecars if each.digest in blobs]
    fresh = 0
    for present in batches(whole, BATCH):
        fresh += await catalog.write(_put_manifests, repository, image, present, blobs, now_ms)
    return fresh


async def restore_tags(
    catalog: ICatalog, repository: Repository, image: str, entries: Sequence[TagEntry], now_ms: int, lost: list[str]
) -> int:
    """
    Add those tags that an image does not have. Returns their number.

    The names of tags whose manifest does not exist are appended to ``lost``.
    """
    fresh = 0
    for some in batches(entries, BATCH):
        found, missed = await catalog.write(_put_tags, repository, image, some, now_ms)
        fresh += found
        lost += missed
    return fresh


def _link_blobs(
    tx: Transaction, repository: Repository, image: str, batch: Mapping[str, BlobInfo], now_ms: int
) -> None:
    restored = admit_server(Road.REINDEX, repository)
    for digest, info in batch.items():
        link_blob(tx, repository, image, info, digest, None, None, restored, now_ms)


def _put_manifests(
    tx: Transaction,
    repository: Repository,
    image: str,
    sidecars: Sequence[ManifestSidecar],
    blobs: Mapping[str, BlobInfo],
    now_ms: int,
) -> int:
    fresh, admitted = 0, admit_server(Road.REINDEX, repository, Actor())
    for each in sidecars:
        found = packages.find_package(tx, repository.id, image)
        if found is not None and manifests.manifest_size(tx, found.id, each.digest) is not None:
            continue
        push = Push(
            manifest=_new(each),
            blob=blobs[each.digest],
            required=(),
            quarantine=_wait(repository, each.waiting, now_ms),
        )
        put_manifest(tx, repository, image, push, admitted, round(each.created_at.timestamp() * 1000))
        fresh += 1
    restored = packages.find_package(tx, repository.id, image)
    first = min((each.created_at for each in sidecars), default=None)
    if fresh and restored is not None and first is not None and first < restored.created_at:
        created_ms, updated_ms = (round(at.timestamp() * 1000) for at in (first, restored.updated_at))
        packages.set_times(tx, restored.id, created_ms, updated_ms)
    return fresh


def _put_tags(
    tx: Transaction, repository: Repository, image: str, entries: Sequence[TagEntry], now_ms: int
) -> tuple[int, list[str]]:
    fresh = 0
    lost = []
    for each in entries:
        found = packages.find_package(tx, repository.id, image)
        if found is None:
            lost.append(each.name)
            continue
        if tags.find_tag(tx, found.id, each.name) is not None:
            continue
        shown = each.digest is not None and _put_tag(tx, repository, image, each, each.digest, None)
        if each.waiting is not None and _put_tag(
            tx, repository, image, each, each.waiting, _wait(repository, True, now_ms)
        ):
            trust.quarantine_tag(
                tx, found.id, each.name, each.digest if shown else None, now_ms + window_ms(repository)
            )
            shown = True
        fresh += shown
        if not shown:
            lost.append(each.name)
    return fresh, lost


def _put_tag(
    tx: Transaction, repository: Repository, image: str, entry: TagEntry, digest: str, quarantine: Quarantine | None
) -> bool:
    """Set a tag to a manifest of its image. Returns whether the manifest exists."""
    found = manifests.find_manifest(tx, repository.storage_id, repository.id, image, digest)
    if found is None or not found.locator:
        return False
    blob = BlobInfo(sha256=found.sha256, size=found.size, locator=found.locator, digests={"sha256": found.sha256})
    known = ManifestRecord(digest=found.digest, sha256=found.sha256, media_type=found.media_type, size=found.size)
    push = Push(manifest=known, blob=blob, required=(), tags=(entry.name,), quarantine=quarantine)
    actor, updated_ms = (
        admit_server(Road.REINDEX, repository, Actor(name=entry.actor)),
        round(entry.updated_at.timestamp() * 1000),
    )
    put_manifest(tx, repository, image, push, actor, updated_ms)
    return True


def _wait(repository: Repository, waiting: bool, now_ms: int) -> Quarantine | None:
    """A manifest that waits for its signature gets a whole quarantine window again."""
    return Quarantine((), now_ms + window_ms(repository)) if waiting else None


def _new(sidecar: ManifestSidecar) -> ManifestRecord:
    if sidecar.digest.partition(":")[0] == "sha256" and sidecar.digest != f"sha256:{sidecar.sha256}":
        raise Invalid(f"manifest {sidecar.digest} cannot have the content {sidecar.sha256}")
    return msgspec.convert(sidecar, ManifestRecord, from_attributes=True)
