"""Write commands that restore rows of the catalog from sidecars of the readable layout."""

from __future__ import annotations

from attrs import evolve

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.publish.events import bump_package_serial
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import set_package_meta
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import packages, retired_names, tags, versions
from pkgrepo.storage.catalog.packages.tombstones import restore_tombstone
from pkgrepo.storage.catalog.server import repositories

from .sidecars import BurnedSidecar, PackageSidecar, RepositorySidecar, VersionSidecar
from .trees.sidecars import KeptSidecar


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
        packages.touch_package(tx, package.id, serial=package.serial, now_ms=now_ms, name=sidecar.name)
        by_text = {each.text: each.id for each in versions.list_versions(tx, package.id)} if sidecar.tags else {}
        for tag, text in sidecar.tags.items():
            if text in by_text and tagged.get(tag) != text:
                tags.set_tag(tx, package.id, tag, version_id=by_text[text], actor=Actor(), now_ms=now_ms)
        set_package_meta(tx, repository, sidecar.key, sidecar.meta, Actor(), indexer, now_ms)
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
        if fragments.find_fragment(tx, package.id, each.kind, each.sort, each.key) is None
    ]
    for each in missing:
        fragments.put_fragment(tx, package.id, each.kind, each.sort, each.key, each.body)
    if added:
        repositories.add_usage(tx, repository.id, 0, 1)
        repositories.bump_names_serial(tx, repository.id)
        retired_names.release(tx, repository.id, package.key)
    if added or missing:
        bump_package_serial(tx, repository, package, now_ms)


def restore_burned(tx: Transaction, repository: Repository, sidecar: BurnedSidecar) -> None:
    """Restore the tombstones of a package. Its files come first, because a burned name may be in use again."""
    for tombstone in sidecar.tombstones():
        restore_tombstone(tx, repository.id, tombstone)


def restore_repository(
    tx: Transaction, storage_id: int, sidecar: RepositorySidecar, parent_id: int | None, now_ms: int
) -> None:
    """Add a repository with the public id and the time of creation that it had."""
    repositories.add_repository(
        tx,
        storage_id=storage_id,
        name=sidecar.name,
        format=sidecar.format,
        type=sidecar.type,
        visibility=sidecar.visibility,
        description=sidecar.description,
        active=sidecar.active,
        config=sidecar.config,
        settings=sidecar.settings,
        now_ms=now_ms,
        created_ms=round(sidecar.created_at.timestamp() * 1000),
        uid=sidecar.uid,
        parent_id=parent_id,
    )
