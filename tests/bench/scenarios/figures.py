"""Figures that rounds of several formats have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.arena import GROWTH, P50, P99, RATE
from tests.bench.clients.load import percentile
from tests.bench.measure import MIB, Watch


def of_requests(watch: Watch, took_ms: Sequence[float]) -> Mapping[str, float]:
    """Requests a second, CPU milliseconds a request, latencies and the growth of memory."""
    return {
        RATE.key: len(took_ms) / watch.cost.seconds,
        "cpu_ms": watch.cost.cpu_s * 1e3 / len(took_ms),
        P50.key: percentile(took_ms, 50),
        P99.key: percentile(took_ms, 99),
        GROWTH.key: watch.cost.rss_growth / MIB,
    }
