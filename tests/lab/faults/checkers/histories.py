"""
Histories of registers: what clients wrote and read, and when; and the reads that no order of these explains.

An operation takes effect at one moment between its begin and its end. A write that had no answer took effect at a
moment after its begin, or never; once the fault is over (``settle``) it does not take effect any more. Times are those
of the monotonic clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import inf

from attrs import define


@define
class Operation:
    """A write or a read of a value; ``ended`` is infinite while there is no answer, and for a write that had none."""

    key: str
    value: str
    begun: float
    ended: float = inf
    write: bool = True
    answered: bool = False

    def __str__(self) -> str:
        kind = "write" if self.write else "read"
        return f"{kind} of {self.value!r} from {self.begun:.4f} to {self.ended:.4f}"


class History:
    """Operations of many threads on named registers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: dict[str, list[Operation]] = defaultdict(list)

    def first(self, key: str, value: str) -> None:
        """The value before any operation."""
        self._add(Operation(key, value, -inf, -inf, answered=True))

    @contextmanager
    def writing(self, key: str, value: str) -> Iterator[Operation]:
        """Note a write; unless the body ends without an error it has no answer."""
        operation = Operation(key, value, time.monotonic())
        self._add(operation)
        yield operation
        operation.ended, operation.answered = time.monotonic(), True

    def refused(self, operation: Operation) -> None:
        """Forget a write that the server has refused."""
        with self._lock:
            self._operations[operation.key].remove(operation)

    def decided(self, operation: Operation, value: str) -> None:
        """Of a write without an answer it is known now whether it took effect: ``value`` is that of the register."""
        operation.answered = operation.answered or operation.value == value
        if not operation.answered:
            self.refused(operation)

    def read(self, key: str, value: str, begun: float) -> None:
        """Note a read that has ended now."""
        self._add(Operation(key, value, begun, time.monotonic(), write=False, answered=True))

    def settle(self) -> None:
        """Writes without an answer took effect by now, or never do."""
        now = time.monotonic()
        with self._lock:
            for each in self._operations.values():
                for operation in each:
                    operation.ended = min(operation.ended, now)

    def forget(self, lag_s: float = 0) -> None:
        """
        Forget the reads, which were judged, and the writes that explain no later read.

        These ended before a write began that took effect ``lag_s`` seconds ago or earlier, by its answer or by a read
        of what no other one has written.
        """
        until = time.monotonic() - lag_s
        with self._lock:
            for key, operations in self._operations.items():
                writes = [each for each in operations if each.write]
                values = Counter(each.value for each in writes)
                for each in operations:
                    if not each.write and values[each.value] == 1:
                        [write] = [other for other in writes if other.value == each.value]
                        write.answered, write.ended = True, min(write.ended, each.ended)
                over = max((each.begun for each in writes if each.answered and each.ended <= until), default=-inf)
                self._operations[key] = [each for each in writes if each.ended >= over]

    def last(self, key: str) -> Operation:
        """The last write that began."""
        with self._lock:
            return [each for each in self._operations[key] if each.write][-1]

    def keys(self) -> list[str]:
        """The registers."""
        with self._lock:
            return [*self._operations]

    def of(self, key: str) -> list[Operation]:
        """The operations on a register."""
        with self._lock:
            return [*self._operations[key]]

    def _add(self, operation: Operation) -> None:
        with self._lock:
            self._operations[operation.key].append(operation)


def stale_reads(operations: Iterable[Operation], lag_s: float = 0) -> list[Operation]:
    """
    The reads of a value that nobody had written by then, or that was overwritten for ``lag_s`` before the read began.

    An acknowledged write overwrites those that had ended when it began. One without an answer overwrites nothing.
    """
    every = [*operations]
    writes = [each for each in every if each.write]
    overwriting = [each for each in writes if each.answered]

    def explains(write: Operation, read: Operation) -> bool:
        return write.begun <= read.ended and not any(
            other.begun > write.ended and other.ended + lag_s < read.begun for other in overwriting
        )

    return [
        read
        for read in every
        if not read.write and not any(each.value == read.value and explains(each, read) for each in writes)
    ]


@define
class _Zone:
    """
    A value's write with its reads: between the first end of them and the last begin it was the value.

    If the last begin is after the first end, it was for all of this time (``forward``); otherwise it was at some moment
    between them.
    """

    value: str
    first_end: float
    last_begin: float

    @property
    def forward(self) -> bool:
        return self.first_end < self.last_begin

    @property
    def low(self) -> float:
        return min(self.first_end, self.last_begin)

    @property
    def high(self) -> float:
        return max(self.first_end, self.last_begin)


def disorder(operations: Iterable[Operation]) -> list[str]:
    """
    Why there is no order of these operations, in which each value is written once.

    By Gibbons and Korach, Testing Shared Memories (1997): no two forward zones overlap, and no backward zone is
    within a forward one.
    """
    clusters: dict[str, list[Operation]] = defaultdict(list)
    for each in operations:
        clusters[each.value].append(each)
    zones = [_zone(value, each) for value, each in clusters.items() if _counts(each)]
    forward = sorted((each for each in zones if each.forward), key=lambda each: each.low)
    found = [
        f"{first.value!r} and {second.value!r} were the value at the same time"
        for first, second in pairwise(forward)
        if second.low < first.high
    ]
    return found + [
        f"{inner.value!r} was written and read while {outer.value!r} was the value all the time"
        for inner in zones
        if not inner.forward
        for outer in forward
        if outer.low < inner.low and inner.high < outer.high
    ]


def _counts(cluster: Sequence[Operation]) -> bool:
    """Whether a value was ever there: a write that had no answer and was never read may not have been."""
    return any(each.answered for each in cluster)


def _zone(value: str, cluster: Sequence[Operation]) -> _Zone:
    return _Zone(value, min(each.ended for each in cluster), max(each.begun for each in cluster))
