"""
How often somebody may guess passwords.

Failures are counted by address and by account. A key has some failures free within a window; the next blocks it for as
long as the window, then twice as long for every further block, up to a bound. A quiet hour forgets it all.

Lest anybody could lock a user out by failing in their name, an address from which an account has logged in lately is
counted as a pair with that account, apart from everybody else's failures.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from ipaddress import IPv4Address, ip_address, ip_network

from attrs import Factory, define

from pkgrepo.errors import TooManyAttempts

WINDOW_S = 60.0
MAX_BLOCK_S = 900.0  # seconds; long enough to make guessing hopeless, short enough for the owner to wait
FORGET_S = 3600.0
TRUST_S = 24 * 3600.0  # seconds for which an address is known as an account's own
MAX_KEYS = 50_000  # some 10 MB at most, whoever tries from however many addresses

Key = tuple[str, str]


@define
class _Record:
    failures: list[float] = Factory(list)
    blocks: int = 0
    blocked_until: float = 0.0
    last: float = 0.0


class Throttle:
    """Blocks after ``limit`` failures in a window; ``clock`` tells seconds and never jumps back."""

    def __init__(self, *, limit: int = 5, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._records: dict[Key, _Record] = {}  # ordered by last failure
        self._trusted: dict[Key, float] = {}  # (account, address) -> last login; ordered by it

    def admit(self, account: str, address: str) -> None:
        """
        Let an attempt pass unless it is blocked.

        :raises TooManyAttempts: with the time until the block ends
        """
        now = self._clock()
        blocks = [self._records[key].blocked_until for key in self._keys(account, address) if key in self._records]
        until = max(blocks, default=now)
        if until > now:
            raise TooManyAttempts(math.ceil(until - now))

    def failed(self, account: str, address: str) -> None:
        """Count a wrong password."""
        now = self._clock()
        for key in self._keys(account, address):
            record = self._records.pop(key, None)
            if record is None or now - record.last > FORGET_S:
                record = _Record()
            self._records[key] = record
            record.last = now
            record.failures = [each for each in record.failures if now - each < WINDOW_S] + [now]
            if len(record.failures) >= self._limit:
                record.failures = []
                record.blocked_until = now + min(WINDOW_S * 2.0**record.blocks, MAX_BLOCK_S)
                record.blocks = min(record.blocks + 1, 10)  # the bound is reached long before
        _bound(self._records)

    def succeeded(self, account: str, address: str) -> None:
        """
        Know the address as one of the account's own.

        Failures stay counted: a guesser could otherwise log in to an account of their own between guesses.
        """
        self._trusted.pop((account, address), None)
        self._trusted[account, address] = self._clock()
        _bound(self._trusted)

    def _keys(self, account: str, address: str) -> tuple[Key, ...]:
        login = self._trusted.get((account, address))
        if login is not None and self._clock() - login < TRUST_S:
            return ((account, address),)
        return ("", _network(address)), (account, "")


def _network(address: str) -> str:
    """Who an address belongs to: an IPv6 customer has 2**64 of them at least (RFC 6177)."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return address
    return str(found.ipv4_mapped or ip_network((found, 64), strict=False))


def _bound(entries: dict[Key, _Record] | dict[Key, float]) -> None:
    while len(entries) > MAX_KEYS:
        del entries[next(iter(entries))]
