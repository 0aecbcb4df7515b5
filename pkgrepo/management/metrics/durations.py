"""
Counters and latencies of requests, counted where the access log is written, and the lag of the reactor.

Counting a request costs one look-up in a dictionary; metric families are made when ``/metrics`` is read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter

from attrs import Factory, define, evolve
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from pkgrepo.concurrency.services import Service
from pkgrepo.http.access_log import CLIENT_LEFT
from pkgrepo.http.repeats import LogRepeat
from pkgrepo.http.request import Request
from pkgrepo.http.site import AccessLog
from pkgrepo.management.api.services import Histogram
from pkgrepo.management.metrics.exposition import cumulative
from pkgrepo.management.metrics.sums import Families
from pkgrepo.repositories.registry import Registry

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)  # seconds
AREAS = frozenset({"repositories", "api", "healthz", "readyz", "health", "metrics", "v2", "token", "problems"})
READS = ("GET", "HEAD")
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"})

_Key = tuple[str, str, int, str]
STEP_S = 0.5
LAG_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)  # seconds


@define
class _Counters:
    """Counters of requests with one method, area, status and format; ``hits`` were answered from the response cache."""

    count: int = 0
    hits: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    buckets: list[int] = Factory(lambda: [0] * (len(BOUNDS) + 1))

    def add(self, seconds: float, sent: int, *, hit: bool) -> None:
        """Count a request that took this long, with this many bytes of the response's body."""
        self.count += 1
        self.hits += hit
        self.sent += sent
        self.seconds += seconds
        self.buckets[bisect_left(BOUNDS, seconds)] += 1


class RequestMetrics:
    """
    Counts requests, and passes them on to the access log, if there is one.

    Labels have a fixed set of values: an unknown method, or first segment of a path, counts as ``other``.
    """

    def __init__(self, registry: Registry, log: AccessLog | None = None) -> None:
        self._registry = registry
        self._log = log
        self._counters: dict[_Key, _Counters] = {}
        self._formats: dict[str, str] = {}
        self._serial: int | None = None
        self._refused = 0
        self._login_failures = 0

    def request(self, request: Request) -> None:
        """Count a finished request."""
        counters = self._counters_of(request)
        counters.add(request.site.seconds() - request.started, request.sentLength, hit=bool(request.cache))
        if not request.body_is_empty:
            counters.received += request.body.received
        if request.code == 401 and request.header(b"authorization") is not None:
            self._login_failures += 1
        if self._log is not None:
            self._log.request(request)

    def repeater(self, request: Request) -> LogRepeat:
        """A function that counts a further request with the same bytes as this one, which has no wrong credentials."""
        counters, sent, hit = self._counters_of(request), request.sentLength, bool(request.cache)
        log = None if self._log is None else self._log.repeater(request)

        def count(client_address: str, request_id: bytes, seconds: float) -> None:
            counters.add(seconds, sent, hit=hit)
            if log is not None:
                log(client_address, request_id, seconds)

        return count

    def refused(self, client_address: str, status: int, sentence: str) -> None:
        """Count a refused request head."""
        self._refused += 1
        if self._log is not None:
            self._log.refused(client_address, status, sentence)

    def times(self) -> dict[str, Histogram]:
        """The durations of successful reads by format; those outside repositories are ``other``."""
        found: dict[str, Histogram] = {}
        for (method, _, code, format_), counters in self._counters.items():
            if method in READS and code < 400:
                name = format_ or "other"
                own = Histogram(BOUNDS, list(counters.buckets))
                found[name] = found[name] + own if name in found else own
        return found

    def snapshot(self) -> Families:
        """The counters of all requests."""
        counted = [(key, evolve(each, buckets=list(each.buckets))) for key, each in self._counters.items()]
        refused, failures = self._refused, self._login_failures
        return lambda: _families(counted, refused, failures)

    def _counters_of(self, request: Request) -> _Counters:
        code = request.code if request.startedWriting else CLIENT_LEFT
        repository = request.repository
        key = (_method(request), area(request), code, self._format_of(repository) if repository else "")
        counters = self._counters.get(key)
        if counters is None:
            counters = self._counters[key] = _Counters()
        return counters

    def _format_of(self, path: str) -> str:
        known = self._formats.get(path)
        if known is not None:  # asking the registry each time would cost as much as all other counting
            return known
        serial = self._registry.serial
        if serial != self._serial:  # names of repositories that do not exist must not cause a rebuild for each request
            self._serial = serial
            self._formats = {repository.path: repository.format for repository in self._registry.all()}
        return self._formats.get(path, "")


