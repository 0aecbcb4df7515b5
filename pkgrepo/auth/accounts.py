"""
Account functions of package clients: log in for a token, list and revoke tokens, change own data and password.

``ensure_admin`` adds the first admin of a server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import evolve

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.auth.tokens.text import hash_token, make_token, shown_part
from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import Actor, Identity, Token, TokenKind, TokenLimits, User
from pkgrepo.storage.catalog.people import tokens, users
from pkgrepo.storage.catalog.people.users import add_user, has_users
from pkgrepo.storage.catalog.server.audit import Entry, append_entry

TOKEN_DAYS = 90  # default lifetime of a token


class Accounts:
    """
    The caller's own account and tokens. Changes are recorded in the audit log.

    ``now_ms`` returns milliseconds since the epoch; ``token_max_days`` is the longest lifetime of a token.
    ``copy_entry`` is called with each audit row once it is durable. Without ``own_email`` people cannot change their
    own e-mail address, because it decides who logs in to an account.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        authenticator: Authenticator,
        passwords: Passwords,
        now_ms: Callable[[], int],
        token_max_days: int,
        copy_entry: Callable[[Entry], None],
        own_email: bool = True,
    ) -> None:
        self._own_email = own_email
        self._catalog = catalog
        self._authenticator = authenticator
        self._passwords = passwords
        self._now_ms = now_ms
        self._token_max_days = token_max_days
        self.copy_entry = copy_entry

    async def login(
        self, username: str, secret: str, address: str, client: str = "", code: str = "", road: str = "a form"
    ) -> Identity:
        """
        The identity for a name and a password or access token; ``code`` is that of a second factor.

        :raises AuthenticationFailed, TooManyAttempts: see ``Authenticator.login``
        """
        return await self._authenticator.login(username, secret, address, client, code=code, road=road)

    async def issue(
        self,
        identity: Identity,
        name: str,
        limits: TokenLimits,
        actor: Actor,
        *,
        days: int | None = None,
        description: str = "",
    ) -> tuple[Token, str]:
        """
        Create a token for ``days``, at most the longest allowed. Returns it with its text, which is not stored.

        :raises Forbidden: the caller used a token, which cannot create tokens
        """
        if identity.limits is not None:
            raise Forbidden("a token makes no other tokens: log in with the password")
        text = make_token(TokenKind.PERSONAL)
        token: Token
        token, entry = await self._catalog.write(
            add_personal_token,
            owner_of(identity),
            text,
            name,
            self.ending(limits, days),
            actor,
            self._now_ms(),
            description,
        )
        self.copy_entry(entry)
        return token, text

    def ending(self, limits: TokenLimits, days: int | None = None) -> TokenLimits:
        """The limits with the expiry of a token created now."""
        life = timedelta(days=max(1, min(days or TOKEN_DAYS, self._token_max_days)))
        return evolve(limits, expires_at=datetime.fromtimestamp(self._now_ms() / 1000, UTC) + life)

    async def tokens(self, identity: Identity, *, after: int = 0, limit: int = 50) -> list[Token]:
        """The caller's valid tokens, oldest first, after the catalog key ``after``."""
        return await self._catalog.look(_working_tokens, owner_of(identity), after, limit, self._now_ms())

    async def revoke(self, identity: Identity, uid: str, actor: Actor) -> None:
        """Revoke one of the caller's tokens by public id. :raises NotFound: there is none"""
        token = await self._catalog.look(tokens.find_token_by_uid, uid)
        await self._revoke(identity, token, actor)

    async def revoke_text(self, identity: Identity, text: str, actor: Actor) -> None:
        """Revoke one of the caller's tokens by its text. :raises NotFound: there is none"""
        token = await self._catalog.look(tokens.find_token_by_hash, hash_token(text))
        await self._revoke(identity, token, actor)

    async def revoke_used(self, identity: Identity, actor: Actor) -> None:
        """Revoke the token that the caller uses. :raises NotFound: they use none"""
        token = None if identity.token_id is None else await self._catalog.look(tokens.find_token, identity.token_id)
        await self._revoke(identity, token, actor)

    async def user(self, identity: Identity) -> User:
        """The caller's account."""
        return await self._catalog.look(users.get_user, owner_of(identity))

    async def find_user(self, username: str) -> User | None:
        """The account of any user, or None."""
        return await self._catalog.look(users.find_user_by_name, username)

    def check_own_change(self, user: User, changes: Mapping[str, Any]) -> None:
        """Check a change by the user themselves. :raises Forbidden: the e-mail address is not theirs to change"""
        if not self._own_email and changes.get("email", user.email) != user.email:
            raise Forbidden("only user managers change e-mail addresses, by which people are recognised at their login")

    async def change(self, identity: Identity, changes: users.UserChanges, actor: Actor) -> User:
        """Change the caller's name or email. :raises Forbidden: see ``check_own_change``"""
        self.check_own_change(await self.user(identity), changes)
        user: User
        user, entry = await self._catalog.write(_change_user, owner_of(identity), changes, actor, self._now_ms())
        self.copy_entry(entry)
        return user

    async def change_password(self, identity: Identity, old: str, new: str, actor: Actor, code: str = "") -> None:
        """
        Change the caller's password. A token instead of the old password is refused.

        :raises AuthenticationFailed: the old password is wrong; :raises Invalid: the new one is too weak
        :raises Forbidden: the password is that of a directory
        """
        proven = await self.login(identity.username, old, actor.address, code=code)
        if proven.limits is not None or proven.user_id != identity.user_id:
            raise Forbidden("a password is changed by a person who knows it, not through a token")
        await self._catalog.look(check_password_here, owner_of(identity))
        self._passwords.check(new, username=identity.username)
        hashed = await self._passwords.hash(new)
        self.copy_entry(await self._catalog.write(_change_password, owner_of(identity), hashed, actor, self._now_ms()))

    async def _revoke(self, identity: Identity, token: Token | None, actor: Actor) -> None:
        if token is None or token.user_id != owner_of(identity):
            raise NotFound("token", "of this name")
        self.copy_entry(await self._catalog.write(_revoke_token, token, actor, self._now_ms()))


