"""What a server does besides answering requests: periodic writes and maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from twisted.application.service import IService

from pkgrepo.auth.tokens.uses import FLUSH_EVERY_S
from pkgrepo.concurrency.services import PeriodicTask, Work
from pkgrepo.config import Config
from pkgrepo.management.api.audit_log import COUNTS_S, FLUSH_S
from pkgrepo.repositories.upkeep.housekeeping import DailyCollection, Housekeeping
from pkgrepo.repositories.upkeep.sweep import Sweep

from .core import Core
from .identification import Identification

SESSIONS_S = 3600.0


def maintenance(core: Core, identification: Identification, config: Config, reactor: Any) -> Iterator[IService]:
    """Housekeeping, the removal of sessions that ended, and the daily garbage collection unless it is off."""
    yield PeriodicTask(identification.sessions.remove_old, reactor, every_s=SESSIONS_S, what="removing old sessions")
    yield Housekeeping(
        core.context,
        sweep=Sweep(core.context),
        exclusive_since=core.exclusive_since,
        audit_kept=timedelta(days=config.audit.retention_days),
        reactor=reactor,
    )
    if config.gc.daily:
        yield DailyCollection(core.context, collector=core.collector, jobs=core.jobs, reactor=reactor)


def flushers(identification: Identification, reactor: Any) -> Iterator[IService]:
    """Periodic writes of token uses and audit rows, which are collected in memory."""
    audit_log = identification.audit_log

    def flusher(flush: Work, every_s: float, last: Work) -> IService:
        what = "what gathered in memory"
        failed = "{what} could not be written"
        return PeriodicTask(flush, reactor, every_s=every_s, what=what, failed=failed, last=last)

    yield flusher(identification.uses.flush, FLUSH_EVERY_S, last=identification.uses.flush)
    yield flusher(audit_log.flush, FLUSH_S, last=audit_log.flush)
    yield flusher(audit_log.flush_own, COUNTS_S, last=audit_log.close)
