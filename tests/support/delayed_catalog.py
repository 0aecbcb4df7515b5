"""A catalog with a delay in every operation, like a database server behind a network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from pkgrepo.interfaces import NOT_NOW, ICatalog, NotNow


@implementer(ICatalog)
class DelayedCatalog:
    """
    Wraps a catalog and delays every operation by ``delay_s`` seconds, one half before it and one half after it.

    ``peek`` always returns ``NOT_NOW``, also with a ``delay_s`` of 0. ``generation`` has no delay. If ``timer`` is a
    ``Clock`` that the test does not advance, no operation returns.
    """

    def __init__(self, catalog: Any, timer: IReactorTime, delay_s: float) -> None:
        self.delay_s = delay_s
        self.operations: list[str] = []  # the functions of all looks, scans and writes so far
        self._catalog = catalog
        self._timer = timer
        self._waiting: set[Deferred[None]] = set()

    async def start(self) -> None:
        await self._catalog.start()

    async def wait_idle(self) -> bool:
        waited = bool(self._waiting)
        while self._waiting:
            await next(iter(self._waiting))
        return any([waited, await self._catalog.wait_idle()])

    async def stop(self) -> None:
        await self.wait_idle()
        await self._catalog.stop()

    def generation(self) -> int:
        generation: int = self._catalog.generation()
        return generation

    def pinned(self) -> AbstractContextManager[int]:
        moment: AbstractContextManager[int] = self._catalog.pinned()
        return moment

    def peek(self, query: Any, /, *_args: Any, **_kwargs: Any) -> NotNow:
        return NOT_NOW

    async def look(self, query: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self._later(query, lambda: self._catalog.look(query, *args, **kwargs))

    def scan(self, query: Any, /, *args: Any, **kwargs: Any) -> Deferred[Any]:
        return self._later(query, lambda: self._catalog.scan(query, *args, **kwargs))

    def write(self, command: Any, /, *args: Any, **kwargs: Any) -> Deferred[Any]:
        return self._later(command, lambda: self._catalog.write(command, *args, **kwargs))

    def renew_statistics(self) -> Deferred[bool]:
        return self._later(self._catalog.renew_statistics, self._catalog.renew_statistics)

    def _later(self, function: Any, ask: Callable[[], Awaitable[Any]]) -> Deferred[Any]:
        """Run an operation with the delays. It runs, and ``wait_idle`` waits for it, even if the caller cancels."""
        self.operations.append(f"{function.__module__}.{getattr(function, '__qualname__', '')}")
        answer: Deferred[Any] = Deferred()
        ended: Deferred[None] = Deferred()
        self._waiting.add(ended)

        def end(result: Any) -> None:
            self._waiting.discard(ended)
            answer.callback(result)
            ended.callback(None)

        async def run() -> Any:
            await self._sleep()
            try:
                return await ask()
            finally:
                await self._sleep()

        Deferred.fromCoroutine(run()).addBoth(end)
        return answer

    async def _sleep(self) -> None:
        if self.delay_s:
            woken: Deferred[None] = Deferred()
            self._timer.callLater(self.delay_s / 2, woken.callback, None)
            await woken


def delay_catalogs(delay_s: float) -> None:
    """Patch this process so that every server made from now on uses a `DelayedCatalog`."""
    from pkgrepo.composition import core

    undelayed = core.make_catalog

    def make(config: Any, reactor: Any) -> DelayedCatalog:
        return DelayedCatalog(undelayed(config, reactor), reactor, delay_s)

    core.make_catalog = make  # type: ignore[assignment]
