"""What a server does besides answering requests: periodic writes and maintenance."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from datetime import timedelta
from typing import Any

from twisted.application.service import IService, Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S
from pkgrepo.config import Config
from pkgrepo.core import Core, readable_layout
from pkgrepo.management.api.audit_trail import FLUSH_S, SUM_S
from pkgrepo.repositories.upkeep.daily_gc import DailyCollection
from pkgrepo.repositories.upkeep.housekeeping import Housekeeping
from pkgrepo.repositories.upkeep.sweep import Sweep

from .identification import Identification

log = Logger()


def maintenance(core: Core, config: Config, reactor: Any) -> Iterator[IService]:
    """Housekeeping, and the daily garbage collection unless it is off."""
    yield Housekeeping(
        catalog=core.catalog,
        registry=core.registry,
        stores=core.stores,
        sweep=Sweep(catalog=core.catalog, pools=core.pools, layout_of=readable_layout),
        exclusive_since=core.exclusive_since,
        audit_kept=timedelta(days=config.audit.retention_days),
        clock=core.clock,
        reactor=reactor,
    )
    if config.gc.daily:
        yield DailyCollection(
            catalog=core.catalog,
            registry=core.registry,
            collector=core.collector,
            jobs=core.jobs,
            clock=core.clock,
            reactor=reactor,
        )


def flushers(identification: Identification, reactor: Any) -> Iterator[IService]:
    """Periodic writes of token uses and audit rows, which are collected in memory."""
    trail = identification.trail
    yield Flusher(identification.uses.flush, FLUSH_EVERY_S, reactor)
    yield Flusher(trail.flush, FLUSH_S, reactor)
    yield Flusher(trail.sum_up, SUM_S, reactor, last=trail.close)


class Flusher(Service):
    """Calls ``flush`` every ``every_s`` seconds, and ``last`` (by default ``flush``) at the stop."""

    def __init__(
        self,
        flush: Callable[[], Coroutine[Any, Any, None]],
        every_s: float,
        reactor: Any,
        *,
        last: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._last = last or flush
        self._every_s = every_s
        self._loop = LoopingCall(self._run, flush)
        self._loop.clock = reactor

    def startService(self) -> None:
        """Start the periodic calls."""
        super().startService()  # type: ignore[no-untyped-call]
        self._loop.start(self._every_s, now=False)

    def stopService(self) -> Deferred[None]:
        """Stop them and write what is left."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._loop.stop()
        return self._run(self._last)

    def _run(self, flush: Callable[[], Coroutine[Any, Any, None]]) -> Deferred[None]:
        # A failed flush is tried again the next time.
        return Deferred.fromCoroutine(flush()).addErrback(
            lambda failure: log.failure("what gathered in memory could not be written", failure=failure)
        )
