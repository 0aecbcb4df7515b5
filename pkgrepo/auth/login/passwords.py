"""Passwords: which ones are taken, and argon2id (RFC 9106) in threads, a few at a time."""

from __future__ import annotations

import re
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Protocol, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION
from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.permits import Path, Permits, QueueFull
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid, TooManyAttempts

T = TypeVar("T")

MAX_WAITING = 256  # verifications; at 50 ms each on two cores the last one waits some six seconds
RETRY_S = 5  # seconds until the queue has surely moved

# What people put between digits and signs to reach the length, and the runs of keys that reach it alone.
_COMMON_TEXT = """
admin administrator letmein welcome iloveyou monkey dragon football baseball sunshine princess master shadow
superman batman trustno secret changeme default guest login access hello whatever starwars pokemon computer
internet samsung google
password passw0rd p@ssw0rd p@ssword passwort motdepasse contraseña passwordpassword
qwerty qwertz azerty qwertyuiop qwertzuiop azertyuiop asdfghjkl zxcvbnm qwertyuiopasdfghjkl qazwsx qazwsxedc
abc abcd abcdef abcdefgh abcdefghijkl correcthorsebatterystaple registry pkgrepo
"""
_COMMON = frozenset(_COMMON_TEXT.split())
_EDGES = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_FEWEST_DISTINCT = 5  # characters; "aaaaaaaaaaaa" and "121212121212" have fewer


# Who waits for a new hash, beside those who wait for verifications (see L{Throttle.queue_path}).
_HASHING = ("hash",)


class Attempt(Protocol):
    """A verification under way, for whoever counts them."""

    def end(self, *, failed: bool) -> None:
        """It is over; ``failed`` when the password was wrong."""


class _Uncounted:
    """An attempt that nobody counts."""

    def end(self, *, failed: bool) -> None:
        """Nothing."""


@frozen
class Verdict:
    """The outcome of a verification; ``rehashed`` is the password under today's parameters where those differ."""

    correct: bool
    rehashed: str | None = field(default=None, repr=False)


class Passwords:
    """
    Hashes and verifies passwords in a thread pool.

    ``run(function, *args)`` runs in a thread and gives an awaitable. At most ``parallel`` of them run at once, each
    with the memory that ``hasher`` takes (64 MiB unless told otherwise); the others wait in a fair queue.
    """

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        reactor: IReactorTime,
        *,
        hasher: PasswordHasher | None = None,
        parallel: int = 2,
        min_length: int = 12,
    ) -> None:
        self._run = run
        self._hasher = hasher or PasswordHasher()
        self._permits = Permits(parallel, reactor, most_waiting=MAX_WAITING)
        self._min_length = min_length
        self._decoy = _decoy(self._hasher)

    def check(self, password: str, *, username: str = "") -> None:
        """L{check_password} with the length that the settings ask for."""
        check_password(password, username=username, min_length=self._min_length)

    async def hash(self, password: str) -> str:
        """The password's argon2id hash, in the PHC string form. :raises TooManyAttempts: too many wait already"""
        text: str = await self._in_turn(_HASHING, lambda: self._run(self._hasher.hash, password))
        return text

    async def verify(
        self, stored: str, password: str, *, path: Path = ("",), begin: Callable[[], Attempt] = _Uncounted
    ) -> Verdict:
        """
        Whether the password belongs to the stored hash.

        An empty ``stored`` (no such user, or no password) is never right, and takes as long as any other. ``path`` is
        the caller's place in the queue. ``begin`` is called when the turn has come, right before the work, and what it
        raises is raised here; the attempt that it gives is ended before the next turn. So guesses that wait in the
        queue are counted one by one. Who leaves the queue has made no attempt; who leaves later has.

        :raises TooManyAttempts: too many others are waiting already
        """
        return await self._in_turn(path, lambda: self._attempt(begin(), stored, password))

    async def _attempt(self, attempt: Attempt, stored: str, password: str) -> Verdict:
        wrong = False
        try:
            verdict: Verdict = await self._run(self._verify, stored or self._decoy, password)
            if not stored:
                verdict = Verdict(correct=False)
            wrong = not verdict.correct
        finally:
            attempt.end(failed=wrong)
        return verdict

    async def _in_turn(self, path: Path, start: Callable[[], Awaitable[T]]) -> T:
        """
        The result of the work that is started once there is a permit; it may be refused then.

        The permit is kept until the work ends, also when the caller leaves: a thread cannot be broken off.
        """

        async def run(work: Awaitable[T]) -> T:
            try:
                return await work
            finally:
                self._permits.release()

        try:
            await self._permits.acquire(path)
        except QueueFull:
            raise TooManyAttempts(RETRY_S) from None
        try:
            work = start()
        except BaseException:
            self._permits.release()
            raise
        return await shield(run(work))

    def _verify(self, stored: str, password: str) -> Verdict:
        try:
            self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return Verdict(correct=False)
        if self._hasher.check_needs_rehash(stored):
            return Verdict(correct=True, rehashed=self._hasher.hash(password))
        return Verdict(correct=True)


def check_password(password: str, *, username: str = "", min_length: int) -> None:
    """
    Whether a person may choose this password: long enough (in characters), and not one that everybody tries first.

    :raises Invalid: with the reason
    """
    if len(password) < min_length:
        raise Invalid(f"a password has at least {min_length} characters (auth.password_min)", "/password")
    plain = password.casefold()
    core = _EDGES.sub("", plain)
    if username and core == username.casefold():
        raise Invalid("the password is the user name with decoration", "/password")
    if core in _COMMON or plain in _COMMON or len(set(plain)) < _FEWEST_DISTINCT or _is_run(plain):
        raise Invalid("the password is one of the most common ones", "/password")


def _decoy(hasher: PasswordHasher) -> str:
    """A hash that nobody has the password of, and that takes as long to verify as any; made without hashing."""
    salt, digest = (
        b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${cost}${salt}${digest}"


def _is_run(text: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    return len(steps - {-9, 9}) == 1 and steps <= {1, -1, 9, -9}
