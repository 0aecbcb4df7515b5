"""A barrier that delays one write of a catalog, so that tests can run other writes before it."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred

reactor: Any = _reactor


class WriteBarrier:
    """
    Delays the next write of a catalog until the test fires ``open``; ``arrived`` fires when that write was called.

    Only commands with ``of`` in their qualified names are delayed, because a server also writes by itself.
    """

    def __init__(self, catalog: Any, of: str = "") -> None:
        self._catalog = catalog
        self._of = of
        self._write = catalog.write
        self.arrived: Deferred[None] = Deferred()
        self.open: Deferred[None] = Deferred()
        catalog.write = self.write

    async def write(self, command: Any, *args: Any, **kwargs: Any) -> Any:
        if self._of not in command.__qualname__:
            return await self._write(command, *args, **kwargs)
        self._catalog.write = self._write
        reactor.callLater(0, self.arrived.callback, None)  # in a later turn: the test may await this call
        await self.open
        return await self._write(command, *args, **kwargs)
