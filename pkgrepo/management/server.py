"""The server as a whole: its description, the installation of the first admin, and the health checks."""

from __future__ import annotations

from typing import Annotated, Any, Final

from attrs import frozen

from pkgrepo import __version__
from pkgrepo.auth.accounts import ensure_admin
from pkgrepo.auth.login.identities import check_username
from pkgrepo.errors import Forbidden, NotFound, PkgrepoError
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.interfaces import IBlobStore, Transaction
from pkgrepo.management.api.access_rules import PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import MAX_LIMIT
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import BODY_LIMIT, Body, Record, Word
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, Storage, User
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.blobs.blobs import count_suspects
from pkgrepo.storage.catalog.people.users import has_users, update_user
from pkgrepo.storage.catalog.server.layout_pending import Backlog, backlog
from pkgrepo.storage.catalog.server.webhooks import disabled_webhooks, failing_webhooks
from pkgrepo.storage.free_space import free_and_total, low_water

OK = "ok"
DEGRADED = "degraded"
UNAVAILABLE = "unavailable"
STATUSES = (OK, DEGRADED, UNAVAILABLE)  # from the best to the worst

table = Table("server")


class Limits(Record):
    """Limits of requests: sizes in bytes, max_page in items, token_max_days in days."""

    max_upload: Annotated[int, meaning("The size of the largest upload, in bytes.")]
    max_body: Annotated[int, meaning("The size of the largest body of other requests, in bytes.")]
    max_page: Annotated[int, meaning("The largest number of items of a page.")]
    token_max_days: Annotated[int, meaning("How many days an access token is valid at the most.")]


class FormatInfo(Record):
    """A package format; aliases are other names that the API accepts for it."""

    name: Annotated[str, meaning("The name of the format.")]
    aliases: Annotated[list[str], meaning("Other names that the API accepts for it.")]
    programs: Annotated[str, meaning("The programs that its users know it by, in a row.")]
    starter: Annotated[str, meaning("The name of its repository in the starter set; empty for none.")]


class Info(Record):
    """The version, formats and limits of the server; installed is true once it has a user."""

    name: Annotated[str, meaning("The name of the program.")]
    version: Annotated[str, meaning("The version of the program.")]
    installed: Annotated[bool, meaning("Whether the server has a user.")]
    formats: Annotated[list[FormatInfo], meaning("The package formats.")]
    login_methods: Annotated[list[str], meaning("How clients can log in.")]
    limits: Annotated[Limits, meaning("The limits of requests.")]


class ScopeInfo(Record):
    """A scope of access tokens or an action in repositories."""

    name: Annotated[str, meaning("The name that requests use.")]
    description: Annotated[str, meaning("What it permits.")]


class Scopes(Record):
    """All scopes of access tokens, and all actions in repositories."""

    scopes: Annotated[list[ScopeInfo], meaning("The scopes of access tokens.")]
    actions: Annotated[list[ScopeInfo], meaning("The actions in repositories.")]


class FirstAdmin(Body):
    """The account of the first admin."""

    username: Annotated[Word, meaning("The name by which the admin logs in.")]
    password: Annotated[str, meaning("The password of the admin.")]
    name: Annotated[str, meaning("The name of the person.")] = ""
    email: Annotated[str, meaning("The mail address.")] = ""


class Install(Body):
    """The request that creates the first admin."""

    user: Annotated[FirstAdmin, meaning("The account of the first admin.")]


class Health(Record):
    """The status of the server: ok, degraded or unavailable. Only admins get the results of the checks."""

    status: str
    checks: dict[str, Any] | None = None


SCOPES = {
    "api:read": "read the owner's account, tokens and projects",
    "api:write": "change the owner's account and tokens",
    "users": "manage users (owners who are user managers)",
    "system": "manage storages and repositories (owners who are system managers)",
    "metrics": "read the metrics of the server (owners who are system managers)",
    "audit": "read the audit log (owners who are admins)",
}
ACTIONS = {
    Action.READ: "list, search and download",
    Action.WRITE: "publish new files",
    Action.OVERWRITE: "replace published files where the repository allows it",
    Action.DELETE: "delete and yank",
    Action.EDIT: "change the configuration",
    Action.ADMIN: "collect garbage, read statistics, purge",
}


