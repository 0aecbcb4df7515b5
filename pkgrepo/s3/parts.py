"""
Sends an object in parts while its bytes arrive.

A part has 8 MiB, from the thousandth on 16 MiB, and so on: the 10,000 parts that the protocol allows reach 8 TiB. A few
are sent at a time, each of them in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.python.failure import Failure

from pkgrepo.s3.bucket import OCTETS, Bucket
from pkgrepo.s3.documents import Part, render_parts
from pkgrepo.s3.requests import Body

PART: Final = 8 * 1024 * 1024  # bytes; the protocol wants 5 MiB at least
GROWTH: Final = 1000  # parts after which they have twice the size
PARALLEL: Final = 3  # parts of one upload that are sent at once: 24 MiB of memory


def part_size(number: int, first: int = PART) -> int:
    """Return the size of a part in bytes; ``number`` counts from 1."""
    return first << ((number - 1) // GROWTH)


class PartSender:
    """
    The parts of the object ``key``. ``read`` reads from the file of the upload: a start in the object, and a count.

    ``id`` and ``sent`` are those of a resumed upload. ``digest`` computes the digest of the final document. ``on_sent``
    is called with the place of each part that was sent, a start and a count, and with None when others can be sent.
    """

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        *,
        read: Callable[[int, int], Awaitable[Body]],
        digest: Callable[[bytes], Awaitable[Body]],
        size: int = PART,
        id: str | None = None,
        sent: Sequence[Part] = (),
        content_type: str = OCTETS,
    ) -> None:
        self.id = id
        self.taken = sum(part.size for part in sent)  # bytes that are in parts
        self._bucket = bucket
        self._key = key
        self._read = read
        self._digest = digest
        self._content_type = content_type
        self._size = size
        self._parts = {part.number: part for part in sent}
        self._next = len(sent) + 1
        self._offered = self.taken
        self._flying: set[Deferred[None]] = set()
        self._beginning = DeferredLock()
        self.on_sent: Callable[[tuple[int, int] | None], None] = lambda _place: None
        self._error: Failure | None = None
        self._waiting: list[Deferred[None]] = []

    @property
    def backlog(self) -> int:
        """How many of the offered bytes wait to be sent; those of parts under way do not count."""
        return 0 if self._error is not None else self._offered - self.taken

    @property
    def next_size(self) -> int:
        """The size of the next part in bytes."""
        return part_size(self._next, self._size)

    @property
    def is_begun(self) -> bool:
        """Whether any bytes are in parts."""
        return self._next > 1

    @property
    def count(self) -> int:
        """How many parts there are."""
        return self._next - 1

    def offer(self, size: int) -> None:
        """Send the whole parts of the first ``size`` bytes, which can be read now."""
        self._offered = max(self._offered, size)
        while (
            self._error is None
            and len(self._flying) < PARALLEL
            and self._offered - self.taken >= part_size(self._next, self._size)
        ):
            self._start(part_size(self._next, self._size))

    async def send_whole_parts(self, size: int) -> None:
        """Wait until the whole parts of the first ``size`` bytes are sent. :raises StorageFailed: they cannot be"""
        self.offer(size)
        while self._flying and self._error is None:
            await self._wait()
        if self._error is not None:
            self._error.raiseException()

    async def complete(self, size: int) -> None:
        """Send what is missing of ``size`` bytes, and make the object. :raises StorageFailed: it cannot be made"""
        await self.send_whole_parts(size)
        if self.taken < size:
            self._start(size - self.taken)
            await self.send_whole_parts(size)
        assert self.id is not None, "an object has a part"
        parts = [self._parts[number] for number in sorted(self._parts)]
        await self._bucket.complete_parts(self._key, self.id, parts, await self._digest(render_parts(parts)))

    async def abort(self) -> None:
        """Remove what was sent. :raises StorageFailed: it stays until it is swept"""
        self._error = self._error or Failure(CancelledError())
        # Requests under way are not cancelled: the server may have them, and what it makes of them later would stay.
        while self._flying:
            await self._wait()
        if self.id is not None:
            await self._bucket.abort_parts(self._key, self.id)

    def _start(self, count: int) -> None:
        number, start = self._next, self.taken
        self._next += 1
        self.taken += count
        sending = Deferred.fromCoroutine(self._send(number, start, count))
        self._flying.add(sending)
        sending.addBoth(self._landed, sending)

    async def _send(self, number: int, start: int, count: int) -> None:
        async with self._beginning:
            if self.id is None:
                self.id = await self._bucket.begin_parts(self._key, self._content_type)
        body = await self._read(start, count)
        self._parts[number] = await self._bucket.put_part(self._key, self.id, number, body)
        self.on_sent((start, count))

    def _landed(self, outcome: object, sending: Deferred[None]) -> None:
        self._flying.discard(sending)
        if isinstance(outcome, Failure) and self._error is None:
            self._error = outcome
        self.offer(self._offered)
        self.on_sent(None)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.called:
                each.callback(None)

    async def _wait(self) -> None:
        waiting: Deferred[None] = Deferred()
        self._waiting.append(waiting)
        await waiting
