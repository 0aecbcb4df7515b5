"""The routes that list, add, show, change and remove repositories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET

from pkgrepo.auth.patterns import check_repositories, matcher
from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import EDITORS, READERS_OF_SOME, SYSTEM_MANAGERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import check_independent, get_format, parse_visibility
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import DRY_RUN, Created, Parameter, Table
from pkgrepo.management.quotas import check_may_limit, limits_given, with_limits
from pkgrepo.management.repositories.definitions import define, make_repository
from pkgrepo.management.repositories.schema import (
    DeletedRepository,
    FoundRepository,
    NewRepository,
    RepositoryChange,
    RepositoryNames,
    RepositoryRecord,
)
from pkgrepo.management.repositories.stored import (
    joined,
    pointing_into,
    storable,
    try_routes,
    warnings_of,
)
from pkgrepo.management.repositories.uploads import takes_files
from pkgrepo.model import Action, Extent, Repository, RepositoryType, Storage, UpstreamHealth, UpstreamState
from pkgrepo.proxy.address_remarks import remarks_on
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import remove_repository
from pkgrepo.proxy.virtual import check_no_member
from pkgrepo.repositories.format import load_formats
from pkgrepo.storage.catalog.server import quotas, repositories, storages
from pkgrepo.storage.catalog.server.purge import purge_repository
from pkgrepo.storage.catalog.server.quotas import QuotaKind
from pkgrepo.storage.catalog.server.upstream_states import Down, down_routes
from pkgrepo.storage.catalog.usage_counts import DAY_MS, downloads_of_repositories

FILTERS = (
    Parameter("format", "Only repositories of this format."),
    Parameter("type", "Only repositories of this type: Hosted, Proxy or Virtual."),
    Parameter("storage", "Only repositories in this storage (name or id)."),
    Parameter("visibility", "Only repositories with this visibility: public, private or hidden."),
    Parameter("pattern", "Only repositories whose path matches this pattern, as that of a grant or a token: main/*."),
    Parameter("q", "Only repositories whose path or description contains this text."),
    Parameter("include_usage", "Whether to return the usage fields; they are null otherwise.", "boolean"),
)
CONFIRM = Parameter("confirm", "The name or path of the repository, as confirmation; required without dry_run.")
PURGE = Parameter("purge", "Delete the content at once; it cannot be restored from the trash.", "boolean")

DAYS: Final = 30  # whose downloads a record has

table = Table("repositories")


def _matches(call: Call, repository: Repository) -> bool:
    """Whether the repository matches the filters of the query."""
    wanted_format, storage, text = call.query("format"), call.query("storage"), call.query("q").casefold()
    if wanted_format and get_format(call.services.formats, wanted_format, "format").name != repository.format:
        return False
    if call.query("type") and call.query("type").casefold() != repository.type.casefold():
        return False
    pattern = call.query("pattern")
    if pattern and not matcher(check_repositories(pattern, "pattern"))(repository.path.lower()):
        return False
    uid = call.registry.storage(repository.storage_id).uid
    if storage and storage.casefold() not in (uid, repository.storage_name.casefold()):
        return False
    if call.query("visibility") and parse_visibility(call.query("visibility"), "visibility") != repository.visibility:
        return False
    return text in f"{repository.path}\n{repository.description}".casefold()


@table.command(
    "repo list",
    options="format, type, storage, visibility, pattern, query -q: q",
    columns="REPOSITORY: {storage_name}/{name} | FORMAT: format | TYPE: type | VISIBILITY: visibility | "
    "PACKAGES: package_count:number | SIZE: usage_bytes:size | CHANGED: updated_at:ago | "
    "STATE: active:active/off",
    nothing="there are no such repositories that you may see",
    sends={"include_usage": "true"},
)
@table.get(
    "/repository",
    VIEWERS,
    "List the repositories that the caller may see",
    query=FILTERS,
    aliases=[("GET", "/repository/list")],
)
async def list_repositories(call: Call) -> Page[RepositoryRecord]:
    """
    Sorted by path. Hidden repositories are listed only for callers with the action edit.

    What belongs to another repository, such as the conda channel of a Python repository, is not listed.
    """
    usage = call.flag("include_usage")
    every = call.registry.listed()
    if usage:
        fresh = {each.id: each for each in await call.catalog.scan(repositories.all_repositories)}
        every = [fresh.get(each.id, each) for each in every]
    visible = await call.services.callers.authorizer.visible(call.identity, every)
    found = [each for each in visible if _matches(call, each)]
    page = call.page_request.page_of_all(found, lambda repository: repository.path, lambda each: each)
    counts = await _downloads(call, page.items) if usage else {}
    down = await call.catalog.look(down_routes)
    whole = await _wholly_readable(call, page.items) if usage else set()
    items = [
        _record(call, each, down, usage=each.id in whole, downloads=counts[each.id] if each.id in whole else None)
        for each in page.items
    ]
    return Page(items=items, next=page.next, total=page.total)


@table.post(
    "/repository",
    SYSTEM_MANAGERS,
    "Add a repository",
    audit="repository.create",
    aliases=[("POST", "/repository/new/<format>")],
)
async def create_repository(call: Call, body: NewRepository, format: str | None = None) -> Created[RepositoryRecord]:
    """The format and a storage are required. Parts of the configuration that are absent get their defaults."""
    if format is None and body.format is None:
        raise Invalid("the object is missing required field `format`", "/format")
    format_ = get_format(call.services.formats, format or body.format or "")
    await load_formats([format_], call.shared.pools.cpu)
    storage = await find_place(call, body.storage or body.storage_name or body.storage_id)
    if body.config is None and body.configs is not None:
        pointer, given = "/configs", joined(format_, body.configs)
    else:
        pointer, given = "/config", body.config or {"type": RepositoryType.HOSTED.value}
    issuers, visibility = call.shared.pipelines.issuers, parse_visibility(body.visibility)
    fixed, settings = define(format_, issuers, storage.name, body.name, given, pointer)
    call.object = f"{storage.name}/{body.name}"
    entry = call.entry(detail={"format": format_.name, "visibility": visibility, "config": sorted(settings)})
    with pointing_into(pointer):
        repository = await call.write(
            entry,
            make_repository,
            storage,
            format_.name,
            body.name,
            default=call.shared.images.pinned_default,
            companions=call.services.companions,
            visibility=visibility,
            description=body.description,
            active=body.active,
            config=await storable(call, fixed),
            settings=settings,
            now_ms=call.now_ms,
        )
    call.services.on_change(repository)
    await try_routes(call, repository)
    shown = await _shown(call, repository)
    if repository.type is RepositoryType.PROXY:
        routes = proxy_config_of(repository).routes
        shown.warnings += [f"{each.url}: {found}" for each in routes for found in remarks_on(format_.address, each.url)]
    return Created(shown, f"/api/repository/{repository.uid}")


@table.get("/repository/find-id/<storage>/<name>", VIEWERS, "Get the id of a repository by storage and name")
async def find_id(call: Call, storage: str, name: str) -> FoundRepository:
    """Callers who may not read the repository are answered as if it did not exist."""
    repository = call.registry.find(storage, name)
    if repository is None or not await call.may(Action.READ, repository, Extent.SOME):
        raise unknown(call.identity, f"{storage}/{name}")
    return FoundRepository(id=repository.uid, repository_id=repository.uid)


@table.get("/repository/<repository>", READERS_OF_SOME, "Show a repository")
async def show_repository(call: Call) -> RepositoryRecord:
    """The repository is found by id, or by its path as storage%2Fname."""
    return await _shown(call, await call.fresh_repository())


@table.get("/repository/<repository>/names", READERS_OF_SOME, "Show the name and the path of a repository")
async def show_names(call: Call) -> RepositoryNames:
    """In the answer, name and repository_name have the same value."""
    repository = call.repository
    return RepositoryNames(
        id=repository.uid,
        name=repository.name,
        repository_name=repository.name,
        storage_name=repository.storage_name,
        path=repository.path,
    )


@table.get("/repository/<repository>/page", READERS_OF_SOME, "Get the page of a repository", media_type="text/plain")
async def show_page(call: Call) -> Response:
    """
    The text in Markdown that its configuration has as page, not rendered.

    It is sent as text/markdown if the Accept field contains that, else as text/plain.
    """
    text = call.repository.settings.get("page")
    if not text:
        raise NotFound("page of repository", call.repository.path)
    return call.text_answer(str(text), "text/markdown")


@table.patch("/repository/<repository>", EDITORS, "Change a repository", audit="repository.update", conditional=True)
async def change_repository(call: Call, body: RepositoryChange) -> RepositoryRecord:
    """Changes visibility, description, the active flag and the quota. An inactive repository answers 503 to clients."""
    repository = await call.fresh_repository()
    check_independent(repository)
    call.check_unchanged(_record(call, repository, await call.catalog.look(down_routes)))
    changes: dict[str, Any] = {}
    if body.visibility is not UNSET:
        changes["visibility"] = parse_visibility(body.visibility)
    if body.description is not UNSET:
        changes["description"] = body.description
    if body.active is not UNSET:
        changes["active"] = body.active
    limits: dict[str, int | None] = {}
    if body.quota is not UNSET:
        await check_may_limit(call, repository)
        limits = limits_given(body.quota)
    before = {name: getattr(repository, name) for name in changes}
    if changes != before:
        entry = call.entry(detail={"before": before, "after": changes, **({"quota": limits} if limits else {})})
        update = with_limits(repositories.update_repository, QuotaKind.REPOSITORY, limits)
        repository = await call.write(entry, update, repository.id, now_ms=call.now_ms, **changes)
        call.services.on_change(repository)
    elif limits:
        await call.write(
            call.entry(detail={"quota": limits}), quotas.change_limits, QuotaKind.REPOSITORY, repository.id, limits
        )
    return await _shown(call, repository)


@table.command(
    "repo delete STORAGE/REPOSITORY",
    "deleted {path} with {package_count:count package} ({usage_bytes:size}){purge:/; pkgrepo trash restores it}",
    tried="would delete {path} with {package_count:count package} ({usage_bytes:size})",
    options="purge, dry-run",
    ask="Delete {repository} with all its packages?",
    sends={"confirm": "{repository}"},
    about="Delete a repository with its packages.",
)
@table.delete(
    "/repository/<repository>",
    SYSTEM_MANAGERS,
    "Delete a repository",
    query=(CONFIRM, PURGE, DRY_RUN),
    audit="repository.delete",
    conditional=True,
)
async def delete_repository(call: Call) -> DeletedRepository:
    """
    The repository is no longer served at once. It goes to the trash for retention.trash_days, or with purge its content
    is removed at once. A member of a virtual repository cannot be deleted (409).

    Without dry_run, confirm must be the name or the path of the repository (422 otherwise).
    """
    repository = await call.fresh_repository()
    check_independent(repository)
    call.check_unchanged(_record(call, repository, await call.catalog.look(down_routes)))
    dry, purge = call.flag("dry_run"), call.flag("purge")
    if call.query("confirm") not in (repository.name, repository.path) and not dry:
        raise Invalid(f"add ?confirm={repository.name} to delete repository {repository.path}", "confirm")
    await call.catalog.look(check_no_member, repository)
    companions = call.registry.companions_of(repository)
    if not dry:
        entry = call.entry(detail={"purge": purge, "format": repository.format})
        await call.write(entry, remove_repository, repository, now_ms=call.now_ms, purge=purge, actor=call.actor)
        call.services.on_change(repository)
        for each in (*companions, repository) if purge else ():
            while await call.catalog.write(purge_repository, each.id):
                pass
    return DeletedRepository(
        id=repository.uid,
        path=repository.path,
        purged=purge,
        dry_run=dry,
        package_count=repository.package_count,
        usage_bytes=repository.bytes_used,
    )


async def find_place(call: Call, name: str | None) -> Storage:
    """The storage of a name or id. :raises Invalid: there is none; :raises Conflict: it is switched off"""
    if not name:
        raise Invalid("the object is missing required field `storage`", "/storage")
    storage: Storage | None = await call.catalog.look(storages.find_storage, name)
    if storage is None:
        raise Invalid(f"there is no storage {name!r}", "/storage")
    if not storage.active:
        raise Conflict(f"storage {storage.name!r} is switched off")
    return storage


async def _shown(call: Call, repository: Repository) -> RepositoryRecord:
    """The record of one repository, with what the caller may do in it."""
    may = await call.services.callers.authorizer.may_each(call.identity, [(each, repository, None) for each in Action])
    actions = [each for each, allowed in zip(Action, may, strict=True) if allowed]
    whole = Action.READ in actions  # figures of what the caller may not read say too much
    counts = await _downloads(call, [repository]) if whole else {}
    down = await call.catalog.look(down_routes)
    downloads, names_rules = counts.get(repository.id), Action.EDIT in actions
    record = _record(call, repository, down, usage=whole, downloads=downloads, names_rules=names_rules)
    record.actions = [each.value for each in actions]
    record.takes_files = await takes_files(call, repository)
    if whole:
        record.quota = (await call.catalog.look(quotas.limits_of, QuotaKind.REPOSITORY, repository.id)).bytes
    return record


async def _wholly_readable(call: Call, some: Sequence[Repository]) -> set[int]:
    """The catalog keys of those repositories that the caller may read as a whole; figures of others say too much."""
    may = await call.services.callers.authorizer.may_each(call.identity, [(Action.READ, each, None) for each in some])
    return {each.id for each, whole in zip(some, may, strict=True) if whole}


async def _downloads(call: Call, shown: Sequence[Repository]) -> dict[int, list[int]]:
    """The downloads of repositories, by their catalog keys, on each of the last days."""
    today = call.now_ms // DAY_MS
    days = range(today - DAYS + 1, today + 1)
    found = await call.catalog.scan(downloads_of_repositories, [each.id for each in shown], days[0])
    return {key: [counts.get(day, 0) for day in days] for key, counts in found.items()}


def _record(
    call: Call,
    repository: Repository,
    down: Down,
    *,
    usage: bool = True,
    downloads: list[int] | None = None,
    names_rules: bool = False,
) -> RepositoryRecord:
    storage = call.registry.storage(repository.storage_id)
    warnings = warnings_of(call, repository, names_rules=names_rules)
    record = RepositoryRecord.of(
        repository, storage_uid=storage.uid, base_url=call.base_url, warnings=warnings, usage=usage
    )
    record.downloads = downloads
    if repository.type is RepositoryType.PROXY:
        record.upstream_state = _worst_state(call, repository, down)
    return record


UNUSED: Final = "unused"
FAILING: Final = "failing"  # of a route that is asked, and whose last request failed


def state_of(health: UpstreamHealth | None, *, down: bool) -> str:
    """The state of a route for the server: another process may know that it is ``down``."""
    if down and (health is None or health.state is UpstreamState.CLOSED):
        return UpstreamState.OPEN
    return UNUSED if health is None else health.state


def _worst_state(call: Call, repository: Repository, down: Down) -> str:
    """The state of the route of a proxy that is worst: what this process has asked, and what is ``down`` for others."""
    states = set[str]()
    for each in proxy_config_of(repository).routes:
        known = call.shared.proxy.upstreams.health(repository.id, each)
        state = state_of(known, down=(repository.id, each.name) in down)
        fails = state == UpstreamState.CLOSED and known is not None and known.failed_last
        states.add(FAILING if fails else state)
    return next((each for each in ("open", "half_open", FAILING, "closed") if each in states), UNUSED)