@table.get("/info", PUBLIC, "Get the version and the limits of the server")
async def show_info(call: Call) -> Info:
    """In the answer, installed is true once the server has a user."""
    return Info(
        name="pkgrepo",
        version=__version__,
        installed=await call.catalog.look(has_users),
        formats=[
            FormatInfo(
                name=name,
                aliases=list(format_.aliases),
                programs=format_.look.programs,
                starter=format_.look.starter,
            )
            for name, format_ in sorted(call.services.formats.items())
        ],
        login_methods=["password", "token"],
        limits=Limits(
            max_upload=call.shared.max_upload,
            max_body=BODY_LIMIT,
            max_page=MAX_LIMIT,
            token_max_days=call.services.token_max_days,
        ),
    )


@table.get("/info/scopes", PUBLIC, "List the scopes and actions of access tokens")
async def list_scopes(_call: Call) -> Scopes:
    """Scopes open parts of the management API; actions apply to repositories."""
    return Scopes(
        scopes=[ScopeInfo(name=name, description=text) for name, text in SCOPES.items()],
        actions=[ScopeInfo(name=action, description=text) for action, text in ACTIONS.items()],
    )


@table.post("/install", PUBLIC, "Create the first admin", audit="install")
async def install(call: Call, body: Install) -> None:
    """Needs the setting compat.open_install (403 without it). A server that has users answers 404."""
    services = call.services
    if await services.shared.catalog.look(has_users):
        raise NotFound("address", "install")
    if not services.open_install:
        raise Forbidden("the first admin is made by the server's start; see compat.open_install")
    username = check_username(body.user.username)
    services.callers.passwords.check(body.user.password, username=username)
    hashed = await services.callers.passwords.hash(body.user.password)
    entry = call.entry(username)
    await call.write(entry, _install, username, hashed, now_ms=call.now_ms, name=body.user.name, email=body.user.email)


def _install(tx: Transaction, username: str, hashed: str, *, name: str, email: str, now_ms: int) -> User:
    user = ensure_admin(tx, username, hashed, now_ms=now_ms)
    if user is None:
        raise NotFound("address", "install")  # another request was first
    return update_user(tx, user.id, now_ms=now_ms, name=name, email=email)


UNSET_UP: Final = "ok: not configured"


@frozen
class Check:
    """The result of one check: its subject, one of ``STATUSES``, and a sentence for admins."""

    name: str
    status: str = OK
    sentence: str = OK


async def live(_request: Request) -> Response:
    """Always 200: an answer shows that the reactor runs."""
    return json_response(Health(status="ok"), headers=NO_STORE)


async def ready(services: ManagementServices, request: Request) -> Response:
    """
    Whether the server can answer requests; admins also see each check.

    ===========  ======  ================================================================================
    status       code    when
    ===========  ======  ================================================================================
    ok           200     every check succeeded
    degraded     200     reading works, but a disk has less free space than the low-water mark: nothing can be
                         published, and the readable layout is not updated until there is space again
    unavailable  503     the catalog does not answer, or an active storage cannot be opened
    ===========  ======  ================================================================================
    """
    status, checks = await _checked(services)
    identity = await services.shared.access.identify(request)
    shown = None
    if identity.admin and identity.limits is None:
        shown = {each.name: each.sentence for each in (*checks, *await _others(services))}
    health = Health(status=status, checks=shown)
    return json_response(health, 503 if status == UNAVAILABLE else 200, headers=NO_STORE)


async def run_checks(services: ManagementServices) -> tuple[str, list[Check]]:
    """The status of the server, and all checks."""
    status, checks = await _checked(services)
    return status, [*checks, *await _others(services)]


async def _others(services: ManagementServices) -> list[Check]:
    """The checks that admins learn of, and that do not decide on the status."""
    found = [await each(services) for each in (_bytes, _layout, _webhooks, _advisories, _backups, _twins)]
    return [*found, *map(_directory, services.callers.directories)]


async def _checked(services: ManagementServices) -> tuple[str, list[Check]]:
    """The checks that decide on the status."""
    checks = [
        await _catalog(services),
        await _database(services),
        *[await _storage(services, each) for each in services.shared.registry.storages() if each.active],
    ]
    return max((each.status for each in checks), key=STATUSES.index), checks


async def _catalog(services: ManagementServices) -> Check:
    try:
        await services.shared.catalog.look(has_users)
        await services.shared.registry.refresh()
    except PkgrepoError as error:
        return Check("catalog", UNAVAILABLE, str(error))
    return Check("catalog")


