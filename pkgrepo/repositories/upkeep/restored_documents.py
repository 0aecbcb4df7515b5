"""Adds documents of upstreams to a catalog that was rebuilt, so that proxies can serve what they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IBlobStore, IRestorableFormat, IRestorableListsFormat, Reader
from pkgrepo.model import Repository, RepositoryType, Storage
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.upstreams import upstream_documents
from pkgrepo.storage.catalog.upstreams.upstream_documents import UpstreamDocument

TOGETHER = 50  # packages whose documents are made durable and stored together

T = TypeVar("T")
Made = tuple[UpstreamDocument, bytes]  # an answer, and its parts


async def restore_documents(context: MaintenanceContext, storage: Storage, store: IBlobStore) -> None:
    """
    Make the documents of the proxies in a storage of what they keep, unless the catalog has them.

    :raises StorageFull, StorageFailed: they cannot be stored
    """
    for repository in context.registry.all():
        format_ = context.formats.get(repository.format)
        if repository.storage_id != storage.id or repository.type is not RepositoryType.PROXY:
            continue
        if IRestorableFormat.providedBy(format_):
            await _restore_packages(context, store, repository, format_)
        if IRestorableListsFormat.providedBy(format_):
            found = await context.catalog.scan(_make, format_.restore_lists, repository, repository.id)
            await _store(context, store, repository, found)


async def _restore_packages(
    context: MaintenanceContext, store: IBlobStore, repository: Repository, format_: IRestorableFormat
) -> None:
    after = ""
    while page := await context.catalog.scan(packages.list_packages, repository.id, after=after, limit=TOGETHER):
        made: list[Made] = []
        for each in page:
            made += await context.catalog.scan(_make, format_.restore_documents, each, repository.id)
        await _store(context, store, repository, made)
        after = page[-1].key


async def _store(context: MaintenanceContext, store: IBlobStore, repository: Repository, made: Sequence[Made]) -> None:
    staged = Staged(store)
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
