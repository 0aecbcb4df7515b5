"""
Authorization headers to identities.

==================  =========================================================================================
a header that       is answered
==================  =========================================================================================
was verified a      from memory (``recall``), in microseconds, without a coroutine
moment ago
is being verified   together with the request that came first: one argon2 run however many connections a
                    client opens; none, when all of them are closed before its turn comes
is new              by the checkers behind the portal
==================  =========================================================================================

What is remembered is forgotten after a minute, when its token expires, and all at once when the identity serial moves
(in any process). Keys of the memory are keyed digests, so that it holds no secret.
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

from pkgrepo.auth.identity_serial import IdentitySerial
from pkgrepo.auth.tokens.limits import address_allowed
from pkgrepo.auth.tokens.uses import TokenUses
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.interfaces import IAuthenticator, ICatalog
from pkgrepo.model import ANONYMOUS, Identity

from .credentials import Credentials, PasswordCredentials, named_secret, parse_authorization
from .realm import IIdentity

REMEMBERED_S = 60  # seconds
REMEMBERED = 10_000  # headers; some 5 MB


@frozen
class _Remembered:
    identity: Identity
    until: float


@implementer(IAuthenticator)
class Authenticator:
    """Who is asking. ``clock`` tells seconds since the epoch."""

    def __init__(
        self, catalog: ICatalog, portal: Portal, uses: TokenUses, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._portal = portal
        self._uses = uses
        self._clock = clock
        self._watch = IdentitySerial(catalog)
        self._serial: int | None = None
        self._key = secrets.token_bytes(32)
        self._remembered: dict[bytes, _Remembered] = {}
        self._flight: SingleFlight[tuple[bytes, str], Identity] = SingleFlight(cancel_unawaited=True)

    def recall(self, header: bytes | None, address: str = "") -> Identity | None:
        """
        The identity behind a header that was verified a moment ago (None: anonymous), without waiting; else None.

        Tokens that are bound to addresses are only recalled for an ``address`` of theirs.
        """
        if header is None:
            return ANONYMOUS
        serial = self._watch.now()
        if serial is None:
            return None
        self._be_of(serial)
        digest = self._digest(header)
        found = self._remembered.get(digest)
        if found is None:
            return None
        if self._clock() >= found.until:
            del self._remembered[digest]
            return None
        identity = found.identity
        if identity.limits is not None and not address_allowed(identity.limits, address):
            return None
        if identity.token_id is not None:
            self._uses.note(identity.token_id)
        return identity

    async def authenticate(
        self, header: bytes | None, address: str, client: str = "", *, counted: bool = True
    ) -> Identity:
        """
        The identity behind an Authorization header (None: anonymous) from an address; ``client`` is its User-Agent.

        It is ``counted`` as a use of the token, unless the same request is asked about again.

        :raises AuthenticationFailed: wrong credentials, or from an address that their token does not allow
        :raises TooManyAttempts: too many wrong passwords lately
        """
        if header is None:
            return ANONYMOUS
        digest = self._digest(header)
        serial = await self._watch.current()
        self._be_of(serial)
        found = self._remembered.get(digest)
        if found is not None and self._clock() < found.until:
            return self._enter(found.identity, address, client, counted=counted)
        identity = await self._establish(parse_authorization(header, address), (digest, address))
        identity = self._enter(identity, address, client, counted=counted)
        self._remember(digest, identity, serial)
        return identity

    async def login(self, username: str, secret: str, address: str, client: str = "") -> Identity:
        """
        The identity behind a name and a password (or access token) that came in a form.

        :raises AuthenticationFailed, TooManyAttempts: see ``authenticate``
        """
        credentials = named_secret(username, secret, address)
        digest = self._digest(f"{username}\0{secret}".encode())
        return self._enter(await self._establish(credentials, (digest, address)), address, client)

    async def _establish(self, credentials: Credentials, flight: tuple[bytes, str]) -> Identity:
        if not isinstance(credentials, PasswordCredentials):
            return await self._ask(credentials)
        return await self._flight.run(flight, lambda: self._ask(credentials))

    async def _ask(self, credentials: Credentials) -> Identity:
        try:
            _, identity, _ = await self._portal.login(credentials, None, IIdentity)
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

    def _remember(self, digest: bytes, identity: Identity, serial: int) -> None:
        # What was found may be older than what moved the serial while the password was checked. A move that is not
        # noticed yet does no harm: the memory is emptied when it is, before anything is recalled from it.
        if self._serial != serial:
            return
        until = self._clock() + REMEMBERED_S
        limits = identity.limits
        if limits is not None and limits.expires_at is not None:
            until = min(until, limits.expires_at.timestamp())
        while len(self._remembered) >= REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = _Remembered(identity, until)

    def _be_of(self, serial: int) -> None:
        """Forget what is remembered of another serial."""
        if serial != self._serial:
            self._remembered.clear()
            self._serial = serial

    def _digest(self, header: bytes) -> bytes:
        # keyed BLAKE2 (RFC 7693 2.9) is a MAC at a third of the cost of HMAC-SHA-256
        return hashlib.blake2b(header, key=self._key, digest_size=16).digest()
