"""
Rate limit of password guesses.

Failures are counted per address (of IPv6: per network of 64 bits) and per account. A key may have a few failures within
a window. The next failure blocks it for the length of the window, and each further block is twice as long, up to a
limit. An hour without failures resets the key.

An attempt in progress counts as a possible failure: a key never has more attempts in progress than failures left.

Several processes of one server tell each other their failures and logins, so that each counts those of all.
The attempts in progress of each count for themselves.

Failing in the name of a user does not lock them out: an address from which the account logged in recently is counted as
a pair with that account, separately from other failures.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from attrs import Factory, define, frozen

from pkgrepo.errors import TooManyAttempts
from pkgrepo.interfaces import NOT_NOW, ICatalog
from pkgrepo.storage.catalog.people.logins import LoginUnlock, unlocks_after
from pkgrepo.untrusted.networks import client_network, networks_of

WINDOW_S = 60.0
MAX_BLOCK_S = 900.0  # seconds; guessing is hopeless, and the owner of the account can still wait
FORGET_S = 3600.0
TRUST_S = 24 * 3600.0  # seconds after a login for which the address is trusted for the account
MAX_KEYS = 50_000  # at most about 10 MB, from however many addresses
IN_PROGRESS_S = 1  # seconds, for Retry-After when attempts in progress use up the failures left

Key = tuple[str, str]


@define
class _Record:
    failures: list[float] = Factory(list)
    blocks: int = 0
    blocked_until: float = 0.0
    last: float = 0.0


@frozen(eq=False)
class Attempt:
    """An attempt in progress; ``end`` must be called once, also if the result is not known."""

    keys: tuple[Key, ...]
    _throttle: Throttle

    def end(self, *, failed: bool) -> None:
        """End the attempt; ``failed`` if the password was wrong."""
        self._throttle._end(self.keys, failed=failed)  # noqa: SLF001 - both classes are one mechanism


class NewUnlocks:
    """Returns the unlocks added since the last call; ``seen`` is the id of the newest one that is not new."""

    def __init__(self, catalog: ICatalog, seen: int) -> None:
        self._catalog = catalog
        self._seen = seen

    def now(self) -> Sequence[LoginUnlock]:
        """The new unlocks, oldest first, from a catalog that answers at once; none from another."""
        found = self._catalog.peek(unlocks_after, self._seen)
        return () if found is NOT_NOW else self._new(found)

    async def read(self) -> Sequence[LoginUnlock]:
        """The new unlocks, oldest first."""
        return self._new(await self._catalog.look(unlocks_after, self._seen))

    def _new(self, found: Sequence[LoginUnlock]) -> Sequence[LoginUnlock]:
        new = [each for each in found if each.id > self._seen]  # others may have asked at the same time
        if new:
            self._seen = new[-1].id
        return new


class Throttle:
    """
    Blocks a key after ``limit`` failures in a window; ``clock`` returns monotonic seconds.

    ``unlocks`` are read before a block is reported. ``on_failure`` and ``on_login`` tell other processes what happened
    here; L{hear_failure} and L{add_login} count what happened there.
    """

    def __init__(
        self,
        *,
        limit: int = 5,
        clock: Callable[[], float] = time.monotonic,
        unlocks: NewUnlocks | None = None,
        on_failure: Callable[[Sequence[Key]], object] = lambda _: None,
        on_login: Callable[[str, str], object] = lambda *_: None,
        most_keys: int = MAX_KEYS,
    ) -> None:
        self._most_keys = most_keys
        self._limit = limit
        self._unlocks = unlocks
        self._on_failure = on_failure
        self._on_login = on_login
        self._clock = clock
        self._records: dict[Key, _Record] = {}  # ordered by last failure
        self._trusted: dict[Key, float] = {}  # (account, address) -> last login; ordered by it
        self._in_progress: Counter[Key] = Counter()

    async def admit(self, account: str, address: str) -> None:
        """
        Check that an attempt is not blocked.

        :raises TooManyAttempts: with the time until the block ends
        """
        if self._blocked_for(self._keys(account, address)):
            await self._read_unlocks()
            self._check(self._keys(account, address))

    def begin(self, account: str, address: str) -> Attempt:
        """
        Start an attempt.

        :raises TooManyAttempts: it is blocked, or would be if all attempts in progress fail
        """
        keys, now = self._keys(account, address), self._clock()
        if self._blocked_for(keys):
            self._lift(() if self._unlocks is None else self._unlocks.now())
            self._check(keys)
        for key in keys:
            record = self._records.get(key)
            failures = 0 if record is None else len(_recent(record, now))
            if failures + self._in_progress[key] >= self._limit:
                raise TooManyAttempts(IN_PROGRESS_S)
        self._in_progress.update(keys)
        return Attempt(keys, self)

    def queue_path(self, account: str, address: str) -> tuple[Hashable, ...]:
        """
        The queue path of an attempt (see L{pkgrepo.concurrency.fair_semaphore}).

        Trusted addresses alternate with all other addresses together, so that they wait for at most one attempt of the
        others, however many there are. Networks alternate with networks.
        """
        return self._trusts(account, address), *networks_of(address), account

    def succeeded(self, account: str, address: str) -> None:
        """
        Trust the address for the account.

        Failures are kept: otherwise an attacker could reset them by logging in to an account of their own.
        """
        self.add_login(account, address)
        self._on_login(account, address)

    def add_login(self, account: str, address: str) -> None:
        """Trust an address, in this process."""
        self._trusted.pop((account, address), None)
        self._trusted[account, address] = self._clock()
        _bound(self._trusted, self._most_keys)

    async def hear_failure(self, keys: Sequence[Key]) -> None:
        """
        Count a failure at another process, which an unlock before it does not undo: that process has heeded it, and
        this one might read of it only later.
        """
        try:
            await self._read_unlocks()
        finally:
            self.add_failure(keys)

    def add_failure(self, keys: Sequence[Key]) -> None:
        """Count a failure, in this process."""
        for key in keys:
            self._count(key, self._clock())
        _bound(self._records, self._most_keys)

    def _check(self, keys: tuple[Key, ...]) -> None:
        wait = self._blocked_for(keys)
        if wait:
            raise TooManyAttempts(math.ceil(wait))

    def _blocked_for(self, keys: tuple[Key, ...]) -> float:
        """Seconds until the last block of these keys ends; 0 when there is none."""
        now = self._clock()
        until = max((self._records[key].blocked_until for key in keys if key in self._records), default=now)
        return max(until - now, 0.0)

    async def _read_unlocks(self) -> None:
        if self._unlocks is not None:
            self._lift(await self._unlocks.read())

    def _lift(self, unlocks: Sequence[LoginUnlock]) -> None:
        for each in unlocks:
            self._unlock(each)

    def _unlock(self, unlock: LoginUnlock) -> None:
        """Forget the failures of an account at every address, and those of an address with every account."""
        network = client_network(unlock.address) if unlock.address else None
        for key in list(self._records):
            account, address = key
            of_account = bool(unlock.account) and account == unlock.account
            of_address = bool(unlock.address) and address == (unlock.address if account else network)
            if of_account or of_address:
                del self._records[key]

    def _end(self, keys: tuple[Key, ...], *, failed: bool) -> None:
        for key in keys:
            self._in_progress[key] -= 1
            if not self._in_progress[key]:
                del self._in_progress[key]
        if failed:
            self.add_failure(keys)
            self._on_failure(keys)

    def _count(self, key: Key, now: float) -> None:
        record = self._records.pop(key, None)
        if record is None or now - record.last > FORGET_S:
            record = _Record()
        self._records[key] = record
        record.last = now
        record.failures = [*_recent(record, now), now]
        if len(record.failures) >= self._limit:
            record.failures = []
            record.blocked_until = now + min(WINDOW_S * 2.0**record.blocks, MAX_BLOCK_S)
            record.blocks = min(record.blocks + 1, 10)  # the bound is reached long before

    def _keys(self, account: str, address: str) -> tuple[Key, ...]:
        if self._trusts(account, address):
            return ((account, address),)
        if not address:  # unknown: a Unix socket behind a proxy that is not trusted
            return ((account, ""),)
        return ("", client_network(address)), (account, "")

    def _trusts(self, account: str, address: str) -> bool:
        login = self._trusted.get((account, address))
        return login is not None and self._clock() - login < TRUST_S


def _recent(record: _Record, now: float) -> list[float]:
    return [each for each in record.failures if now - each < WINDOW_S]


def _bound(entries: dict[Key, _Record] | dict[Key, float], most: int) -> None:
    while len(entries) > most:
        del entries[next(iter(entries))]
