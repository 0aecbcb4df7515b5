"""
Password policy, and argon2id hashing (RFC 9106) in a thread pool with a bounded, fair queue.

The threads have a lower priority than those that serve requests, and few run in the whole server: its workers share
permits, which are locks of single bytes of one file (``F_OFD_SETLKW``, fcntl(2)); the kernel releases those of a
process that ends. A thread waits for a permit behind the fair queue of its own process.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import secrets
import string
import struct
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EAGAIN
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import get_native_id
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION
from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.fair_semaphore import Path as QueuePath
from pkgrepo.concurrency.pools import Pool
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Invalid, TooManyAttempts
from pkgrepo.small_files import OWNER_ONLY, tighten

P = ParamSpec("P")

PERMITS: Final = 2  # verifications at a time, each with 64 MiB of memory and, for 50 ms, several cores
NICE: Final = 10  # argon2's own threads have it, too: eight of them leave a core to one thread that serves
_FLOCK: Final = "hhqqi4x"  # struct flock: type, whence, start, length, process

T = TypeVar("T")
MAX_WAITING = 256  # verifications; at 50 ms each on two cores the last one waits about six seconds
RETRY_S = 5  # seconds, for Retry-After: the queue is shorter by then
# Common passwords: as they are, or with digits and signs around them.
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
GENERATED_LENGTH = 24  # characters; 142 bits
# The queue path of new hashes, besides those of verifications (see L{Throttle.queue_path}).
_HASHING = ("hash",)


class HashingThreads:
    """Calls a function in one of the threads; with ``permits``, the path of a file, at most two in all processes."""

    def __init__(self, pool: Pool, permits: Path | None) -> None:
        self._pool = pool
        self._permits = permits

    def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Deferred[T]:
        """The result of the function."""
        return self._pool(self._call, partial(function, *args, **kwargs))

    def _call(self, function: Callable[[], T]) -> T:
        with suppress(OSError):  # forbidden by some sandboxes
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICE)
        if self._permits is None:
            return function()
        with hold_permit(self._permits):
            return function()


@contextmanager
def hold_permit(path: Path) -> Iterator[None]:
    """Hold a permit during the block; waits for it first. Blocks. Where locks cannot be had it does not wait."""
    try:
        tighten(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)
    except OSError:  # no descriptor is left, or the disk is full
        yield
        return
    try:
        with suppress(OSError):
            if not any(_try_lock(descriptor, number) for number in range(PERMITS)):
                _lock(descriptor, fcntl.F_OFD_SETLKW, random.randrange(PERMITS))  # noqa: S311 - no secret
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, number: int) -> bool:
    try:
        _lock(descriptor, fcntl.F_OFD_SETLK, number)
    except OSError as error:
        if error.errno in (EACCES, EAGAIN):
            return False
        raise
    return True


def _lock(descriptor: int, command: int, number: int) -> Any:
    return fcntl.fcntl(descriptor, command, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, number, 1, 0))


def generate_password() -> str:
    """A new password of letters and digits only: no program takes it for an option, and no shell changes it."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(GENERATED_LENGTH))


class Attempt(Protocol):
    """A verification in progress, as the throttle counts it."""

    def end(self, *, failed: bool) -> None:
        """End the attempt; ``failed`` if the password was wrong."""


class _Uncounted:
    """An attempt that is not counted."""

    def end(self, *, failed: bool) -> None:
        """Do nothing."""


@frozen
class Verdict:
    """The result of a verification; ``rehashed`` is a new hash if the stored one has old parameters."""

    correct: bool
    rehashed: str | None = field(default=None, repr=False)


class Passwords:
    """
    Hashes and verifies passwords in a thread pool.

    ``run(function, *args)`` runs a function in a thread and returns an awaitable. At most ``parallel`` run at once,
    each with the memory of ``hasher`` (64 MiB by default); the others wait in a fair queue.
    """

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        reactor: IReactorTime,
        *,
        hasher: PasswordHasher | None = None,
        parallel: int = 2,
        min_length: int = 12,
        most_waiting: int = MAX_WAITING,
    ) -> None:
        self._run = run
        self._hasher = hasher or PasswordHasher()
        self._semaphore = FairSemaphore(parallel, reactor, most_waiting=most_waiting)
        self._min_length = min_length
        self._decoy = _decoy(self._hasher)

    def check(self, password: str, *, username: str = "") -> None:
        """L{check_password} with the configured minimum length."""
        check_password(password, username=username, min_length=self._min_length)

    async def hash(self, password: str) -> str:
        """The argon2id hash as a PHC string. :raises TooManyAttempts: the queue is full"""
        text: str = await self._with_permit(_HASHING, lambda: self._run(self._hasher.hash, password))
        return text

    async def verify(
        self, stored: str, password: str, *, path: QueuePath = ("",), begin: Callable[[], Attempt] = _Uncounted
    ) -> Verdict:
        """
        Verify a password against the stored hash.

        An empty ``stored`` (no such user, or no password) always fails and takes as long as any other. ``path`` is the
        caller's queue path. ``begin`` is called when a permit is granted, right before the verification; its errors
        are raised here. Its attempt is ended before the next permit is granted, so that queued guesses are counted one
        by one. A caller cancelled in the queue made no attempt; a caller cancelled later did.

        :raises TooManyAttempts: the queue is full
        """
        return await self._with_permit(path, lambda: self._attempt(begin(), stored, password))

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

    async def _with_permit(self, path: QueuePath, start: Callable[[], Awaitable[T]]) -> T:
        """
        Call ``start`` once a permit is granted, and return the result of its work. ``start`` may raise.

        The permit is held until the work ends, also if the caller is cancelled: a thread cannot be interrupted.
        """

        async def run(work: Awaitable[T]) -> T:
            try:
                return await work
            finally:
                self._semaphore.release()

        try:
            await self._semaphore.acquire(path)
        except QueueFull:
            raise TooManyAttempts(RETRY_S) from None
        try:
            work = start()
        except BaseException:
            self._semaphore.release()
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
    Check a new password: long enough (in characters) and not a common one.

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
    """A hash without a password that takes as long to verify as a real one; made without hashing."""
    salt, digest = (
        b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len)
    )
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${cost}${salt}${digest}"


def _is_run(text: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    return len(steps - {-9, 9}) == 1 and steps <= {1, -1, 9, -9}
