"""The routes to the description of the server, and to its installation."""

from __future__ import annotations

from pkgrepo import __version__
from pkgrepo.auth.login.bootstrap import ensure_admin
from pkgrepo.auth.login.usernames import check_username
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.pages import MAX_LIMIT
from pkgrepo.management.api.parsing import BODY_LIMIT
from pkgrepo.management.api.route import Table
from pkgrepo.model import Action, User
from pkgrepo.storage.catalog.people.users import has_users, update_user

from .schema import FormatInfo, Info, Install, Limits, ScopeInfo, Scopes

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


class Server(Handlers):
    """Describes the server, and adds the first admin."""

    table = Table("server")

    @table.route("GET", "/info", access=PUBLIC, summary="Get the version and the limits of the server", answer=Info)
    async def info(self, _call: Call) -> Info:
        """In the answer, installed is true once the server has a user."""
        return Info(
            name="pkgrepo",
            version=__version__,
            installed=await self._catalog.look(has_users),
            formats=[
                FormatInfo(name=name, aliases=list(format_.aliases))
                for name, format_ in sorted(self._services.formats.items())
            ],
            login_methods=["password", "token"],
            limits=Limits(
                max_upload=self._services.shared.max_upload,
                max_body=BODY_LIMIT,
                max_page=MAX_LIMIT,
                token_max_days=self._services.token_max_days,
            ),
        )

    @table.route(
        "GET", "/info/scopes", access=PUBLIC, summary="List the scopes and actions of access tokens", answer=Scopes
    )
    async def scopes(self, _call: Call) -> Scopes:
        """Scopes open parts of the management API; actions apply to repositories."""
        return Scopes(
            scopes=[ScopeInfo(name=name, description=text) for name, text in SCOPES.items()],
            actions=[ScopeInfo(name=action, description=text) for action, text in ACTIONS.items()],
        )

    @table.route(
        "POST", "/install", access=PUBLIC, summary="Create the first admin", body=Install, status=204, audit="install"
    )
    async def install(self, call: Call, body: Install) -> None:
        """Needs the setting compat.open_install (403 without it). A server that has users answers 404."""
        services = self._services
        if await services.shared.catalog.look(has_users):
            raise NotFound("address", "install")
        if not services.open_install:
            raise Forbidden("the first admin is made by the server's start; see compat.open_install")
        username = check_username(body.user.username)
        services.passwords.check(body.user.password, username=username)
        hashed = await services.passwords.hash(body.user.password)
        entry = call.entry(username)
        await call.write(
            entry, _install, username, hashed, now_ms=call.now_ms, name=body.user.name, email=body.user.email
        )


def _install(tx: Transaction, username: str, hashed: str, *, name: str, email: str, now_ms: int) -> User:
    user = ensure_admin(tx, username, hashed, now_ms=now_ms)
    if user is None:
        raise NotFound("address", "install")  # another request was first
    return update_user(tx, user.id, now_ms=now_ms, name=name, email=email)
