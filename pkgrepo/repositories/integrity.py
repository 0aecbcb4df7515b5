"""
Whether stored bytes are still those of their digest: read again, and compared before a process sends them first.

A disk may change bytes long after they were written. So each process compares a copy when it is asked for it for the
first time; what is sent meanwhile lacks its last byte, so that no client takes it for whole. What is compared is
remembered by the random half of the locator, in a table of fixed size: a copy that lost its place is compared again.
"""

from __future__ import annotations

import errno
import hashlib
import os
from array import array
from collections.abc import Awaitable, Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.pools import DiskQueue, Pools
from pkgrepo.concurrency.services import spawn
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, PkgrepoError
from pkgrepo.interfaces import IBlobStore
from pkgrepo.repositories.context import FAILURES, reason_of
from pkgrepo.storage.blobs.durability import forget_pages

log = Logger()

PIECE: Final = 1024 * 1024  # bytes read at once
PIECES: Final = 8  # that one turn of a thread reads, in some 6 ms
PLACES: Final = 1 << 16  # copies that are remembered, in 512 KiB
MOST_LONG: Final = 2  # copies of more than one turn that are read at once, so that uploads have the other threads
# Of the blocks of one file. Others are of this process, or of a storage that is away: they say nothing of the bytes.
_BYTES_LOST: Final = frozenset(
    getattr(errno, name, errno.EIO) for name in ("EIO", "EBADMSG", "EUCLEAN", "EILSEQ", "EISDIR")
)


@frozen
class Damage:
    """What is wrong with a stored copy, as the end of a sentence; ``missing`` if it cannot be read at all."""

    finding: str
    missing: bool = False


# With the id of the storage, and digest and locator of the copy.
OnDamage = Callable[[int, str, str, Damage], Awaitable[object]]


class Turns:
    """
    Turns of threads for copies that are read: of those that need several, the ones that had the fewest so far go first.

    So many large copies keep neither uploads nor small copies waiting.
    """

    def __init__(self) -> None:
        self._free = MOST_LONG
        self._waiting: list[tuple[int, int, Deferred[None]]] = []
        self._numbers = count()

    async def take(self, had: int, read: Callable[[], Awaitable[bool]]) -> bool:
        """Call ``read`` for a copy that ``had`` so many turns, once it may have another one. Returns its result."""
        if not had:
            return await read()
        if self._free:
            self._free -= 1
        else:
            waiter: Deferred[None] = Deferred()
            heappush(self._waiting, (had, next(self._numbers), waiter))
            await waiter
        try:
            return await read()
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            waiter = heappop(self._waiting)[2]
            if not waiter.called:  # else it was cancelled
                waiter.callback(None)
                return
        self._free += 1


async def find_damage(
    pools: Pools, store: IBlobStore, locator: str, sha256: str, turns: Turns | None = None
) -> Damage | None:
    """
    Read a stored copy, and compare its digest; None: it is as it should be.

    What is found is found twice, the second time without the page cache, and while the storage itself is there.

    :raises PkgrepoError, OSError: this process cannot read it, or the storage is away: nothing is known of the bytes
    """
    if await _difference(pools, store, locator, sha256, turns) is None:
        return None
    damage = await _difference(pools, store, locator, sha256, turns, afresh=True)
    if damage is not None and damage.missing:
        await store.check(locator)
    return damage


async def _difference(
    pools: Pools, store: IBlobStore, locator: str, sha256: str, turns: Turns | None, *, afresh: bool = False
) -> Damage | None:
    try:
        actual = await digest_of(pools, store, locator, turns, afresh=afresh)
    except FAILURES as error:
        causes = {getattr(each, "errno", None) for each in (error, error.__cause__)}
        if not isinstance(error, BlobMissing) and not causes & _BYTES_LOST:
            raise
        return Damage(reason_of(error), missing=True)
    return None if actual == sha256 else Damage(f"its bytes have the digest {actual}")


async def digest_of(
    pools: Pools, store: IBlobStore, locator: str, turns: Turns | None = None, *, afresh: bool = False
) -> str:
    """
    Read a stored copy, ``afresh`` without the page cache. Returns the sha256 of its bytes, in hex.

    :raises BlobMissing: it is not there; :raises PkgrepoError: it cannot be read
    """
    blob = store.open(locator)
    descriptor = blob.descriptor()
    digest, start, had = hashlib.sha256(), 0, 0
    if descriptor is None:
        while piece := await blob.read(start, PIECE):
            await pools.disk(digest.update, piece)
            start += len(piece)
        return digest.hexdigest()
    # If this is cancelled, a thread may still read: the queue closes the file after that.
    file, queue = os.fdopen(descriptor, "rb", buffering=0), DiskQueue(pools.disk)
    read = partial(queue.run, _read_on, file, digest)
    try:
        if afresh:
            await queue.run(forget_pages, file.fileno())
        while await (read() if turns is None else turns.take(had, read)):
            had += 1
    except OSError as error:
        raise PkgrepoError(f"cannot be read: {error.strerror}") from error
    finally:
        queue.run(file.close).addErrback(lambda _: None)  # the threads have been stopped
    return digest.hexdigest()


