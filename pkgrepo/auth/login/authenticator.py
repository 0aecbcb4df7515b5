"""
Finds the identity behind an Authorization header.

==================  =========================================================================================
header              source of the identity
==================  =========================================================================================
verified recently   the cache (``recall``), in microseconds, without a coroutine
being verified      the verification in progress: one argon2 run for all connections of a client; none if all
                    of them are closed while it is queued
new                 the checkers behind the portal
==================  =========================================================================================

A cache entry ends after a minute or when its token expires; all entries end when the identity serial moves (in any
process). Keys of the cache are keyed digests, so that it holds no secret.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

from attrs import frozen
from twisted.cred.error import LoginFailed
from twisted.cred.portal import Portal
from zope.interface import implementer

from pkgrepo.auth.login.checkers import CanaryUsed, IIdentity
from pkgrepo.auth.tokens.limits import address_allowed
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.interfaces import IAuthenticator, ICatalog
from pkgrepo.model import ANONYMOUS, Identity, Token
from pkgrepo.storage.catalog.people.users import identity_snapshot
from pkgrepo.storage.catalog.snapshot import Snapshot

from .credentials import Credentials, PasswordCredentials, named_secret, parse_authorization

CACHED_S = 60  # seconds
MOST_CACHED = 10_000  # headers; about 5 MB

OnCanary = Callable[[Token, str, str, str], None]  # the token, the address, the User-Agent, the road


@frozen
class _CacheEntry:
    identity: Identity
    until: float


@implementer(IAuthenticator)
class Authenticator:
    """
    Authenticates requests.

    ``on_canary`` is told of each use of a canary token. ``clock`` returns seconds since the epoch. The cache is cleared
    when the identity ``serial`` moves.
    """

    def __init__(
        self,
        catalog: ICatalog,
        portal: Portal,
        uses: TokenUses,
        *,
        on_canary: OnCanary = lambda *_: None,
        clock: Callable[[], float] = time.time,
        most_cached: int = MOST_CACHED,
        serial: Snapshot[int] | None = None,
    ) -> None:
        self._most_cached = most_cached
        self._portal = portal
        self._uses = uses
        self._on_canary = on_canary
        self._clock = clock
        self._identity_serial = serial or identity_snapshot(catalog)
        self._serial: int | None = None
        self._key = secrets.token_bytes(32)
        self._cache: dict[bytes, _CacheEntry] = {}
        self._flight: SingleFlight[tuple[bytes, str], Identity] = SingleFlight(cancel_unawaited=True)

    def recall(self, header: bytes | None, address: str = "") -> Identity | None:
        """
        The identity behind a recently verified header (no header: anonymous), from the cache; None if it is not there.

        The identity of a token with allowed addresses is returned only for such an ``address``.
        """
        if header is None:
            return ANONYMOUS
        if not self._identity_serial.refresh_now():
            return None
        self._use_serial()
        digest = self._digest(header)
        found = self._cache.get(digest)
        if found is None:
            return None
        if self._clock() >= found.until:
            del self._cache[digest]
            return None
        identity = found.identity
        if identity.limits is not None and not address_allowed(identity.limits, address):
            return None
        self.count_use(identity)
        return identity

    def count_use(self, identity: Identity) -> None:
        """Count a further use of the token behind an identity that ``recall`` has returned, if there is one."""
        if identity.token_id is not None:
            self._uses.note(identity.token_id)

    async def authenticate(
        self,
        header: bytes | None,
        address: str,
        client: str = "",
        *,
        counted: bool = True,
        code: str = "",
        road: str = "",
    ) -> Identity:
        """
        The identity behind an Authorization header (None: anonymous) from an address; ``client`` is its User-Agent.
        ``road`` are the method and the path, for the report on a canary token.

        ``counted`` records a use of the token; pass False when the same request is authenticated again. ``code`` is
        that of a second factor: what it was needed for is not cached.

        :raises AuthenticationFailed: wrong credentials, or the token does not allow the address
        :raises TooManyAttempts: too many wrong passwords recently
        """
        if header is None:
            return ANONYMOUS
        digest = self._digest(header)
        await self._identity_serial.refresh()
        serial = self._use_serial()
        found = self._cache.get(digest)
        if found is not None and self._clock() < found.until:
            return self._enter(found.identity, address, client, counted=counted)
        credentials = parse_authorization(header, address, code)
        identity = await self._verify(credentials, (digest, address), self._reporter(address, client, road))
        identity = self._enter(identity, address, client, counted=counted)
        if not code:
            self._put(digest, identity, serial)
        return identity

    async def login(
        self,
        username: str,
        secret: str,
        address: str,
        client: str = "",
        *,
        code: str = "",
        enrolling: bool = False,
        road: str = "a form",
    ) -> Identity:
        """
        The identity for a name and a password or access token from a form; for the others see L{PasswordCredentials}.

        :raises AuthenticationFailed, TooManyAttempts: see ``authenticate``
        """
        credentials = named_secret(username, secret, address, code, enrolling=enrolling)
        digest = self._digest(f"{username}\0{secret}".encode())
        report = self._reporter(address, client, road)
        return self._enter(await self._verify(credentials, (digest, address), report), address, client)

    def _reporter(self, address: str, client: str, road: str) -> Callable[[Token], None]:
        def report(token: Token) -> None:
            self._uses.note(token.id, address, client)
            self._on_canary(token, address, client, road)

        return report

    async def _verify(
        self, credentials: Credentials, flight: tuple[bytes, str], report: Callable[[Token], None]
    ) -> Identity:
        if not isinstance(credentials, PasswordCredentials) or credentials.code or credentials.enrolling:
            return await self._log_in(credentials, report)  # a code counts once
        return await self._flight.run(flight, lambda: self._log_in(credentials, report))

    async def _log_in(self, credentials: Credentials, report: Callable[[Token], None]) -> Identity:
        try:
            _, identity, _ = await self._portal.login(credentials, None, IIdentity)
        except CanaryUsed as used:
            report(used.token)
            raise AuthenticationFailed from None
        except LoginFailed:
            raise AuthenticationFailed from None
        assert isinstance(identity, Identity)
        return identity

    def _enter(self, identity: Identity, address: str, client: str, *, counted: bool = True) -> Identity:
        if identity.limits is not None and not address_allowed(identity.limits, address):
            raise AuthenticationFailed
        if counted and identity.token_id is not None:
            self._uses.note(identity.token_id, address, client)
        return identity

    def _put(self, digest: bytes, identity: Identity, serial: int) -> None:
        # If the serial moved during the verification, the result may be outdated. A move that is not detected yet is
        # harmless: the cache is cleared when it is detected, before anything is read from it.
        if self._serial != serial:
            return
        until = self._clock() + CACHED_S
        limits = identity.limits
        if limits is not None and limits.expires_at is not None:
            until = min(until, limits.expires_at.timestamp())
        while len(self._cache) >= self._most_cached:
            del self._cache[next(iter(self._cache))]
        self._cache[digest] = _CacheEntry(identity, until)

    def _use_serial(self) -> int:
        """Clear the cache if it is of another serial than the present one. Returns that."""
        serial = self._identity_serial.value
        if serial != self._serial:
            self._cache.clear()
            self._serial = serial
        return serial

    def _digest(self, header: bytes) -> bytes:
        # keyed BLAKE2 (RFC 7693 2.9) is a MAC at a third of the cost of HMAC-SHA-256
        return hashlib.blake2b(header, key=self._key, digest_size=16).digest()
