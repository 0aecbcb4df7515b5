"""
How often somebody may guess passwords.

Failures are counted by address and by account. A key has some failures free within a window; the next blocks it for as
long as the window, then twice as long for every further block, up to a bound. A quiet hour forgets it all.

An attempt whose outcome is not known yet counts as a possible failure: a key never has more guesses under way than it
may fail.

Lest anybody could lock a user out by failing in their name, an address from which an account has logged in lately is
counted as a pair with that account, apart from everybody else's failures.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Protocol

from attrs import Factory, define, frozen

from pkgrepo.errors import TooManyAttempts

WINDOW_S = 60.0
MAX_BLOCK_S = 900.0  # seconds; long enough to make guessing hopeless, short enough for the owner to wait
FORGET_S = 3600.0
TRUST_S = 24 * 3600.0  # seconds for which an address is known as an account's own
MAX_KEYS = 50_000  # some 10 MB at most, whoever tries from however many addresses
UNDER_WAY_S = 1  # seconds after which an attempt may be made anew that others under way might block

# Prefixes that take turns with each other before the addresses below them do, and the one that an address is known
# by. An IPv6 customer has 2**64 addresses at least (RFC 6177), often 2**80, a small provider 2**96.
IPV4_PREFIXES = (16, 24, 32)
IPV6_PREFIXES = (32, 48, 64)

Key = tuple[str, str]


@define
class _Record:
    failures: list[float] = Factory(list)
    blocks: int = 0
    blocked_until: float = 0.0
    last: float = 0.0


@frozen(eq=False)
class Attempt:
    """An attempt under way; ``end`` is called once, whether its password was wrong or not, or nobody knows."""

    keys: tuple[Key, ...]
    _throttle: Throttle

    def end(self, *, failed: bool) -> None:
        """The attempt is over."""
        self._throttle._end(self.keys, failed=failed)  # noqa: SLF001 - its other half


class Unlock(Protocol):
    """What somebody lifts the blocks of: an account, an address, or both; an empty one means none."""

    @property
    def account(self) -> str:
        """The account."""

    @property
    def address(self) -> str:
        """The address."""


class Throttle:
    """
    Blocks after ``limit`` failures in a window; ``clock`` tells seconds and never jumps back.

    ``unlocks`` is asked, whenever somebody is blocked, for what was unlocked since the last time.
    """

    def __init__(
        self,
        *,
        limit: int = 5,
        clock: Callable[[], float] = time.monotonic,
        unlocks: Callable[[], Sequence[Unlock]] = tuple,
    ) -> None:
        self._limit = limit
        self._unlocks = unlocks
        self._clock = clock
        self._records: dict[Key, _Record] = {}  # ordered by last failure
        self._trusted: dict[Key, float] = {}  # (account, address) -> last login; ordered by it
        self._under_way: Counter[Key] = Counter()

    def admit(self, account: str, address: str) -> None:
        """
        Let an attempt pass unless it is blocked.

        :raises TooManyAttempts: with the time until the block ends
        """
        self._check(self._keys(account, address), self._clock())

    def begin(self, account: str, address: str) -> Attempt:
        """
        The same for an attempt that is made now.

        :raises TooManyAttempts: it is blocked, or would be if those under way fail
        """
        keys, now = self._keys(account, address), self._clock()
        self._check(keys, now)
        for key in keys:
            record = self._records.get(key)
            failures = 0 if record is None else len(_recent(record, now))
            if failures + self._under_way[key] >= self._limit:
                raise TooManyAttempts(UNDER_WAY_S)
        self._under_way.update(keys)
        return Attempt(keys, self)

    def queue_path(self, account: str, address: str) -> tuple[Hashable, ...]:
        """
        Where an attempt waits for its turn (see L{pkgrepo.concurrency.permits}).

        Addresses that their account is known from take turns with all others together, so that they wait for one
        attempt of strangers at most, however many there are; networks take turns with networks.
        """
        return self._knows(account, address), *_networks(address), account

    def succeeded(self, account: str, address: str) -> None:
        """
        Know the address as one of the account's own.

        Failures stay counted: a guesser could otherwise log in to an account of their own between guesses.
        """
        self._trusted.pop((account, address), None)
        self._trusted[account, address] = self._clock()
        _bound(self._trusted)

    def _check(self, keys: tuple[Key, ...], now: float) -> None:
        until = self._blocked_until(keys, now)
        if until <= now:
            return
        for each in self._unlocks():
            self._unlock(each)
        until = self._blocked_until(keys, now)
        if until > now:
            raise TooManyAttempts(math.ceil(until - now))

    def _blocked_until(self, keys: tuple[Key, ...], now: float) -> float:
        return max((self._records[key].blocked_until for key in keys if key in self._records), default=now)

    def _unlock(self, unlock: Unlock) -> None:
        """Forget the failures of an account at every address, and those of an address with every account."""
        network = str(_networks(unlock.address)[-1]) if unlock.address else None
        for key in list(self._records):
            account, address = key
            of_account = bool(unlock.account) and account == unlock.account
            of_address = bool(unlock.address) and address == (unlock.address if account else network)
            if of_account or of_address:
                del self._records[key]

    def _end(self, keys: tuple[Key, ...], *, failed: bool) -> None:
        for key in keys:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]
            if failed:
                self._count(key, self._clock())
        _bound(self._records)

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
        if self._knows(account, address):
            return ((account, address),)
        if not address:  # that of nobody: a Unix socket, with a proxy that is not trusted
            return ((account, ""),)
        return ("", str(_networks(address)[-1])), (account, "")

    def _knows(self, account: str, address: str) -> bool:
        login = self._trusted.get((account, address))
        return login is not None and self._clock() - login < TRUST_S


@lru_cache(maxsize=1024)
def _networks(address: str) -> tuple[Hashable, ...]:
    """The networks that an address is in, the largest first; what is no address stands alone."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return (address,)
    if not isinstance(found, IPv4Address):
        found = found.ipv4_mapped or found
    prefixes = IPV4_PREFIXES if isinstance(found, IPv4Address) else IPV6_PREFIXES
    return tuple(ip_network((found, prefix), strict=False) for prefix in prefixes)


def _recent(record: _Record, now: float) -> list[float]:
    return [each for each in record.failures if now - each < WINDOW_S]


def _bound(entries: dict[Key, _Record] | dict[Key, float]) -> None:
    while len(entries) > MAX_KEYS:
        del entries[next(iter(entries))]
