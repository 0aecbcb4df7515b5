"""The routes to the statistics and the state of the whole server."""

from __future__ import annotations

import platform
from datetime import UTC, datetime, timedelta

import apsw

import twisted
from pkgrepo import __version__
from pkgrepo.management.api.access_rules import METRICS_READERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.api.timings import Histogram
from pkgrepo.management.server.health import HealthChecks
from pkgrepo.model import RepositoryType
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.storage.catalog.usage.cache_counts import DAY_MS
from pkgrepo.storage.catalog.usage.daily import DayCounts, daily_counts

from .schema import CheckRecord, DayRecord, ServerState, ServerStatistics, TimesRecord, UpstreamStateRecord

MOST_DAYS = 366
DAYS = 30
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class WholeServer(Handlers):
    """Shows how the server is used, and how it is."""

    table = Table("server")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._checks = HealthChecks(services)

    @table.route(
        "GET",
        "/statistics",
        access=METRICS_READERS,
        summary="Show how the server was used, by day",
        answer=ServerStatistics,
        query=[Parameter("days", f"The number of days, 1 to {MOST_DAYS}; {DAYS} by default.", "integer")],
    )
    async def statistics(self, call: Call) -> ServerStatistics:
        """Downloads, uploads and what caches answered on each of the last days (UTC), over all repositories."""
        today = call.now_ms // DAY_MS
        first = today + 1 - call.integer("days", DAYS, 1, MOST_DAYS)
        found = await self._catalog.scan(daily_counts, first)
        return ServerStatistics(
            days=[_day(day, found.get(day, DayCounts())) for day in range(first, today + 1)],
            times=[_times(name, each) for name, each in sorted(self._services.request_times().items())],
        )

    @table.route(
        "GET",
        "/server/state",
        access=SYSTEM_MANAGERS,
        summary="Show the state of the server",
        answer=ServerState,
    )
    async def state(self, _call: Call) -> ServerState:
        """The checks of /readyz with their sentences, versions, the lag of the reactor, and the upstreams."""
        status, checks = await self._checks.run()
        lag = self._services.reactor_lag()
        return ServerState(
            status=status,
            checks=[CheckRecord.from_attributes(each) for each in checks],
            started_at=self._services.started_at,
            versions={
                "pkgrepo": __version__,
                "Python": platform.python_version(),
                "Twisted": twisted.__version__,
                "SQLite": apsw.sqlite_lib_version(),
            },
            reactor_lag=_times("reactor", lag),
            upstreams=self._upstreams(),
        )

    def _upstreams(self) -> list[UpstreamStateRecord]:
        """The routes of all proxy repositories that this process has asked."""
        health = self._services.shared.proxy.upstreams.health
        found = []
        for repository in self._registry.listed():
            if repository.type is not RepositoryType.PROXY:
                continue
            for route in proxy_config_of(repository).routes:
                known = health(repository.id, route)
                if known is not None:
                    found.append(
                        UpstreamStateRecord.from_attributes(known, repository=repository.path, route=route.name)
                    )
        return found


def _day(day: int, counts: DayCounts) -> DayRecord:
    return DayRecord.from_attributes(counts, day=(EPOCH + timedelta(days=day)).date(), hit_ratio=counts.hit_ratio)


def _times(name: str, histogram: Histogram) -> TimesRecord:
    p50, p90, p99 = (histogram.quantile(part) for part in (0.5, 0.9, 0.99))
    return TimesRecord(name=name, count=histogram.total, p50_s=p50, p90_s=p90, p99_s=p99)
