"""The quotas of the server, storages, repositories, projects and users: limits, usage, and who may set them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Concatenate, Final, ParamSpec, Self, TypeVar

from attrs import asdict
from msgspec import UNSET, Meta, UnsetType

from pkgrepo.errors import Conflict, Forbidden, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import READERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import LARGEST, Body, Record
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.publish.owner_quotas import list_owner_quotas, usage_of
from pkgrepo.storage.catalog.server import quotas
from pkgrepo.storage.catalog.server.quotas import Limits, QuotaKind, Usage
from pkgrepo.storage.catalog.server.storages import find_storage

Amount = Annotated[int, Meta(ge=0, le=LARGEST)]

LIMITS = ("bytes", "packages", "versions", "file_size")

T = TypeVar("T")
P = ParamSpec("P")

table = Table("quotas")


class QuotaGiven(Body):
    """Limits; null removes one, and what is absent does not change."""

    bytes: Annotated[Amount | UnsetType | None, meaning("The most bytes of all content; null for no limit.")] = UNSET
    packages: Annotated[Amount | UnsetType | None, meaning("The most packages; null for no limit.")] = UNSET
    versions: Annotated[
        Amount | UnsetType | None, meaning("The most versions, of images manifests; null for no limit.")
    ] = UNSET
    file_size: Annotated[
        Amount | UnsetType | None, meaning("The largest size of a single file, in bytes; null for no limit.")
    ] = UNSET


class LimitsRecord(Record):
    """The limits of a quota; null: there is no limit."""

    bytes: Annotated[int | None, meaning("The most bytes of all content; null for no limit.")]
    packages: Annotated[int | None, meaning("The most packages; null for no limit.")]
    versions: Annotated[int | None, meaning("The most versions, of images manifests; null for no limit.")]
    file_size: Annotated[int | None, meaning("The largest size of a single file, in bytes; null for no limit.")]


class UsageRecord(Record):
    """What counts for a quota: bytes of all content, packages, and versions (of images: manifests)."""

    bytes: Annotated[int, meaning("The size of all content, in bytes.")]
    packages: Annotated[int, meaning("How many packages count.")]
    versions: Annotated[int, meaning("How many versions count; of images, manifests.")]


class QuotaRecord(Record):
    """The quota of the server, a storage, a repository, a project or a user, and what is used."""

    kind: Annotated[
        QuotaKind, meaning("What the quota is of: the server, a storage, a repository, a project or a user.")
    ]
    name: Annotated[str, meaning("The name of that, of a project the key; empty for the server.")]
    limits: Annotated[LimitsRecord, meaning("The limits.")]
    usage: Annotated[UsageRecord, meaning("What is used.")]
    nearly_used: Annotated[list[str], meaning("The limits of which 80 % or more are used.")]

    measured = frozenset({"usage", "nearly_used"})

    @classmethod
    def of(cls, kind: QuotaKind, name: str, limits: Limits, usage: Usage) -> Self:
        """The record of a quota."""
        return cls(
            kind=kind,
            name=name,
            limits=LimitsRecord(**asdict(limits)),
            usage=UsageRecord(**asdict(usage)),
            nearly_used=quotas.nearly_used(limits, usage),
        )


SHOWN: Final = (
    "place: :place | bytes: :bytes | packages: :packages | versions: :versions | "
    "largest file: limits.file_size:size | nearly used: nearly_used:listed"
)
SHOW: Final[Mapping[str, str]] = {
    "fields": SHOWN,
    "about": 'Show the quota of a repository, a storage, "project:KEY", "user:NAME", or "server".',
}
SET: Final[Mapping[str, str]] = {
    "fields": SHOWN,
    "options": "bytes:size, packages:count, versions:count, file-size:size",
    "about": 'Set limits of a repository, a storage, "project:KEY", "user:NAME", or "server"; "none" removes one.',
    "unchanged": "say what to limit: see --help",
    "more": "What is stored already stays, also if it is more than that.",
}


@table.command(
    "quota list",
    columns="PLACE: :place | BYTES: :bytes | PACKAGES: :packages | VERSIONS: :versions | "
    "LARGEST FILE: limits.file_size:size | NEARLY USED: nearly_used",
    nothing="there are none",
    about="List the quotas of the server and of all storages, and of all else that has one.",
)
@table.get("/system/quotas", SYSTEM_MANAGERS, "List quotas")
async def list_quotas(call: Call) -> list[QuotaRecord]:
    """Of the server and of every storage, also without limits, and of all else that has limits."""
    found = await call.catalog.scan(quotas.counted_quotas)
    found += await call.catalog.scan(list_owner_quotas)
    return [QuotaRecord.of(each.kind, name, each.limits, used) for each, name, used in found]


@table.command("quota show 'server'", **SHOW)
@table.get("/system/quota", SYSTEM_MANAGERS, "Show the quota of the server")
async def show_server_quota(call: Call) -> QuotaRecord:
    """With what all storages use together."""
    return await quota_record(call, QuotaKind.SERVER, 0, "")


@table.command("quota set 'server'", **SET)
@table.patch("/system/quota", SYSTEM_MANAGERS, "Change the quota of the server", audit="quota.update")
async def change_server_quota(call: Call, body: QuotaGiven) -> QuotaRecord:
    """A limit below what is used refuses what adds to it, and removes nothing."""
    return await change_quota(call, QuotaKind.SERVER, 0, "", body)


@table.command("quota show STORAGE", **SHOW)
@table.get("/storage/<id>/quota", SYSTEM_MANAGERS, "Show the quota of a storage")
async def show_storage_quota(call: Call, id: str) -> QuotaRecord:
    """With what its repositories use together, removed ones included until they are purged."""
    return await quota_record(call, QuotaKind.STORAGE, *await _storage(call, id))


@table.command("quota set STORAGE", **SET)
@table.patch("/storage/<id>/quota", SYSTEM_MANAGERS, "Change the quota of a storage", audit="quota.update")
async def change_storage_quota(call: Call, body: QuotaGiven, id: str) -> QuotaRecord:
    """A limit below what is used refuses what adds to it, and removes nothing."""
    return await change_quota(call, QuotaKind.STORAGE, *await _storage(call, id), body)


@table.command("quota show STORAGE/REPOSITORY", **SHOW)
@table.get("/repository/<repository>/quota", READERS, "Show the quota of a repository")
async def show_repository_quota(call: Call) -> QuotaRecord:
    """Quotas of its storage and of the server may leave less."""
    return await quota_record(call, QuotaKind.REPOSITORY, call.repository.id, call.repository.path)


@table.command("quota set STORAGE/REPOSITORY", **SET)
@table.patch("/repository/<repository>/quota", READERS, "Change the quota of a repository", audit="quota.update")
async def change_repository_quota(call: Call, body: QuotaGiven) -> QuotaRecord:
    """
    For system managers, who are the ones to decide what a repository may use.

    A limit below what is used refuses what adds to it, and removes nothing. Proxies have cache.max_bytes instead (409).
    """
    repository = call.repository
    await check_may_limit(call, repository)
    return await change_quota(call, QuotaKind.REPOSITORY, repository.id, repository.path, body)


async def check_may_limit(call: Call, repository: Repository) -> None:
    """
    Check that the caller may change the quota of a repository.

    :raises Forbidden: the caller is no system manager; :raises Conflict: the repository keeps nothing of clients
    """
    if not await call.services.callers.authorizer.may_use(call.identity, "system"):
        raise Forbidden("only system managers change quotas")
    if repository.type is not RepositoryType.HOSTED:
        raise Conflict(f"{repository.path} is not hosted: of a proxy, cache.max_bytes bounds what is kept")


def limits_given(given: int | QuotaGiven | None) -> dict[str, int | None]:
    """The limits that a request changes: a number stands for the bytes, null for none of all."""
    if given is None:
        return dict.fromkeys(LIMITS)
    return {"bytes": given} if isinstance(given, int) else given.given(*LIMITS)


async def _storage(call: Call, id: str) -> tuple[int, str]:
    storage = existing(await call.catalog.look(find_storage, id), "storage", id)
    return storage.id, storage.name


def with_limits(
    command: Callable[Concatenate[Transaction, int, P], T], kind: QuotaKind, limits: Mapping[str, int | None]
) -> Callable[Concatenate[Transaction, int, P], T]:
    """A command that changes a subject, whose id it takes, and its limits as well, in one transaction."""

    def run(tx: Transaction, subject_id: int, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if limits:
            quotas.change_limits(tx, kind, subject_id, limits)
        return command(tx, subject_id, *args, **kwargs)

    return run


async def quota_record(call: Call, kind: QuotaKind, subject_id: int, name: str) -> QuotaRecord:
    """The record of a quota, also of one without limits."""
    limits = await call.catalog.look(quotas.limits_of, kind, subject_id)
    return QuotaRecord.of(kind, name, limits, await call.catalog.scan(usage_of, kind, subject_id))


async def change_quota(call: Call, kind: QuotaKind, subject_id: int, name: str, body: int | QuotaGiven) -> QuotaRecord:
    """Change limits, and return the record."""
    changes = limits_given(body)
    await call.write(call.entry(name or str(kind), changes), quotas.change_limits, kind, subject_id, changes)
    return await quota_record(call, kind, subject_id, name)