def _families(counted: list[tuple[_Key, _Counters]], refused: int, failures: int) -> Iterator[Metric]:
    labels = ["method", "area", "code", "format"]
    total = CounterMetricFamily("pkgrepo_http_requests", "Finished requests.", labels=labels)
    seconds = HistogramMetricFamily(
        "pkgrepo_http_request_seconds", "Time from the head of a request to the end of its response.", labels=labels
    )
    sent = CounterMetricFamily("pkgrepo_sent_bytes", "Bytes of response bodies.", labels=["area", "format"])
    received = CounterMetricFamily("pkgrepo_received_bytes", "Bytes of request bodies.", labels=["area", "format"])
    cache = CounterMetricFamily(
        "pkgrepo_cache_requests", "Reads of repositories; hit: from the response cache.", labels=["format", "result"]
    )
    volumes: dict[tuple[str, str], list[int]] = {}
    verdicts: dict[str, list[int]] = {}
    for (method, area, code, format_), counters in sorted(counted, key=itemgetter(0)):
        names = [method, area, str(code), format_]
        total.add_metric(names, counters.count)
        seconds.add_metric(names, cumulative(BOUNDS, counters.buckets), counters.seconds)
        volume = volumes.setdefault((area, format_), [0, 0])
        volume[0] += counters.sent
        volume[1] += counters.received
        if format_ and method in READS:
            verdict = verdicts.setdefault(format_, [0, 0])
            verdict[0] += counters.hits
            verdict[1] += counters.count - counters.hits
    for names_, (out, into) in volumes.items():
        sent.add_metric(list(names_), out)
        received.add_metric(list(names_), into)
    for format_, (hits, misses) in verdicts.items():
        cache.add_metric([format_, "hit"], hits)
        cache.add_metric([format_, "miss"], misses)
    yield from (total, seconds, sent, received, cache)
    yield CounterMetricFamily("pkgrepo_http_refused_heads", "Requests refused because of their head.", value=refused)
    yield CounterMetricFamily("pkgrepo_login_failures", "Requests with wrong credentials.", value=failures)


def _method(request: Request) -> str:
    method = request.method.decode("latin-1")
    return method if method in METHODS else "other"


def area(request: Request) -> str:
    """The first segment of the path if it is one of ``AREAS``, else ``other``."""
    word = request.raw_path[1:].partition(b"/")[0].decode("latin-1")
    return word if word in AREAS else "other"


class ReactorLag(Service):
    """A call every ``STEP_S`` seconds that records how late it runs."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._due = 0.0
        self._buckets = [0] * (len(LAG_BOUNDS) + 1)
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
        index = next((number for number, bound in enumerate(LAG_BOUNDS) if lag <= bound), len(LAG_BOUNDS))
        self._buckets[index] += 1

    def histogram(self) -> Histogram:
        """The lags since the start."""
        return Histogram(LAG_BOUNDS, list(self._buckets))

    def snapshot(self) -> Families:
        """The histogram of the lags."""
        buckets, total_s = list(self._buckets), self._sum

        def families() -> Iterator[Metric]:
            family = HistogramMetricFamily("pkgrepo_reactor_lag_seconds", "Delay of scheduled calls of the reactor.")
            family.add_metric([], cumulative(LAG_BOUNDS, buckets), total_s)
            yield family

        return families