async def _database(services: ManagementServices) -> Check:
    try:
        free, total = await services.shared.pools.disk(free_and_total, services.database_dir)
    except OSError as error:
        return Check("database", UNAVAILABLE, error.strerror or "its folder is not to be seen")
    return _room(services, "database", free, total)


async def _storage(services: ManagementServices, storage: Storage) -> Check:
    name = f"storage {storage.name}"
    try:
        store: IBlobStore = await services.maintenance.stores.open(storage)
        capacity = store.capacity()
    except (PkgrepoError, OSError) as error:
        return Check(name, UNAVAILABLE, str(error))
    return Check(name) if capacity is None else _room(services, name, *capacity)


def _room(services: ManagementServices, name: str, free: int, total: int) -> Check:
    least = low_water(total, services.low_water)
    if free >= least:
        return Check(name)
    return Check(name, DEGRADED, f"only {free} bytes, or inodes for them, are free; {least} are kept (data.low_water)")


async def _bytes(services: ManagementServices) -> Check:
    """What is known to be damaged is not served, and keeps the server from nothing else."""
    name, catalog = "stored bytes", services.shared.catalog
    try:
        counts = {
            each.name: await catalog.scan(count_suspects, each.id) for each in services.shared.registry.storages()
        }
    except PkgrepoError as error:
        return Check(name, DEGRADED, str(error))
    if not any(counts.values()):
        return Check(name)
    found = " and ".join(f"{count} blobs of {storage}" for storage, count in counts.items() if count)
    return Check(name, DEGRADED, f"{found} are damaged or missing, and in no other place: see pkgrepo verify")


async def _layout(services: ManagementServices) -> Check:
    """What could not be shown is tried again, and keeps the server from nothing."""
    name = "readable layout"
    try:
        found: Backlog = await services.shared.catalog.scan(backlog)
    except PkgrepoError as error:
        return Check(name, DEGRADED, str(error))
    count = sum(found.failed.values())
    if not count:
        return Check(name)
    return Check(name, DEGRADED, f"{count} entries could not be shown, and are tried again: {found.reason}")


async def _webhooks(services: ManagementServices) -> Check:
    """Those whose receivers fail, or were switched off for that; they keep the server from nothing."""
    catalog, problems = services.shared.catalog, []
    try:
        if off := await catalog.scan(disabled_webhooks):
            problems.append(f"switched off because their receivers failed: {', '.join(off)}")
        if failing := await catalog.scan(failing_webhooks):
            problems.append(f"their receivers fail: {', '.join(failing)}")
    except PkgrepoError as error:
        return Check("webhooks", DEGRADED, str(error))
    return Check("webhooks", DEGRADED, "; ".join(problems)) if problems else Check("webhooks")


def _directory(directory: Any) -> Check:
    """A directory that is away keeps others from nothing, nor those who have logged in."""
    name = f"directory {directory.name}"
    return Check(name, DEGRADED, f"it cannot be asked: {directory.trouble}") if directory.trouble else Check(name)


async def _advisories(services: ManagementServices) -> Check:
    """Without a source there is nothing to check; old ones keep the server from audits, and from knowing of malware."""
    try:
        known = await services.shared.advisories.knowledge()
    except PkgrepoError as error:
        return Check("advisories", DEGRADED, str(error))
    if not known.has_source:
        return Check("advisories", OK, f"{UNSET_UP}; malware is not looked for")
    if known.problem:
        found = services.shared.registry.policy.malware is not None
        said = "malware that was found later is not known" if found else "malware is not looked for"
        return Check("advisories", DEGRADED, f"{known.problem}; {said}")
    if services.shared.registry.policy.malware is None:
        return Check("advisories", OK, "ok: known malware is served (advisories.block_malware)")
    return Check("advisories")


async def _backups(services: ManagementServices) -> Check:
    """Without a destination there is nothing to check; old ones keep the server from nothing."""
    if services.backups.plan is None:
        return Check("backup", OK, UNSET_UP)
    try:
        problem = await services.backups.problem()
    except PkgrepoError as error:
        return Check("backup", DEGRADED, str(error))
    return Check("backup", DEGRADED, problem) if problem else Check("backup")


async def _twins(services: ManagementServices) -> Check:
    """Old ones keep the server from nothing."""
    if not services.twins.plans:
        return Check("twins", OK, UNSET_UP)
    try:
        problem = await services.twins.problem()
    except PkgrepoError as error:
        return Check("twins", DEGRADED, str(error))
    return Check("twins", DEGRADED, problem) if problem else Check("twins")
