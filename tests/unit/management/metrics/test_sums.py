"""Sums of the metrics of several processes."""

from __future__ import annotations

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from pkgrepo.management.metrics.sums import exposition, growing, summed


def text(requests: int, connections: int, expiry: float, files: float) -> bytes:
    counter = CounterMetricFamily("pkgrepo_http_requests", "Finished requests.", labels=["code", "path"])
    counter.add_metric(["200", 'a "b"\n'], requests)
    histogram = HistogramMetricFamily("pkgrepo_reactor_lag_seconds", "Lag.")
    histogram.add_metric([], [("0.1", float(requests)), ("+Inf", float(requests + 1))], 0.5)
    size = GaugeMetricFamily("pkgrepo_file_bytes", "Size.", labels=["file"])
    size.add_metric(["wal"], files)
    return exposition(
        [
            counter,
            histogram,
            GaugeMetricFamily("pkgrepo_connections", "Open connections.", value=connections),
            GaugeMetricFamily("pkgrepo_certificate_expiry_timestamp_seconds", "Expiry.", value=expiry),
            size,
        ]
    )


def values(families: list[Metric]) -> dict[str, float]:
    return {
        f"{sample.name}{''.join(sorted(sample.labels.values()))}": sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_are_added_and_what_is_shared_is_not() -> None:
    found = values(summed([text(3, 1, 500.0, 10), text(4, 2, 400.0, 20)]))
    assert found == {
        'pkgrepo_http_requests_total200a "b"\n': 7,
        "pkgrepo_reactor_lag_seconds_bucket0.1": 7,
        "pkgrepo_reactor_lag_seconds_bucket+Inf": 9,
        "pkgrepo_reactor_lag_seconds_count": 9,
        "pkgrepo_reactor_lag_seconds_sum": 1,
        "pkgrepo_connections": 3,
        "pkgrepo_certificate_expiry_timestamp_seconds": 400,
        "pkgrepo_file_byteswal": 20,
    }


def test_only_what_grows_is_left_of_processes_that_ended() -> None:
    left = growing([b"", text(3, 1, 500.0, 10), text(4, 2, 400.0, 20)])
    assert set(values(summed([left, left]))) == {
        'pkgrepo_http_requests_total200a "b"\n',
        "pkgrepo_reactor_lag_seconds_bucket0.1",
        "pkgrepo_reactor_lag_seconds_bucket+Inf",
        "pkgrepo_reactor_lag_seconds_count",
        "pkgrepo_reactor_lag_seconds_sum",
    }
    assert values(summed([left, text(1, 1, 1.0, 1)]))['pkgrepo_http_requests_total200a "b"\n'] == 8


@pytest.mark.parametrize("bad", [b"x{", b'x{a="b} 1'], ids=["open", "quote"])
def test_what_is_no_exposition_is_an_error(bad: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own
        summed([bad])
