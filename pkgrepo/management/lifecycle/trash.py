"""The trash: what was deleted, its restoring, and its deletion for good."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import CONTENT_DELETERS, SYSTEM_MANAGERS, VIEWERS
from pkgrepo.management.api.call import Call, must_do
from pkgrepo.management.api.fields import ObjectId, PackageName, RepositoryPath
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Action, Repository
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.upkeep.trash import restore_entry, restore_some
from pkgrepo.storage.catalog.orders import Order
from pkgrepo.storage.catalog.server import trash
from pkgrepo.storage.catalog.server.purge import mark_for_purge, purge_repository
from pkgrepo.storage.catalog.server.repositories import restore_repository
from pkgrepo.storage.catalog.server.trash import TrashEntry

NAMES = 20  # names of items that an entry lists
BATCH = 500  # entries that are read together; callers may see few of them
REPOSITORY = "repository"
ORDER: Order[TrashEntry] = Order("-deleted_at", "", "", (int, str), trash.position)

table = Table("trash")


class TrashRecord(Record):
    """One deletion that can be undone."""

    id: ObjectId
    kind: Annotated[str, meaning("repository, package, versions, version, files, manifest or tag.")]
    repository: RepositoryPath
    format: Annotated[str | None, meaning("The format of the repository.")]
    package: PackageName
    names: Annotated[list[str], meaning("The first of its versions, digests or tags.")]
    items: Annotated[int, meaning("How many versions, digests or tags there are.")]
    size: Annotated[int, meaning("Their size in bytes, which the repository still uses.")]
    by: Annotated[str, meaning("The user who deleted it.")]
    reason: Annotated[str, meaning("The rule that deleted it; empty if a person did.")]
    deleted_at: Annotated[datetime, meaning("When it was deleted.")]
    expires_at: Annotated[datetime, meaning("When it is deleted for good.")]


class Restored(Record):
    """What was restored: the path of a repository, or a package in it; items is the number of versions or tags."""

    id: Annotated[str, meaning("The id of the entry of the trash.")]
    repository: RepositoryPath
    package: Annotated[str, meaning("The package that was restored; empty for a whole repository.")]
    items: Annotated[int, meaning("How many versions or tags were restored.")]


class Purged(Record):
    """What was deleted for good, and the bytes that the repository does not use any more."""

    id: Annotated[str, meaning("The id of the entry of the trash.")]
    repository: RepositoryPath
    package: Annotated[str, meaning("The package that was deleted; empty for a whole repository.")]
    size: Annotated[int, meaning("The bytes that the repository does not use any more.")]


@table.command(
    "trash list [STORAGE/REPOSITORY]",
    options="limit 50",
    columns="ID: id | REPOSITORY: repository | KIND: kind | WHAT: :removed | SIZE: size:size | "
    "DELETED: deleted_at:ago | BY: by | REASON: reason",
    nothing="the trash has nothing that you may restore",
    about="List what is in the trash, the newest first.",
)
@table.get(
    "/trash",
    VIEWERS,
    "List what was deleted and can be restored",
    query=[Parameter("repository", "Only of this repository: its id, or storage/name.")],
)
async def list_trash(call: Call) -> Page[TrashRecord]:
    """
    The newest first: what the caller may delete, and for system managers also repositories.

    Everything stays there for retention.trash_days, and is then deleted for good.
    """
    page_request = call.page_request
    at, uid = page_request.after_position(ORDER) or (None, "")
    after = None if at is None else (int(at), str(uid))
    wanted = await _wanted(call)
    if call.identity.anonymous:  # who may delete nothing, so that nothing has to be read
        return page_request.page([], ORDER.place, _record(call, 0, {}))
    removed = wanted is None and await call.services.callers.authorizer.may_use(call.identity, SYSTEM_MANAGERS.scope)
    found: list[TrashEntry] = []
    seen: dict[tuple[int, str], bool] = {}
    while len(found) <= page_request.limit:
        some = await call.catalog.scan(
            trash.list_entries,
            repository_id=None if wanted is None else wanted.id,
            removed=removed,
            after=after,
            limit=BATCH,
        )
        found += [each for each in some if await _may(call, each, seen)]
        if len(some) < BATCH:
            break
        after = trash.position(some[-1])
    found = found[: page_request.limit + 1]
    days = await call.catalog.look(trash.kept_days)
    names = await call.catalog.scan(_names, [each for each in found if each.kind != REPOSITORY])
    return page_request.page(found, ORDER.place, _record(call, days, names))


@table.command(
    "trash restore ID",
    "restored {:where}",
    about="Restore what was deleted, with its files, tags and times.",
)
@table.post("/trash/<id>/restore", VIEWERS, "Restore what was deleted", audit="trash.restore")
async def restore(call: Call, id: str) -> Restored:
    """
    With its files, times, metadata, and the tags that stand for nothing else now; a package with all its versions.

    Needs the right to delete it, and to publish it now, by the action write and the push rules: what comes back is
    judged like what is published. For a repository, a system manager. 409 if other content took the place of a file, or
    another repository that of the repository.
    """
    removed = await _find_removed(call, id)
    if removed is not None:
        call.object = removed.name
        repository = await call.write(call.entry(), restore_repository, removed.uid, call.actor, call.now_ms)
        call.services.on_change(repository)
        return Restored(id=id, repository=repository.path, package="", items=removed.items)
    entry = await _find_entry(call, id)
    admitted = await call.shared.access.publishing(call.identity, call.repository, entry.package_key, call.actor)

    async def restore(check: bool) -> tuple[int, bool]:
        some = entry.uid, call.format.index, admitted, check
        if call.audited:
            return await call.shared.content.change(restore_some, call.repository, *some)
        return await call.change_content(call.entry(), restore_some, *some)

    items = await restore_entry(restore)
    return Restored(id=id, repository=call.repository.path, package=entry.package_name, items=items)


@table.command(
    "trash purge ID", "deleted {:where} for good ({size:size})", ask="Delete entry {id} of the trash for good?"
)
@table.delete("/trash/<id>", VIEWERS, "Delete something in the trash for good", audit="trash.purge")
async def purge(call: Call, id: str) -> Purged:
    """
    It cannot be restored any more; the next garbage collection removes its bytes.

    Needs the right to delete it; for a repository, a system manager.
    """
    removed = await _find_removed(call, id)
    if removed is not None:
        call.object = removed.name
        ids = await call.write(call.entry(), mark_for_purge, removed.id)
        for each in ids:
            while await call.catalog.write(purge_repository, each):
                pass
        return Purged(id=id, repository=removed.name, package="", size=removed.size)
    entry = await _find_entry(call, id)
    await call.write(call.entry(), must_do(trash.purge_entry, _unknown(id)), entry.id)
    call.services.on_change(call.repository)
    return Purged(id=id, repository=call.repository.path, package=entry.package_name, size=entry.size)


async def _wanted(call: Call) -> Repository | None:
    """The repository that the query names, if any. :raises Invalid: the caller may not know of it"""
    name = call.query("repository")
    return await get_repository(call.registry, name, "repository", call.knows) if name else None


async def _find_removed(call: Call, uid: str) -> TrashEntry | None:
    """The removed repository with this id, if there is one that the caller may restore."""
    if not await call.services.callers.authorizer.may_use(call.identity, SYSTEM_MANAGERS.scope):
        return None
    found: TrashEntry | None = await call.catalog.look(trash.find_removed, uid)
    return found


async def _find_entry(call: Call, uid: str) -> TrashEntry:
    """
    An entry that the caller may restore; its repository becomes that of the call.

    :raises NotFound: there is none; the errors of L{CONTENT_DELETERS} otherwise
    """
    entry = await call.catalog.look(trash.find_entry, uid)
    if entry is None or not await _may(call, entry, {}):
        raise _unknown(uid)
    repository = call.registry.find_id(entry.repository_id)
    assert repository is not None
    call.repository = repository
    call.object = f"{repository.path}/{entry.package_key}"
    await CONTENT_DELETERS.check(
        call.identity,
        call.request.method.decode("ascii"),
        call.services.callers.authorizer,
        repository=repository,
        package=entry.package_key,
        asked=uid,
    )
    return entry


async def _may(call: Call, entry: TrashEntry, seen: dict[tuple[int, str], bool]) -> bool:
    """Whether the caller may delete, and so restore, what an entry has; ``seen`` has the answers for others."""
    if entry.kind == REPOSITORY:
        return True  # they are listed only for system managers
    at = entry.repository_id, entry.package_key
    if at not in seen:
        repository = call.registry.find_id(entry.repository_id)
        seen[at] = repository is not None and await call.may(Action.DELETE, repository, entry.package_key)
    return seen[at]


def _names(r: Any, entries: list[TrashEntry]) -> dict[int, list[str]]:
    return {each.id: trash.names_of_items(r, each.id, NAMES) for each in entries}


def _record(call: Call, days: int, names: dict[int, list[str]]) -> Callable[[TrashEntry], TrashRecord]:
    def show(entry: TrashEntry) -> TrashRecord:
        repository = None if entry.kind == REPOSITORY else call.registry.find_id(entry.repository_id)
        return TrashRecord(
            id=entry.uid,
            kind=_kind(entry),
            repository=entry.name if repository is None else repository.path,
            format=None if repository is None else repository.format,
            package=entry.package_name,
            names=[] if repository is None else names[entry.id],
            items=entry.items,
            size=entry.size,
            by=entry.actor,
            reason=entry.reason,
            deleted_at=entry.deleted_at,
            expires_at=entry.deleted_at + timedelta(days=days),
        )

    return show


def _kind(entry: TrashEntry) -> str:
    if entry.kind == REPOSITORY:
        return entry.kind
    if entry.whole and entry.kind != "tag":
        return "package"
    return (
        entry.kind if entry.items == 1 else {"version": "versions", "files": "files"}.get(entry.kind, f"{entry.kind}s")
    )


def _unknown(uid: str) -> NotFound:
    return NotFound("entry of the trash", uid)
