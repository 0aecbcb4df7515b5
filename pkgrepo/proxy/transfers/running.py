"""The transfers that are under way in this process: one for each file, for all its readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop

from .download import Download
from .receiving import Context
from .transfer import Transfer

MOST = 64  # at once; each has 2 MiB of chunks in memory at most, and two or three descriptors

Key = tuple[int, str]  # id of a repository, and the path of a file with its identity, if it has one
T = TypeVar("T")


class Transfers:
    """
    Starts transfers. At most ``most`` receive bytes at a time; those of each repository take turns.

    One repository has three quarters of them at most: however slowly its upstreams send, others have some left.
    """

    def __init__(self, context: Context, *, most: int = MOST) -> None:
        self._context = context
        self._permits = FairSemaphore(most, context.reactor)
        self._most_of_one = max(most * 3 // 4, 1)
        self._permits_of: dict[int, FairSemaphore] = {}
        self._running: dict[Key, Transfer[Any]] = {}

    def __len__(self) -> int:
        return len(self._running)

    def get(self, repository_id: int, path: str, make: Callable[[], Download[T]], *, identity: str = "") -> Transfer[T]:
        """
        The transfer of the file with this path in a repository; ``make`` is called if there is none yet.

        Files with the same path and another ``identity`` are transferred on their own.

        Nothing may be awaited between this call and that of ``Transfer.content``.

        :raises UpstreamLoop: it is this request that the transfer waits for
        """
        key = _key(repository_id, path, identity)
        found = self._running.get(key)
        if found is not None:
            refuse_proxy_loop(repository_id, found.route)
            return found
        transfer: Transfer[T] = Transfer(
            make(), key, path=path, context=self._context, on_end=lambda: self._forget(key, transfer)
        )
        self._running[key] = transfer
        transfer.start(self._permit(repository_id))
        return transfer

    def find(self, repository_id: int, path: str, *, identity: str = "") -> Transfer[Any] | None:
        """The transfer of the file with this path in a repository, if it is under way."""
        return self._running.get(_key(repository_id, path, identity))

    async def settle(self) -> None:
        """Wait until all files that are verified are recorded, which is soon; or are not kept, as they cannot be."""
        with self._context.without_delay():
            for transfer in list(self._running.values()):
                if transfer.is_verified:
                    await transfer.stop()

    async def stop(self) -> None:
        """Give up all transfers, and wait until nothing of them is left."""
        for transfer in list(self._running.values()):
            await transfer.stop()

    @asynccontextmanager
    async def _permit(self, repository_id: int) -> AsyncIterator[None]:
        own = self._permits_of.get(repository_id)
        if own is None:
            own = self._permits_of[repository_id] = FairSemaphore(self._most_of_one, self._context.reactor)
        async with own.hold(), self._permits.hold((repository_id,)):
            yield

    def _forget(self, key: Key, transfer: Transfer[Any]) -> None:
        if self._running.get(key) is transfer:
            del self._running[key]


def _key(repository_id: int, path: str, identity: str) -> Key:
    return repository_id, f"{path} {identity}" if identity else path