def _read_on(file: Any, digest: Any) -> bool:
    """Read some pieces. Returns whether there may be more."""
    buffer = memoryview(bytearray(PIECE))
    for _ in range(PIECES):
        got = file.readinto(buffer)
        if not got:
            return False
        digest.update(buffer[:got])
    return True


class FirstReads:
    """
    Compares copies in folders that this process has not compared yet; ``on_damage`` is told of those that are damaged.

    Copies in buckets are not compared: their services do that.
    """

    def __init__(self, pools: Pools, on_damage: OnDamage) -> None:
        self._pools = pools
        self._on_damage = on_damage
        self._compared = array("Q", bytes(8 * PLACES))
        self._turns = Turns()
        # At the stop of the server what is spawned below is cancelled, and so is the reading.
        self._flight: SingleFlight[str, None] = SingleFlight(cancel_unawaited=True)

    def gate(self, store: IBlobStore, storage_id: int, locator: str) -> HeldEnd | None:
        """
        What holds back the end of a copy that is sent, while it is compared; None if it was.

        :raises PkgrepoError: it cannot be opened once more, so that nothing of it is to be sent
        """
        if self._is_compared(locator):
            return None
        check = partial(self.check, store, storage_id, locator)
        begun: Deferred[None] = Deferred.fromCoroutine(check())  # opens it at once
        if begun.called and isinstance(begun.result, Failure):
            refused = begun.result
            begun.addErrback(lambda _: None)
            refused.raiseException()
        spawn(_alone(begun), "a stored file could not be compared with its digest")
        return HeldEnd(partial(self._is_compared, locator), check)

    async def check(self, store: IBlobStore, storage_id: int, locator: str) -> None:
        """
        Wait until a copy was compared.

        :raises BlobMissing: it is damaged; :raises PkgrepoError: it cannot be read
        """
        if not locator:
            raise BlobMissing(locator)
        if store.has_files and not self._is_compared(locator):
            await self._flight.run(locator, partial(self._compare, store, storage_id, locator))

    def look_again(self, store: IBlobStore, storage_id: int, locator: str) -> None:
        """Have a copy compared that was not found, or is too short, whether or not it was compared before."""
        if store.has_files and locator:
            self._compared[_drawn_in(locator) % PLACES] = 0
            spawn(_alone(self.check(store, storage_id, locator)), "a stored file is missing, or cannot be read")

    async def check_whole(self, store: IBlobStore, storage_id: int, locator: str, data: bytes) -> None:
        """
        The same for bytes that were read; if they are not the whole copy that is read once more.

        :raises BlobMissing, PkgrepoError: see ``check``
        """
        if not store.has_files or self._is_compared(locator):
            return
        if hashlib.sha256(data).hexdigest() == _sha256_in(locator):
            self._note(locator)
        else:
            await self.check(store, storage_id, locator)

    async def _compare(self, store: IBlobStore, storage_id: int, locator: str) -> None:
        sha256 = _sha256_in(locator)
        damage = await find_damage(self._pools, store, locator, sha256, self._turns)
        if damage is None:
            self._note(locator)
            return
        await self._on_damage(storage_id, sha256, locator, damage)
        raise BlobMissing(locator)

    def _is_compared(self, locator: str) -> bool:
        drawn = _drawn_in(locator)
        return drawn != 0 and self._compared[drawn % PLACES] == drawn

    def _note(self, locator: str) -> None:
        drawn = _drawn_in(locator)
        self._compared[drawn % PLACES] = drawn


class HeldEnd:
    """A body whose bytes are all there, of which no part is complete until they were compared (a ``Growing``)."""

    def __init__(self, is_compared: Callable[[], bool], check: Callable[[], Awaitable[None]]) -> None:
        self._is_compared = is_compared
        self._check = check

    def available(self, end: int) -> int:
        """How many bytes may be sent now of a part that ends before ``end``."""
        return end if self._is_compared() else end - 1

    def wait(self) -> Deferred[None]:
        """A Deferred that fires when the bytes were compared, and fails if they are damaged; it may be cancelled."""
        return Deferred.fromCoroutine(_awaited(self._check()))

    def close(self) -> None:
        """Need no more bytes; they are compared all the same."""


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _alone(work: Awaitable[None]) -> None:
    """Wait for work of which damage was told already; what cannot be read now is compared by the next who read it."""
    try:
        await work
    except BlobMissing:
        pass
    except PkgrepoError as error:
        log.warn("a stored file could not be compared with its digest: {reason}", reason=str(error))


def _sha256_in(locator: str) -> str:
    """The digest in the locator of a copy in a folder, see L{pkgrepo.storage.blobs.paths}; empty in that of no copy."""
    return locator[3:67]


def _drawn_in(locator: str) -> int:
    """The random number in it; 0 if there is none, which nothing that was compared has."""
    try:
        return int(locator[68:], 16)
    except ValueError:
        return 0
