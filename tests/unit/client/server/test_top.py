"""The figures of the live view come from two looks at the metrics."""

from datetime import UTC, datetime

import pytest

from pkgrepo.client.http import Failed
from pkgrepo.client.printer import width_of
from pkgrepo.client.server.top import Samples, find_quantile, render_screen

METRICS = """# TYPE pkgrepo_build_info gauge
pkgrepo_build_info{{version="1.2"}} 1
process_start_time_seconds {started}
process_cpu_seconds_total {cpu}
process_resident_memory_bytes 1048576
pkgrepo_disk_free_bytes{{storage="main"}} 2048
pkgrepo_upstream_up{{repo="main/mirror",route="up"}} 0
pkgrepo_http_requests_total{{method="GET",area="repositories",code="200",format="npm"}} {ok}
pkgrepo_http_requests_total{{method="GET",area="repositories",code="404",format="npm"}} {missing}
pkgrepo_http_requests_total{{method="GET",area="api",code="500",format=""}} 7
pkgrepo_http_request_seconds_bucket{{method="GET",area="repositories",code="200",format="npm",le="0.001"}} {fast}
pkgrepo_http_request_seconds_bucket{{method="GET",area="repositories",code="200",format="npm",le="+Inf"}} {ok}
pkgrepo_cache_requests_total{{format="npm",result="hit"}} {ok}
pkgrepo_cache_requests_total{{format="npm",result="miss"}} {missing}
"""


def look(ok=0, missing=0, fast=0, cpu=0.0, started=1000):
    return Samples.parse(METRICS.format(ok=ok, missing=missing, fast=fast, cpu=cpu, started=started))


def test_counters_become_rates():
    figures = look(120, 20, 110, cpu=3.0).since(look(20, 10, 20, cpu=1.0), 10)
    (row,) = figures.requests  # what did not grow is left out
    assert (row.area, row.format, row.per_second, row.refused_per_second) == ("repositories", "npm", 11.0, 1.0)
    assert figures.total.per_second == 11.0
    assert figures.cpu == pytest.approx(0.2)
    assert figures.cache_hits == pytest.approx(100 / 110)
    assert (row.p50_s, row.p99_s) == (0.001, float("inf"))
    assert figures.upstreams_down == ["main/mirror up"]
    assert figures.disk_free == {"main": 2048}


def test_a_server_that_started_again_counts_from_zero():
    figures = look(5, 0, 5, started=2000).since(look(100, 0, 100, started=1000), 5)
    assert figures.total.per_second == pytest.approx((5 + 7) / 5)


def test_a_replaced_process_does_not_count_from_zero():
    figures = look(130, 0, 100, started=2000).since(look(100, 0, 100, started=1000), 5)
    assert figures.total.per_second == pytest.approx(30 / 5)


def test_nothing_happened():
    figures = look(1).since(look(1), 2)
    assert figures.requests == []
    assert figures.total.p99_s is None
    assert "no requests" in render_screen("http://x", figures, 80, datetime(2026, 1, 1, tzinfo=UTC))


def test_the_screen_fits_the_terminal():
    figures = look(120, 20, 110).since(look(), 1)
    lines = render_screen("http://x", figures, 60)
    assert max(map(width_of, lines)) <= 60
    assert any(line.startswith("repositories") for line in lines)
    assert "upstreams down: main/mirror up" in lines


@pytest.mark.parametrize("text", ["", "<html></html>", "a{ 1", "process_cpu_seconds_total 1"])
def test_what_is_no_metrics_is_said(text):
    with pytest.raises(Failed):
        Samples.parse(text)


def test_a_quantile_is_the_bound_of_its_bucket():
    counts = {0.1: 50, 1.0: 99, float("inf"): 100}
    assert find_quantile(counts, 0.5) == 0.1
    assert find_quantile(counts, 0.99) == 1.0
    assert find_quantile(counts, 1.0) == float("inf")
    assert find_quantile({}, 0.5) is None
    assert find_quantile({0.1: 0.0}, 0.5) is None
