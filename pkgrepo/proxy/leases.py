"""
Leases: which of the processes that serve a repository asks upstreams for something that all of them want.

For a document it is the one that has its lease. The others wait until it has stored the response, and let it be stored
at once. After ``WAIT_S`` they ask on their own, also if the process with the lease hangs. That no upstream has a
package is not stored; the others are told, and one that waits may ask before it hears it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.task import deferLater

from pkgrepo.storage.process_lock import KeyLeases

if TYPE_CHECKING:
    from pkgrepo.storage.catalog.postgresql import Nodes

WAIT_S: Final = 5.0  # seconds; upstreams answer within one, or there are several routes
FIRST_PAUSE_S: Final = 0.005  # before the second attempt to get the lease
LONGEST_PAUSE_S: Final = 0.1


class Leases:
    """
    Leases of names: one process at a time has the lease of a name, of those of this machine, and with ``nodes`` of all.

    The lease of a process that has died is free, at once or after a time that the database decides. Of the processes of
    one machine one at a time asks the database for the lease of a name.
    """

    def __init__(self, path: Path, nodes: Nodes | None) -> None:
        self._leases = KeyLeases(path)
        self._nodes = nodes

    async def acquire(self, name: str) -> bool:
        """Try to get the lease of a name. Returns whether this process has it."""
        if not self._leases.acquire(name):
            return False
        if self._nodes is None:
            return True
        try:
            held = await self._nodes.acquire_lease(name)
        except BaseException:  # cancelled: a thread may take it yet
            self.release(name)
            raise
        if not held:
            self._leases.release(name)
        return held

    def release(self, name: str) -> None:
        """Release a lease, also in the database."""
        self._leases.release(name)
        if self._nodes is not None:
            self._nodes.release_lease(name)

    def close(self) -> None:
        """Release the leases of this machine, and with the catalog all others."""
        self._leases.close()


class Turns:
    """
    The documents that this process asks upstreams for.

    ``tell`` sends the name of a lease to the other processes, whose ``hurry`` is called with it. Answers are stored at
    once within a block of ``without_delay``.
    """

    def __init__(
        self,
        leases: Leases,
        *,
        tell: Callable[[str], None],
        without_delay: Callable[[], AbstractContextManager[None]],
        reactor: Any,
    ) -> None:
        self._leases = leases
        self._tell = tell
        self._without_delay = without_delay
        self._reactor = reactor
        self._mine: dict[str, ExitStack] = {}

    async def begin(self, repository_id: int, key: str) -> Turn:
        """Wait for the turn of this process; the caller ends it."""
        name = f"document/{repository_id}/{key}"
        ends_at, pause_s = self._reactor.seconds() + WAIT_S, FIRST_PAUSE_S
        while not await self._leases.acquire(name):
            if self._reactor.seconds() >= ends_at:
                return Turn(lambda: None)
            self._tell(name)
            self.hurry(name)  # if it is this process that stores the response before
            await deferLater(self._reactor, pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._mine[name] = ExitStack()
        return Turn(lambda: self._end(name))

    def hurry(self, name: str) -> None:
        """Another process waits for a response."""
        mine = self._mine.get(name)
        if mine is not None:
            mine.enter_context(self._without_delay())

    def _end(self, name: str) -> None:
        self._leases.release(name)
        self._mine.pop(name).close()


class Turn:
    """A turn, until ``end``, which is called at least once."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    def end(self) -> None:
        """Let other processes ask."""
        end, self._end = self._end, None
        if end is not None:
            end()
