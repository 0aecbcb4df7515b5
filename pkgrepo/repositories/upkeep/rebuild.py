"""
Rebuilds the fragments of packages from the stored files, in case a fault has let them differ.

Each package is one transaction, which is undone if nothing differs. Fragments that cannot be made from files are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import ICatalog, IPathFormat, Transaction
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.publish.events import append_package_event, bump_package_serial
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.storage.catalog.documents import fragments
from pkgrepo.storage.catalog.packages import files, packages, versions

from .progress import Progress

KIND = "rebuild"  # of the job
PAGE = 100  # packages


class _Unchanged(Exception):  # noqa: N818 - it undoes the transaction
    """Nothing differs."""


async def rebuild_documents(
    catalog: ICatalog,
    publisher: Publisher,
    repository: Repository,
    format_: IPathFormat,
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
                await publisher.change(rebuild_package, repository, key, indexer, format_.kept_kinds, actor)
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
    before = fragments.all_fragments(tx, package.id)
    for kind, (sort, key, _) in before:
        if kind not in kept_kinds:
            fragments.remove_fragment(tx, package.id, kind, sort, key)
    index = PackageIndex(tx, package, now_ms)
    for version in versions.list_versions(tx, package.id):
        indexer(index, Change(version=version, added=tuple(files.files_of_version(tx, version.id))))
    if fragments.all_fragments(tx, package.id) == before:
        raise _Unchanged
    package = bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "rebuilt", {}, actor, now_ms)
