"""The server as a whole: its description, and the installation of the first admin."""

from __future__ import annotations

from typing import Annotated

from pkgrepo import __version__
from pkgrepo.auth.accounts import ensure_admin
from pkgrepo.auth.login.identities import check_username
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import MAX_LIMIT
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import BODY_LIMIT, Body, Record, Word
from pkgrepo.model import Action, User
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.people.users import has_users, update_user

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
