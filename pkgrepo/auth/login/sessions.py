"""
Browser sessions: begun by a login form, continued by a cookie.

=========  ==========================================================================================================
secret     256 random bits, only in the cookie; the catalog has its sha256
CSRF       a value that is computed from the secret; a change must repeat it in a header or a form field, which a page
           of another site cannot read
end        after ``idle`` without use, ``longest`` after the login, with the password, or when the user ends it
=========  ==========================================================================================================
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from pkgrepo.errors import AuthenticationRequired, StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Identity, User
from pkgrepo.storage.catalog.people.logins import (
    Session,
    add_session,
    find_session,
    note_session_use,
    remove_old_sessions,
)
from pkgrepo.storage.catalog.people.users import find_user

from .identities import identity_of

LONGEST: Final = timedelta(days=7)
USE_RECORDED_S: Final = 300  # seconds between two writes of one session's last use
MAX_CLIENT: Final = 200  # characters of a User-Agent stored
SECRET_LENGTH: Final = 43  # characters of base64url for 32 bytes


class BrowserSessions:
    """
    Begins and finds sessions. ``clock`` returns seconds since the epoch.

    A user for whom ``refused`` is true has no session that began with a password, such as one who must have a second
    factor and has none.
    """

    def __init__(
        self,
        catalog: ICatalog,
        *,
        idle: timedelta,
        longest: timedelta = LONGEST,
        clock: Callable[[], float] = time.time,
        refused: Callable[[User], bool] = lambda _user: False,
    ) -> None:
        self._catalog = catalog
        self._refused = refused
        self._idle_s = idle.total_seconds()
        self._longest_s = longest.total_seconds()
        self._clock = clock

    @property
    def longest_s(self) -> int:
        """The longest time that a session lasts, in seconds."""
        return int(self._longest_s)

    async def begin(
        self,
        identity: Identity,
        address: str,
        client: str,
        *,
        linked_id: int | None = None,
        sid: str = "",
        passkey_id: int | None = None,
        before: bytes | None = None,
    ) -> bytes:
        """
        Begin a session of a user who has just logged in, and return its secret.

        ``linked_id`` and ``sid`` tell of a login at a provider, ``passkey_id`` of one with a passkey, see
        ``add_session``. The session of the browser ``before`` the login, by its secret, ends.

        :raises AuthenticationRequired: the identity has no user
        """
        if identity.user_id is None:
            raise AuthenticationRequired
        secret = secrets.token_urlsafe(32).encode("ascii")
        await self._catalog.write(
            add_session,
            user_id=identity.user_id,
            hash=_hash(secret),
            address=address,
            client=client[:MAX_CLIENT],
            now_ms=self._now_ms(),
            linked_id=linked_id,
            sid=sid,
            passkey_id=passkey_id,
            before=None if before is None else _hash(before),
        )
        return secret

    async def find(self, secret: bytes) -> Identity | None:
        """The identity of the session with this secret; None if there is none, or it has ended."""
        if len(secret) != SECRET_LENGTH:
            return None
        session, user = await self._catalog.look(_read, _hash(secret))
        now = self._clock()
        if session is None or user is None or not user.active or self._ended(session, now):
            return None
        by_password = session.linked_id is None and session.passkey_id is None
        if by_password and self._refused(user):  # what else a provider asks for is its own matter
            return None
        if now - session.seen_at.timestamp() > USE_RECORDED_S:
            # a full disk must not end sessions
            with suppress(StorageFull, StorageFailed):
                await self._catalog.write(note_session_use, session.id, now_ms=self._now_ms())
        return identity_of(user, via="session", session_id=session.id)

    async def remove_old(self) -> None:
        """Remove the sessions that have ended by age."""
        now_ms = self._now_ms()
        await self._catalog.write(
            remove_old_sessions,
            idle_since_ms=now_ms - int(self._idle_s * 1000),
            begun_before_ms=now_ms - int(self._longest_s * 1000),
        )

    def _ended(self, session: Session, now: float) -> bool:
        idle, age = now - session.seen_at.timestamp(), now - session.created_at.timestamp()
        return idle > self._idle_s or age > self._longest_s

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def csrf_of(secret: bytes) -> str:
    """The value that changes must repeat, for a session's secret."""
    return hmac.new(secret, b"csrf", hashlib.sha256).hexdigest()


def is_csrf(secret: bytes, given: str) -> bool:
    """Whether a request repeats the right value; takes the same time for every wrong one."""
    return hmac.compare_digest(csrf_of(secret).encode(), given.encode("utf-8", "replace"))


def _hash(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _read(reader: Reader, hash: bytes) -> tuple[Session | None, User | None]:
    session = find_session(reader, hash)
    return session, None if session is None else find_user(reader, session.user_id)
