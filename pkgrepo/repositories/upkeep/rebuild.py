"""
Rebuilds documents: fragments of packages from the stored files, in case a fault has let them differ, and documents of
upstreams after the catalog was lost, so that proxies can serve what they keep.

Each package is one transaction, which is undone if no fragment differs. Fragments that cannot be made from files stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.interfaces import (
    IBlobStore,
    ICatalog,
    Reader,
    Transaction,
)
from pkgrepo.model import Actor, Package, Repository, RepositoryType, Storage
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.format import Made, Tree
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog import index_documents, upstream_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

KIND = "rebuild"  # of the job
PAGE = 100  # packages

TOGETHER = 50  # packages whose documents are made durable and stored together
T = TypeVar("T")


class _Unchanged(Exception):  # noqa: N818 - it undoes the transaction
    """Nothing differs."""


async def rebuild_documents(
    catalog: ICatalog,
    content: ContentWriter,
    repository: Repository,
    tree: Tree,
    indexer: Indexer,
    package_key: str | None,
    actor: Actor,
    progress: Progress,
) -> Mapping[str, Any]:
    """
    Rebuild the fragments of all packages of a repository, or of one. Returns the result of the job.

    :raises NotFound: there is no such package
    """
    checked = changed = 0
    after = ""
    keys = [] if package_key is None else [package_key]
    if package_key is not None and await catalog.look(packages.package_serial, repository.id, package_key) is None:
        raise NotFound("package", package_key)
    progress.begin(f"packages of {repository.path}", len(keys) or repository.package_count)
    while keys or package_key is None:
        if package_key is None:
            page = await catalog.scan(packages.list_packages, repository.id, after=after, limit=PAGE)
            keys = [each.key for each in page]
            if not keys:
                break
            after = keys[-1]
        for key in keys:
            checked += 1
            progress.step()
            try:
                await content.change(rebuild_package, repository, key, indexer, tree.kept_kinds, actor)
            except (_Unchanged, NotFound):
                continue
            changed += 1
        if package_key is not None:
            break
    progress.end()
    return {"packages": checked, "changed": changed, "errors": []}


def rebuild_package(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    indexer: Indexer,
    kept_kinds: Collection[str],
    actor: Actor,
    now_ms: int,
) -> None:
    """The write command for one package. :raises NotFound: it is gone; any other error if nothing differs"""
    package = packages.find_package(tx, repository.id, package_key)
    if package is None:
        raise NotFound("package", package_key)
    before = index_documents.all_fragments(tx, package.id)
    for kind, (sort, key, _) in before:
        if kind not in kept_kinds:
            index_documents.remove_fragment(tx, package.id, kind, sort, key)
    index = PackageIndex(tx, package, now_ms)
    for version in versions.list_versions(tx, package.id):
        indexer(index, Change(version=version, added=tuple(files.files_of_version(tx, version.id))))
    if index_documents.all_fragments(tx, package.id) == before:
        raise _Unchanged
    package = bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "rebuilt", {}, actor, now_ms)


async def restore_documents(context: MaintenanceContext, storage: Storage, store: IBlobStore) -> None:
    """
    Make the documents of the proxies in a storage of what they keep, unless the catalog has them.

    :raises StorageFull, StorageFailed: they cannot be stored
    """
    for repository in context.registry.all():
        format_ = context.formats.get(repository.format)
        if format_ is None or repository.storage_id != storage.id or repository.type is not RepositoryType.PROXY:
            continue
        if format_.restore_documents is not None:
            await _restore_packages(context, store, repository, format_.restore_documents)
        if format_.restore_lists is not None:
            found = await context.catalog.scan(_make, format_.restore_lists, repository, repository.id)
            await _store(context, store, repository, found)


async def _restore_packages(
    context: MaintenanceContext,
    store: IBlobStore,
    repository: Repository,
    restore: Callable[[Reader, Package], Sequence[Made]],
) -> None:
    after = ""
    while page := await context.catalog.scan(packages.list_packages, repository.id, after=after, limit=TOGETHER):
        made: list[Made] = []
        for each in page:
            made += await context.catalog.scan(_make, restore, each, repository.id)
        await _store(context, store, repository, made)
        after = page[-1].key


async def _store(context: MaintenanceContext, store: IBlobStore, repository: Repository, made: Sequence[Made]) -> None:
    staged = Staged(context.registry.storage(repository.storage_id).name, store)
    try:
        items = [(document, await staged.store(parts)) for document, parts in made]
        if items:
            claim = staged.claim([blob.locator for _, blob in items])
            await claim.commit()
            stored = await context.catalog.write(
                upstream_documents.put_documents, repository, items, context.clock.now_ms()
            )
            await claim.delete(stored.surplus)
    finally:
        await staged.clear()


def _make(reader: Reader, restore: Callable[[Reader, T], Sequence[Made]], of: T, repository_id: int) -> list[Made]:
    try:
        found = restore(reader, of)
    except Invalid:  # one would be too large
        return []
    return [each for each in found if upstream_documents.find_document(reader, repository_id, each[0].key) is None]