def owner_of(identity: Identity) -> int:
    """The catalog key of the caller's account. :raises AuthenticationRequired: the caller is anonymous"""
    if identity.user_id is None:
        raise AuthenticationRequired
    return identity.user_id


def check_password_here(r: Reader, user_id: int) -> None:
    """
    Check that an account has a password here. One beside that of a directory would stay when the person leaves that.

    :raises Forbidden: it has none
    """
    if not users.password_hash(r, user_id):
        raise Forbidden(
            "this account has no password here: change it where it is, at the directory of your organisation"
        )


def add_personal_token(
    tx: Transaction,
    user_id: int,
    text: str,
    name: str,
    limits: TokenLimits,
    actor: Actor,
    now_ms: int,
    description: str = "",
) -> tuple[Token, Entry]:
    """Write command: add a token of a person. Returns it with its audit row, for ``copy_entry``."""
    token = tokens.add_token(
        tx,
        user_id=user_id,
        hash=hash_token(text),
        shown=shown_part(text),
        kind=TokenKind.PERSONAL,
        name=name,
        description=description,
        limits=limits,
        created_from=actor.address,
        now_ms=now_ms,
    )
    return token, _audit(tx, "token.create", name, {"scopes": sorted(limits.scopes)}, actor, now_ms)


def _working_tokens(reader: Reader, user_id: int, after: int, limit: int, now_ms: int) -> list[Token]:
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    found: list[Token] = []
    while len(found) < limit:
        page = tokens.list_tokens(reader, user_id, after=(after,), limit=limit)
        if not page:
            break
        after = page[-1].id
        found += [
            each
            for each in page
            if each.revoked_at is None and (each.limits.expires_at is None or now < each.limits.expires_at)
        ]
    return found[:limit]


def _revoke_token(tx: Transaction, token: Token, actor: Actor, now_ms: int) -> Entry:
    tokens.revoke_token(tx, token.id, now_ms=now_ms)
    return _audit(tx, "token.revoke", token.name, {}, actor, now_ms)


def _change_user(
    tx: Transaction, user_id: int, changes: users.UserChanges, actor: Actor, now_ms: int
) -> tuple[User, Entry]:
    user = users.update_user(tx, user_id, now_ms=now_ms, **changes)
    return user, _audit(tx, "account.update", user.username, {"changed": sorted(changes)}, actor, now_ms)


def _change_password(tx: Transaction, user_id: int, hashed: str, actor: Actor, now_ms: int) -> Entry:
    users.set_password(tx, user_id, hashed, now_ms=now_ms)
    return _audit(tx, "account.password", actor.name, {}, actor, now_ms)


def _audit(tx: Transaction, action: str, object_: str, detail: Mapping[str, Any], actor: Actor, now_ms: int) -> Entry:
    entry = Entry(actor, action, object_, detail=detail)
    append_entry(tx, entry, now_ms)
    return entry


def ensure_admin(tx: Transaction, username: str, password_hash: str, *, now_ms: int) -> User | None:
    """
    Add the first admin. Returns it, or None if there are users already.

    It is never changed afterwards, whatever the configuration says: a restart must not bring back an old password.
    """
    if has_users(tx):
        return None
    return add_user(tx, username=username, password_hash=password_hash, admin=True, now_ms=now_ms)
