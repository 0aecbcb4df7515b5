"""Passwords: which ones are taken, and argon2id (RFC 9106) in threads, a few at a time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from attrs import field, frozen
from twisted.internet.defer import DeferredSemaphore

from pkgrepo.errors import Invalid, TooManyAttempts

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


def _pass() -> None:
    """Nobody counts."""


@frozen
class Verdict:
    """The outcome of a verification; ``rehashed`` is the password under today's parameters where those differ."""

    correct: bool
    rehashed: str | None = field(default=None, repr=False)


class Passwords:
    """
    Hashes and verifies passwords in a thread pool.

    ``run(function, *args)`` runs in a thread and gives an awaitable. At most ``parallel`` of them run at once, each
    with the memory that ``hasher`` takes (64 MiB unless told otherwise).
    """

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        *,
        hasher: PasswordHasher | None = None,
        parallel: int = 2,
        min_length: int = 12,
    ) -> None:
        self._run = run
        self._hasher = hasher or PasswordHasher()
        self._turns = DeferredSemaphore(parallel)
        self._waiting = 0
        self._min_length = min_length
        self._decoy = ""

    def check(self, password: str, *, username: str = "") -> None:
        """
        Whether a person may choose this password: long enough, and not one that everybody tries first.

        :raises Invalid: with the reason
        """
        if len(password) < self._min_length:
            raise Invalid(f"a password has at least {self._min_length} characters (auth.password_min)", "/password")
        plain = password.casefold()
        core = _EDGES.sub("", plain)
        if username and core == username.casefold():
            raise Invalid("the password is the user name with decoration", "/password")
        if core in _COMMON or plain in _COMMON or len(set(plain)) < _FEWEST_DISTINCT or _is_run(plain):
            raise Invalid("the password is one of the most common ones", "/password")

    async def hash(self, password: str) -> str:
        """The password's argon2id hash, in the PHC string form."""
        async with self._turn():
            text: str = await self._run(self._hasher.hash, password)
        return text

    async def verify(
        self, stored: str, password: str, *, admit: Callable[[], None] = _pass, failed: Callable[[], None] = _pass
    ) -> Verdict:
        """
        Whether the password belongs to the stored hash.

        An empty ``stored`` (no such user, or no password) is never right, and takes as long as any other. ``admit`` is
        called when the turn has come, right before the work, and what it raises is raised here; ``failed`` is called
        after a wrong password and before the next turn. So guesses that wait in the queue are counted one by one.

        :raises TooManyAttempts: too many others are waiting already
        """
        if not stored and not self._decoy:
            self._decoy = await self.hash("nobody has this password")
        async with self._turn():
            admit()
            verdict: Verdict = await self._run(self._verify, stored or self._decoy, password)
            if not stored:
                verdict = Verdict(correct=False)
            if not verdict.correct:
                failed()
        return verdict

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._waiting >= MAX_WAITING:
            raise TooManyAttempts(RETRY_S)
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._turns.release()

    def _verify(self, stored: str, password: str) -> Verdict:
        try:
            self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return Verdict(correct=False)
        if self._hasher.check_needs_rehash(stored):
            return Verdict(correct=True, rehashed=self._hasher.hash(password))
        return Verdict(correct=True)


def _is_run(text: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    return len(steps - {-9, 9}) == 1 and steps <= {1, -1, 9, -9}
