"""
The twisted.cred portal and its checkers, one for each kind of credentials; site-specific ones may be added.

A checker's avatar id is the identity. All refusals look the same, and a password for an unknown name takes as long as a
wrong password.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import evolve
from twisted.cred.checkers import AllowAnonymousAccess, ICredentialsChecker
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm, Portal
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import Interface, implementer

from pkgrepo.auth.login.credentials import (
    IPasswordCredentials,
    IProxiedCredentials,
    ISessionCredentials,
    ISignedCredentials,
    ITokenCredentials,
)
from pkgrepo.auth.login.directories import Directories
from pkgrepo.auth.login.identities import identity_of, is_valid
from pkgrepo.auth.login.passwords import Attempt, Passwords, Verdict
from pkgrepo.auth.login.second_factors import SecondFactors
from pkgrepo.auth.login.sessions import BrowserSessions
from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.auth.tokens.bearer import BearerTokens
from pkgrepo.auth.tokens.text import hash_token
from pkgrepo.concurrency.fair_semaphore import Path as QueuePath
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import ANONYMOUS, Identity, Token, User, UserKind
from pkgrepo.storage.catalog.people.linked_identities import issuers_of
from pkgrepo.storage.catalog.people.tokens import find_token, find_token_by_hash
from pkgrepo.storage.catalog.people.users import (
    find_user,
    find_user_by_name,
    find_user_by_uid,
    name_key,
    password_hash,
    record_login,
)

log = Logger()

LOGIN_RECORDED_S = 3600  # seconds between two writes of one user's last login


@implementer(ICredentialsChecker)
class _Checker:
    """A checker of the credentials in ``credentialInterfaces``."""

    credentialInterfaces: tuple[Any, ...]

    def requestAvatarId(self, credentials: Any) -> Deferred[Any]:
        """The identity, with the limits of its token. Fails with ``UnauthorizedLogin``."""
        return Deferred.fromCoroutine(self._check(credentials))

    async def _check(self, credentials: Any) -> Identity:
        raise NotImplementedError


class PasswordChecker(_Checker):
    """
    User name and password, and the code of a second factor if the account has one, with a rate limit.

    The password is that of the account here or at one of the ``directories``. It also fails with ``TooManyAttempts``,
    ``SecondFactorRequired``, ``DirectoryUnavailable``, or ``Forbidden`` for a person of a directory without an account
    here.
    """

    credentialInterfaces = (IPasswordCredentials,)

    def __init__(
        self,
        catalog: ICatalog,
        passwords: Passwords,
        throttle: Throttle,
        factors: SecondFactors,
        *,
        directories: Directories | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._catalog = catalog
        self._directories = directories
        self._passwords = passwords
        self._throttle = throttle
        self._factors = factors
        self._clock = clock

    async def _check(self, credentials: Any) -> Identity:
        account, address = name_key(credentials.username), credentials.address
        await self._throttle.admit(account, address)  # before queueing; ``begin`` checks again
        known, stored, issuers = await self._catalog.look(_read_account, credentials.username)
        asked = self._asked(credentials.username, known, stored, issuers)
        path = self._throttle.queue_path(account, address)
        begin = partial(self._throttle.begin, account, address)
        if not asked:
            verdict = await self._passwords.verify(stored, credentials.password, path=path, begin=begin)
            user = known if verdict.correct else None
        elif not stored:
            verdict = Verdict(correct=False)
            user = await self._ask(asked, credentials, path, begin)
        else:
            attempt = _LongAttempt(begin)
            try:
                verdict = await self._passwords.verify(stored, credentials.password, path=path, begin=attempt.begin)
                user = (
                    known if verdict.correct else await self._ask(asked, credentials, path, attempt.go_on, failed=True)
                )
            finally:
                attempt.close()
        if user is None:
            # do not log an unknown name: people type passwords into the wrong field
            name = known.username if known else "an unknown user"
            log.info("wrong password for {user} from {address}", user=name, address=address)
            raise UnauthorizedLogin
        if not await self._factors.check(user, credentials.code, address, enrolling=credentials.enrolling):
            log.info("wrong code of a second factor for {user} from {address}", user=user.username, address=address)
            raise UnauthorizedLogin
        self._throttle.succeeded(account, address)
        if verdict.correct:
            rehashed = None if verdict.rehashed is None else (stored, verdict.rehashed)
            await _record_login(self._catalog, user, self._clock(), rehashed)
        return identity_of(user, via="password")

    async def _ask(
        self,
        asked: Sequence[Any],
        credentials: Any,
        path: QueuePath,
        begin: Callable[[], Attempt],
        *,
        failed: bool = False,
    ) -> User | None:
        assert self._directories is not None
        name, password = credentials.username, credentials.password
        return await self._directories.log_in(asked, name, password, path=path, begin=begin, failed=failed)

    def _asked(self, username: str, user: User | None, stored: str, issuers: Sequence[str]) -> Sequence[Any]:
        if self._directories is None:
            return ()
        return self._directories.asked_for(username, user, issuers, has_password=bool(stored))


class _LongAttempt:
    """
    One attempt over two checks: it ends with the first one if that was right, else with the second one.

    A client may leave between them: after ``close`` what comes of the first one is the end.
    """

    def __init__(self, begin: Callable[[], Attempt]) -> None:
        self._begin = begin
        self._attempt: Attempt | None = None
        self._is_between = False
        self._is_closed = False

    def begin(self) -> _LongAttempt:
        """Begin it."""
        self._attempt = self._begin()
        return self

    def end(self, *, failed: bool) -> None:
        """End the first check."""
        assert self._attempt is not None
        if failed and not self._is_closed:
            self._is_between = True
        else:
            self._attempt.end(failed=failed)

    def go_on(self) -> Attempt:
        """The attempt, for the second check, which ends it."""
        assert self._attempt is not None
        self._is_between = False
        return self._attempt

    def close(self) -> None:
        """There is no second check, unless it has begun."""
        self._is_closed = True
        if self._is_between and self._attempt is not None:
            self._is_between = False
            self._attempt.end(failed=True)


class CanaryUsed(UnauthorizedLogin):
    """A wrong token that is a canary: the report needs to know ``token``, and the caller does not."""

    def __init__(self, token: Token) -> None:
        super().__init__()
        self.token = token


class TokenChecker(_Checker):
    """
    Access tokens. That a token is a canary is found by the same look-up as that there is no such token.

    There is no rate limit: 238 bits cannot be guessed, and a build with an old token must not lock out users with the
    same address.
    """

    credentialInterfaces = (ITokenCredentials,)

    def __init__(self, catalog: ICatalog, *, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._clock = clock

    async def _check(self, credentials: Any) -> Identity:
        found = await self._catalog.look(_read_token, hash_token(credentials.text), credentials.username)
        if found is None:
            raise UnauthorizedLogin
        token, owner = found
        if token.is_canary and is_valid(token, self._clock()):
            raise CanaryUsed(token)
        if owner is None or token.is_canary or not owner.active or not is_valid(token, self._clock()):
            raise UnauthorizedLogin
        return identity_of(owner, via="token", token=token)


class SignedChecker(_Checker):
    """Bearer tokens of the token service, checked against the current state of user and access token."""

    credentialInterfaces = (ISignedCredentials,)

    def __init__(self, catalog: ICatalog, bearer: BearerTokens, *, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._bearer = bearer
        self._clock = clock

    async def _check(self, credentials: Any) -> Identity:
        claims = self._bearer.read(credentials.text)
        if not claims.user_uid:
            return Identity(via="bearer", limits=claims.limits, scoped=claims.scoped)
        user, token = await self._catalog.look(_read_bearer, claims.user_uid, claims.token_id)
        if user is None or not user.active or user.generation != claims.generation:
            raise UnauthorizedLogin
        limits = claims.limits
        if claims.token_id is not None:
            if token is None or token.user_id != user.id or not is_valid(token, self._clock()):
                raise UnauthorizedLogin
            if claims.scoped:
                limits = evolve(limits, cidrs=token.limits.cidrs)
            else:
                limits = evolve(token.limits, expires_at=limits.expires_at)
        return evolve(identity_of(user, via="bearer", token=token), limits=limits, scoped=claims.scoped)


class SessionChecker(_Checker):
    """Secrets of browser sessions. They have 256 random bits, so there is no rate limit."""

    credentialInterfaces = (ISessionCredentials,)

    def __init__(self, sessions: BrowserSessions) -> None:
        self._sessions = sessions

    async def _check(self, credentials: Any) -> Identity:
        identity = await self._sessions.find(credentials.secret)
        if identity is None:
            raise UnauthorizedLogin
        return identity


class ProxiedChecker(_Checker):
    """Names of users whom a trusted reverse proxy has authenticated: the accounts of people, which must exist."""

    credentialInterfaces = (IProxiedCredentials,)

    def __init__(self, catalog: ICatalog, *, clock: Callable[[], float] = time.time) -> None:
        self._catalog = catalog
        self._clock = clock

    async def _check(self, credentials: Any) -> Identity:
        user: User | None = await self._catalog.look(find_user_by_name, credentials.username)
        if user is None or not user.active or user.kind is not UserKind.PERSON:
            log.info("a trusted proxy names a user without an active account")
            raise UnauthorizedLogin
        await _record_login(self._catalog, user, self._clock(), None)
        return identity_of(user, via="proxy")


async def _record_login(catalog: ICatalog, user: User, now_s: float, rehashed: tuple[str, str] | None) -> None:
    """Record a login, unless one was recorded recently and the hash stays; see the command of that name."""
    recent = user.last_login_at is not None and now_s - user.last_login_at.timestamp() < LOGIN_RECORDED_S
    if recent and rehashed is None:
        return
    # a full disk must not prevent logins; a later login is recorded instead
    with suppress(StorageFull, StorageFailed):
        await catalog.write(record_login, user.id, now_ms=int(now_s * 1000), rehashed=rehashed)


def _read_account(r: Reader, username: str) -> tuple[User | None, str, list[str]]:
    """A user, the stored password hash, and the issuers of the links; each may be missing."""
    user = find_user_by_name(r, username)
    if user is None:
        return None, "", []
    # an inactive user has no hash here: the rate limit must not reveal whether the password is right
    return user, password_hash(r, user.id) if user.active else "", issuers_of(r, user.id)


def _read_token(r: Reader, hash: bytes, username: str) -> tuple[Token, User | None] | None:
    """A token with its owner; None if there is none, or if it came with another user's name. A canary needs neither."""
    token = find_token_by_hash(r, hash)
    if token is not None and token.is_canary:
        return token, None
    owner = None if token is None else find_user(r, token.user_id)
    if token is None or owner is None:
        return None
    if username and name_key(username) != owner.key and find_user_by_name(r, username) is not None:
        return None  # any other text is allowed, but another user's name would hide who acts
    return token, owner


