"""Delays one write of a catalog, so that other writes come first."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred

reactor: Any = _reactor


class WriteBarrier:
    """
    A catalog whose next write waits until the test opens the gate; ``arrived`` fires when that write is there.

    ``of`` is part of the qualified name of the commands that wait: a server writes by itself, too.
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
