"""
Counts of every request, taken where the access log is written.

A request costs one look-up in a dictionary here; families of figures are made when somebody reads them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from attrs import Factory, define
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from pkgrepo.http.accesslog import CLIENT_LEFT
from pkgrepo.http.request import Request
from pkgrepo.http.site import AccessLog
from pkgrepo.repositories.registry import Registry

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)  # seconds
AREAS = frozenset({"repositories", "api", "healthz", "readyz", "health", "metrics", "v2", "token", "problems"})
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"})

_Key = tuple[str, str, int, str]


@define
class _Figures:
    """Requests that have method, area, status and format in common."""

    count: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    buckets: list[int] = Factory(lambda: [0] * (len(BOUNDS) + 1))


class RequestFigures:
    """
    Counts requests, and passes them on to the access log proper, if there is one.

    No label holds what a client made up: an unknown first word of a path counts as ``other``, as unknown methods do.
    """

    def __init__(self, registry: Registry, log: AccessLog | None = None) -> None:
        self._registry = registry
        self._log = log
        self._figures: dict[_Key, _Figures] = {}
        self._formats: dict[str, str] = {}
        self._refused = 0
        self._login_failures = 0
        self._cache: dict[str, int] = {}

    def request(self, request: Request) -> None:
        """A request is over."""
        code = request.code if request.startedWriting else CLIENT_LEFT
        repository = request.repository
        key = (_method(request), _area(request), code, self._format_of(repository) if repository else "")
        figures = self._figures.get(key)
        if figures is None:
            figures = self._figures[key] = _Figures()
        elapsed = request.site.seconds() - request.started
        figures.count += 1
        figures.sent += request.sentLength
        if not request.body_is_empty:
            figures.received += request.body.received
        figures.seconds += elapsed
        figures.buckets[bisect_left(BOUNDS, elapsed)] += 1
        if request.cache:
            self._cache[request.cache] = self._cache.get(request.cache, 0) + 1
        if code == 401 and request.header(b"authorization") is not None:
            self._login_failures += 1
        if self._log is not None:
            self._log.request(request)

    def refused(self, client_address: str, status: int, sentence: str) -> None:
        """A head made no request."""
        self._refused += 1
        if self._log is not None:
            self._log.refused(client_address, status, sentence)

    def collect(self) -> Iterator[Metric]:
        """The families of figures, for Prometheus."""
        labels = ["method", "area", "code", "format"]
        total = CounterMetricFamily("pkgrepo_http_requests", "Requests answered.", labels=labels)
        sent = CounterMetricFamily("pkgrepo_sent_bytes", "Bytes of bodies sent.", labels=["area", "format"])
        received = CounterMetricFamily("pkgrepo_received_bytes", "Bytes of bodies received.", labels=["area", "format"])
        seconds = HistogramMetricFamily(
            "pkgrepo_http_request_seconds", "From the head of a request to the end of its answer.", labels=["area"]
        )
        volumes: dict[tuple[str, str], list[int]] = {}
        times: dict[str, _Figures] = {}
        for (method, area, code, format_), figures in sorted(self._figures.items()):
            total.add_metric([method, area, str(code), format_], figures.count)
            volume = volumes.setdefault((area, format_), [0, 0])
            volume[0] += figures.sent
            volume[1] += figures.received
            whole = times.setdefault(area, _Figures())
            whole.seconds += figures.seconds
            whole.buckets = [a + b for a, b in zip(whole.buckets, figures.buckets, strict=True)]
        for names, (out, into) in volumes.items():
            sent.add_metric(list(names), out)
            received.add_metric(list(names), into)
        for area, whole in times.items():
            seconds.add_metric([area], _cumulated(whole.buckets), whole.seconds)
        yield from (total, sent, received, seconds)
        yield CounterMetricFamily(
            "pkgrepo_http_refused_heads", "Requests whose head could not be read.", value=self._refused
        )
        yield CounterMetricFamily(
            "pkgrepo_login_failures", "Requests with credentials that were wrong.", value=self._login_failures
        )
        cache = CounterMetricFamily("pkgrepo_cache_requests", "Answers by cache verdict.", labels=["result"])
        for verdict, count in sorted(self._cache.items()):
            cache.add_metric([verdict], count)
        yield cache

    def _format_of(self, path: str) -> str:
        known = self._formats.get(path)
        if known is None:  # asking the registry each time would cost as much as all the rest
            self._formats = {repository.path: repository.format for repository in self._registry.all()}
            known = self._formats.get(path, "")
        return known


def _method(request: Request) -> str:
    method = request.method.decode("latin-1")
    return method if method in METHODS else "other"


def _area(request: Request) -> str:
    word = request.raw_path[1:].partition(b"/")[0].decode("latin-1")
    return word if word in AREAS else "other"


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
        total += count
        found.append((bound, total))
    return found
