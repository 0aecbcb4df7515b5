"""The lag of the reactor: how late its delayed calls run, because something blocked it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily, Metric
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from pkgrepo.concurrency.services import Service
from pkgrepo.management.api.timings import Histogram

from .exposition import Families, cumulative

STEP_S = 0.5
BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)  # seconds


class ReactorLag(Service):
    """A call every ``STEP_S`` seconds that records how late it runs."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._due = 0.0
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0
        self._loop = LoopingCall(self._tick)
        self._loop.clock = reactor

    def startService(self) -> None:
        """Begin to measure."""
        super().startService()
        self._due = self._reactor.seconds() + STEP_S
        self._loop.start(STEP_S, now=False)

    def stopService(self) -> None:
        """Stop measuring."""
        super().stopService()
        if self._loop.running:
            self._loop.stop()

    def _tick(self) -> None:
        now = self._reactor.seconds()
        lag = max(0.0, now - self._due)
        self._due = now + STEP_S
        self._sum += lag
        index = next((number for number, bound in enumerate(BOUNDS) if lag <= bound), len(BOUNDS))
        self._buckets[index] += 1

    def histogram(self) -> Histogram:
        """The lags since the start."""
        return Histogram(BOUNDS, list(self._buckets))

    def snapshot(self) -> Families:
        """See L{MetricSource}."""
        buckets, total_s = list(self._buckets), self._sum

        def families() -> Iterator[Metric]:
            family = HistogramMetricFamily("pkgrepo_reactor_lag_seconds", "Delay of scheduled calls of the reactor.")
            family.add_metric([], cumulative(BOUNDS, buckets), total_s)
            yield family

        return families