def _read_bearer(r: Reader, user_uid: str, token_id: int | None) -> tuple[User | None, Token | None]:
    """The user of a bearer token, and the access token behind it, if any."""
    return find_user_by_uid(r, user_uid), None if token_id is None else find_token(r, token_id)


class IIdentity(Interface):
    """The avatar interface: a L{pkgrepo.model.Identity}."""


@implementer(IRealm)
class IdentityRealm:
    """
    Maps avatar ids to identities.

    Our checkers return identities. Any other cred checker returns a user name in bytes, whose user must exist here. The
    empty tuple is cred's id of an anonymous user.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog

    def requestAvatar(self, avatarId: Any, mind: Any, *interfaces: Any) -> Deferred[tuple[Any, object, Any]]:  # noqa: ARG002 - cred asks so
        """The identity with its interface; logout does nothing."""
        if IIdentity not in interfaces:
            raise NotImplementedError("only identities live here")
        return Deferred.fromCoroutine(self._avatar(avatarId))

    async def _avatar(self, avatar_id: Any) -> tuple[Any, object, Any]:
        return IIdentity, await self._identity(avatar_id), _nothing

    async def _identity(self, avatar_id: Any) -> Identity:
        if isinstance(avatar_id, Identity):
            return avatar_id
        if avatar_id == ():
            return ANONYMOUS
        user = await self._catalog.look(find_user_by_name, avatar_id.decode())
        if user is None or not user.active:
            raise UnauthorizedLogin
        return identity_of(user, via="password")


def make_portal(catalog: ICatalog, checkers: Iterable[ICredentialsChecker]) -> Portal:
    """A portal with these checkers and one for anonymous access."""
    return Portal(IdentityRealm(catalog), [*checkers, AllowAnonymousAccess()])


def _nothing() -> None:
    """Logout: nothing to do, an identity ends with its request."""
