"""The routes to the caller's own account."""

from __future__ import annotations

from pkgrepo.auth.tokens.text import token_kind
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC, check_no_bearer
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.model import User
from pkgrepo.storage.catalog.people import grants, users

from .schema import OwnChange, PasswordChange, Permissions, UserRecord, Whoami


class Account(Handlers):
    """Shows and changes the caller's own account."""

    table = Table("account")

    @table.route("GET", "/user/whoami", access=PUBLIC, summary="Show the identity of the caller", answer=Whoami)
    async def whoami(self, call: Call) -> Whoami:
        """Works without credentials and with every token; via is the kind of the credentials."""
        found = call.identity
        scopes = None if found.limits is None else sorted(found.limits.scopes)
        return Whoami.from_attributes(found, authenticated=not found.anonymous, scopes=scopes)

    @table.route("GET", "/user/me", access=ACCOUNT_HOLDERS, summary="Show the caller's account", answer=UserRecord)
    async def me(self, call: Call) -> UserRecord:
        """Returns the same record as the operations for user managers."""
        return UserRecord.of(await self._user(call))

    @table.route(
        "PATCH",
        "/user/me",
        access=ACCOUNT_HOLDERS,
        summary="Change the caller's account",
        body=OwnChange,
        answer=UserRecord,
        audit="account.update",
        conditional=True,
    )
    async def change(self, call: Call, body: OwnChange) -> UserRecord:
        """Only name and email can be changed."""
        user = await self._user(call)
        call.check_unchanged(UserRecord.of(user))
        changes = body.given("name", "email")
        entry = call.entry(user.username, {"changed": sorted(changes)})
        return UserRecord.of(await call.write(entry, users.update_user, user.id, now_ms=call.now_ms, **changes))

    @table.route(
        "GET",
        "/user/me/permissions",
        access=ACCOUNT_HOLDERS,
        summary="Show the caller's permissions",
        answer=Permissions,
    )
    async def permissions(self, call: Call) -> Permissions:
        """Flags, default actions, and grants in repositories, including those of groups."""
        user = await self._user(call)
        found = await self._catalog.look(grants.permissions_of_user, user.id)
        return Permissions.of(user, found, self._registry.listed())

    @table.route(
        "POST",
        "/user/change-password",
        access=ACCOUNT_HOLDERS,
        summary="Change the caller's password",
        body=PasswordChange,
        status=204,
        audit="account.password",
    )
    async def change_password(self, call: Call, body: PasswordChange) -> None:
        """
        Needs the old password. Requests that authenticate with a token are refused (403).

        Bearer tokens and login tokens are revoked, other access tokens stay valid.
        """
        user = await self._user(call)
        check_no_bearer(call.identity)
        if call.identity.token_id is not None:
            raise Forbidden("a password is changed by whoever logs in with it, not through a token")
        if token_kind(body.old_password):
            raise AuthenticationFailed
        address = call.request.client_address
        await self._services.authenticator.login(user.username, body.old_password, address)
        self._services.passwords.check(body.new_password, username=user.username)
        hashed = await self._services.passwords.hash(body.new_password)
        await call.write(call.entry(user.username), users.set_password, user.id, hashed, now_ms=call.now_ms)

    async def _user(self, call: Call) -> User:
        if call.identity.user_id is None:
            raise AuthenticationRequired
        user: User = await self._catalog.look(users.get_user, call.identity.user_id)
        return user
