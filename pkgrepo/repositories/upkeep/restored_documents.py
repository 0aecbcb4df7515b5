"""Adds documents of upstreams to a catalog that was rebuilt, so that proxies can serve what they keep."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IBlobStore, IRestorableFormat, Reader
from pkgrepo.model import Package, Repository, RepositoryType, Storage
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.upstreams import upstream_documents
from pkgrepo.storage.catalog.upstreams.upstream_documents import UpstreamDocument

TOGETHER = 50  # packages whose documents are made durable and stored together


async def restore_documents(context: MaintenanceContext, storage: Storage, store: IBlobStore) -> None:
    """
    Make the documents of all packages of the proxies in a storage of what they keep, unless the catalog has them.

    :raises StorageFull, StorageFailed: they cannot be stored
    """
    for repository in context.registry.all():
        format_ = context.formats.get(repository.format)
        is_proxy = repository.storage_id == storage.id and repository.type is RepositoryType.PROXY
        if not is_proxy or not IRestorableFormat.providedBy(format_):
            continue
        after = ""
        while page := await context.catalog.scan(packages.list_packages, repository.id, after=after, limit=TOGETHER):
            await _restore(context, store, repository, format_, page)
            after = page[-1].key


async def _restore(
    context: MaintenanceContext,
    store: IBlobStore,
    repository: Repository,
    format_: IRestorableFormat,
    some: Sequence[Package],
) -> None:
    staged = Staged(store)
    try:
        made = [await context.catalog.scan(_make, format_, each) for each in some]
        items = [(document, await staged.store(parts)) for document, parts in filter(None, made)]
        if items:
            claim = staged.claim([blob.locator for _, blob in items])
            await claim.commit()
            stored = await context.catalog.write(
                upstream_documents.put_documents, repository, items, context.clock.now_ms()
            )
            await claim.delete(stored.surplus)
    finally:
        await staged.clear()


def _make(reader: Reader, format_: IRestorableFormat, package: Package) -> tuple[UpstreamDocument, bytes] | None:
    try:
        found: tuple[UpstreamDocument, bytes] | None = format_.restore_document(reader, package)
    except Invalid:  # it would be too large
        return None
    if found is None or upstream_documents.find_document(reader, package.repository_id, found[0].key) is not None:
        return None
    return found
