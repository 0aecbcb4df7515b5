"""
Answers ``/metrics`` in the text format of Prometheus.

Values are copied in the reactor thread. A thread of the disk pool does the rest: it makes the metric families, reads
sizes of files and file systems, and renders the text. ``pkgrepo/docs/metrics.md`` explains each metric.

Where several processes serve, each has metrics of its own, which the answer sums up (see ``sums``), and all have those
of the catalog, which are read once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from pkgrepo import __version__
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import StorageFailed
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response
from pkgrepo.interfaces import IBlobStore, Reader
from pkgrepo.management.api.access_rules import METRICS_READERS
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.metrics.sums import AllMetrics, Families, summed
from pkgrepo.model import Repository, RepositoryType, Storage, UpstreamState
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.replication.status import ReplicaStatus, read_status
from pkgrepo.repositories.advisories.known import Knowledge
from pkgrepo.repositories.backup.runs import BackupState
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.upkeep.twins import TwinState
from pkgrepo.storage.catalog.descriptions import count_undescribed
from pkgrepo.storage.catalog.download_log import counted_rows
from pkgrepo.storage.catalog.server import policy
from pkgrepo.storage.catalog.server.layout_pending import Backlog, backlog
from pkgrepo.storage.catalog.server.repositories import all_repositories
from pkgrepo.storage.catalog.usage_counts import CacheCounts, all_cache_counts
from pkgrepo.webhooks.sender import WebhookSender

_COUNTS = {"hit": "hits", "miss": "misses", "confirmed": "confirmed", "stale": "stale", "absent": "absent"}

Gather = Callable[[bytes], Awaitable[Sequence[bytes]]]  # sends the text of this process, and returns those of others


class MetricSource(Protocol):
    """A source of metrics."""

    def snapshot(self) -> Families:
        """Copy the values, in the reactor thread; the function returned makes metric families of them in any thread."""


class ProcessMetrics:
    """The metrics of this process. ``gather`` gets those of the other processes; it is None if there are no others."""

    def __init__(self, sources: Iterable[MetricSource], pools: Pools, gather: Gather | None = None) -> None:
        self._sources = tuple(sources)
        self._pools = pools
        self._gather = gather

    async def text(self) -> bytes:
        """The metrics of this process, in the text format."""
        return await self._pools.disk(_render, [each.snapshot() for each in self._sources], own=True)

    async def render(self, families: Sequence[Families]) -> bytes:
        """All metrics in the text format: ``families``, and those of all processes."""
        if self._gather is None:
            own = [each.snapshot() for each in self._sources]
            return await self._pools.disk(_render, [*families, *own], own=True, platform=True)
        mine = await self.text()
        texts = [mine, *await self._gather(mine)]
        return await self._pools.disk(_render, [*families, lambda: summed(texts)], platform=True)


async def answer_metrics(services: ManagementServices, processes: ProcessMetrics, request: Request) -> Response:
    """All metrics in the text format, for system managers and tokens with the scope ``metrics``."""
    identity = await services.shared.access.identify(request)
    await METRICS_READERS.check(identity, "GET", services.callers.authorizer)
    repositories = await services.shared.catalog.scan(all_repositories)
    counts = await services.shared.catalog.scan(all_cache_counts)
    matches = await services.shared.catalog.scan(policy.counts_since, 0)
    behind = await services.shared.catalog.scan(backlog)
    undescribed = await services.shared.catalog.scan(count_undescribed)
    known = await services.shared.advisories.knowledge()
    logged = await services.shared.catalog.look(counted_rows)
    ecosystems = sorted(each.ecosystem.name for each in services.formats.values() if each.ecosystem is not None)
    replicas = await services.shared.catalog.scan(_read_replicas, repositories, services.shared.clock.now_ms())
    state, problem = await services.backups.state(), await services.backups.problem()
    twins = {name: await services.twins.state(name) for name in services.twins.plans}
    await services.shared.registry.refresh()
    stores = [(each, services.maintenance.stores.opened(each.id)) for each in services.shared.registry.storages()]
    families: list[Families] = [
        _build,
        lambda: _repositories([each for each in repositories if each.stage is None]),
        lambda: _storages(stores),
        lambda: _layout([each for each, _ in stores], behind),
        lambda: _searches(undescribed),
        lambda: _proxies(counts),
        lambda: _replicas(replicas),
        lambda: _rules(matches),
        lambda: _advisories(known, ecosystems),
        lambda: _download_log(logged),
        lambda: _backups(state, wrong=bool(problem), planned=services.backups.plan is not None),
        lambda: _twins(twins),
    ]
    body = await processes.render(families)
    return Response(body=body, content_type=CONTENT_TYPE_LATEST.encode("ascii"), headers=NO_STORE)


def cumulative(bounds: Sequence[float], buckets: Sequence[int]) -> list[tuple[str, float]]:
    """Cumulative buckets of a histogram, as Prometheus wants them: the count up to each bound, and in total."""
    return list(zip((*map(str, bounds), "+Inf"), map(float, accumulate(buckets)), strict=True))


def _render(families: Sequence[Families], *, own: bool = False, platform: bool = False) -> bytes:
    """The text of some families, with those about this process (``own``), and about its platform."""
    registry = CollectorRegistry(auto_describe=False)
    if own:
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
    if platform:
        PlatformCollector(registry=registry)
    registry.register(AllMetrics(families))
    return generate_latest(registry)


def family(
    kind: type[CounterMetricFamily | GaugeMetricFamily],
    name: str,
    text: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str], float]],
) -> Metric:
    """A family of metrics with these samples, each with the values of its labels."""
    found = kind(name, text, labels=labels)
    for values, number in samples:
        found.add_metric(values, number)
    return found


gauge = partial(family, GaugeMetricFamily)
counter = partial(family, CounterMetricFamily)


def _advisories(known: Knowledge, ecosystems: Sequence[str]) -> Iterator[Metric]:
    complete: list[tuple[list[str], float]] = [([], int(known.complete))] if known.has_source else []
    text = "1 if the advisories are loaded and young enough, else 0."
    yield gauge("pkgrepo_advisories_complete", text, [], complete)
    exported: list[tuple[list[str], float]] = []
    if known.exported_at is not None:
        exported = [([], known.exported_at.timestamp())]
    text = "Time of the export of advisories (Unix time)."
    yield gauge("pkgrepo_advisories_exported_timestamp_seconds", text, [], exported)
    records = [([name], known.records.get(name, 0)) for name in ecosystems]
    yield gauge("pkgrepo_advisories_records", "Stored advisories.", ["ecosystem"], records)


def _download_log(rows: int | None) -> Iterator[Metric]:
    samples: list[tuple[list[str], float]] = [] if rows is None else [([], rows)]
    yield gauge("pkgrepo_download_log_rows", "Rows of the log of downloads, counted once an hour.", [], samples)


def _backups(state: BackupState, *, wrong: bool, planned: bool) -> Iterator[Metric]:
    sound: list[tuple[list[str], float]] = [([], int(not wrong))] if planned else []
    yield gauge("pkgrepo_backup_sound", "1 if backups are made and their checks are green, else 0.", [], sound)
    times = {
        "pkgrepo_backup_made_timestamp_seconds": ("Time of the newest backup (Unix time).", state.made_ms),
        "pkgrepo_backup_proved_timestamp_seconds": ("Time of the last green check (Unix time).", state.proved_ms),
    }
    for name, (text, ms) in times.items():
        yield gauge(name, text, [], [([], ms / 1000)] if ms else [])
    yield gauge(
        "pkgrepo_backup_bytes", "Stored bytes in the newest backup.", [], [([], state.bytes)] if state.made_ms else []
    )


def _twins(states: Mapping[str, TwinState]) -> Iterator[Metric]:
    sound = [([name], float(not each.failed_ms)) for name, each in states.items()]
    yield gauge("pkgrepo_twin_sound", "1 if the last run of a twin succeeded, else 0.", ["twin"], sound)
    written = [([name], each.written_ms / 1000) for name, each in states.items() if each.written_ms]
    text = "Time of the last successful run of a twin (Unix time)."
    yield gauge("pkgrepo_twin_written_timestamp_seconds", text, ["twin"], written)
    files = [([name], float(each.files)) for name, each in states.items() if each.written_ms]
    yield gauge("pkgrepo_twin_files", "Files of a twin.", ["twin"], files)


def _build() -> Iterator[Metric]:
    yield gauge("pkgrepo_build_info", "Version of the running server.", ["version"], [([__version__], 1)])


def _repositories(every: Sequence[Repository]) -> Iterator[Metric]:
    sizes = [([each.path], each.bytes_used) for each in every]
    yield gauge("pkgrepo_repository_bytes", "Total size of published files.", ["repo"], sizes)
    counts = [([each.path], each.package_count) for each in every]
    yield gauge("pkgrepo_repository_packages", "Number of packages.", ["repo"], counts)


def _proxies(every: Sequence[tuple[str, CacheCounts]]) -> Iterator[Metric]:
    results = [([path, result], getattr(each, name)) for path, each in every for result, name in _COUNTS.items()]
    text = "Requests to proxy repositories, as they were answered."
    yield counter("pkgrepo_proxy_requests", text, ["repo", "result"], results)
    saved = [([path], each.saved_bytes) for path, each in every]
    yield counter("pkgrepo_proxy_saved_bytes", "Size of the kept files that were sent.", ["repo"], saved)
    fetched = [([path], each.fetched_bytes) for path, each in every]
    yield counter("pkgrepo_upstream_bytes", "Bytes that upstreams sent.", ["repo"], fetched)
    seconds = [([path], each.upstream_ms / 1000) for path, each in every]
    yield counter("pkgrepo_upstream_seconds", "Time of requests to upstreams.", ["repo"], seconds)


def _read_replicas(r: Reader, repositories: Sequence[Repository], now_ms: int) -> list[tuple[str, ReplicaStatus]]:
    found = ((each.path, read_status(r, each, now_ms)) for each in repositories)
    return [(path, status) for path, status in found if status is not None]


def _replicas(every: Sequence[tuple[str, ReplicaStatus]]) -> Iterator[Metric]:
    lags = [([path], each.lag_s) for path, each in every if each.lag_s is not None]
    text = "Since when something is left to do of what a repository follows; 0 if nothing is."
    yield gauge("pkgrepo_replication_lag_seconds", text, ["repo"], lags)
    text = "Events of another server that are not read, and tasks that are not done."
    yield gauge("pkgrepo_replication_lag_events", text, ["repo"], [([path], each.lag_events) for path, each in every])
    failed = [([path], each.failed_tasks) for path, each in every]
    yield gauge("pkgrepo_replication_failed_tasks", "Tasks that failed and are tried again.", ["repo"], failed)
    up = [([path], int(each.state in ("comparing", "following"))) for path, each in every]
    yield gauge("pkgrepo_replication_up", "1 while a repository follows another one, else 0.", ["repo"], up)


def _rules(matches: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    samples = [([owner, rule], count) for (owner, rule), count in sorted(matches.items())]
    yield counter("pkgrepo_policy_matches", "Requests that a rule matched.", ["owner", "rule"], samples)


class UpstreamMetrics:
    """Whether each route that was used takes requests."""

    def __init__(self, upstreams: Upstreams, registry: Registry) -> None:
        self._upstreams = upstreams
        self._registry = registry

    def snapshot(self) -> Families:
        """The states of the routes."""
        states = [
            (repository.path, route.name, health.state)
            for repository in self._registry.all()
            if repository.type is RepositoryType.PROXY
            for route in proxy_config_of(repository).routes
            if (health := self._upstreams.health(repository.id, route)) is not None
        ]

        samples = [([path, route], int(state is UpstreamState.CLOSED)) for path, route, state in states]
        text = "1 if requests are sent to a route, 0 if it failed."
        return lambda: [gauge("pkgrepo_upstream_up", text, ["repo", "route"], samples)]


class WebhookMetrics:
    """The attempts to deliver events to webhooks."""

    def __init__(self, sender: WebhookSender) -> None:
        self._sender = sender

    def snapshot(self) -> Families:
        """The numbers of attempts of this process."""
        samples = [([result], count) for result, count in self._sender.attempts.items()]
        text = "Attempts to deliver events to webhooks."
        return lambda: [counter("pkgrepo_webhook_deliveries", text, ["result"], samples)]


class DirectoryMetrics:
    """The numbers of logins that directories were asked for."""

    def __init__(self, outcomes: Mapping[str, int]) -> None:
        self._outcomes = outcomes

    def snapshot(self) -> Families:
        """The numbers of this process."""
        samples = [([result], count) for result, count in self._outcomes.items()]
        text = "Logins that directories (LDAP) were asked for."
        return lambda: [counter("pkgrepo_directory_logins", text, ["result"], samples)]


def _storages(stores: Sequence[tuple[Storage, IBlobStore | None]]) -> Iterator[Metric]:
    active = [([storage.name], int(storage.active)) for storage, _ in stores]
    yield gauge("pkgrepo_storage_active", "1 if the storage is active, else 0.", ["storage"], active)
    rooms = [([storage.name], room) for storage, store in stores if (room := _capacity(store)) is not None]
    free, total = ([(name, room[index]) for name, room in rooms] for index in (0, 1))
    yield gauge("pkgrepo_disk_free_bytes", "Free space on the file system of a storage.", ["storage"], free)
    yield gauge("pkgrepo_disk_bytes", "Size of the file system of a storage.", ["storage"], total)


def _capacity(store: IBlobStore | None) -> tuple[int, int] | None:
    try:
        return None if store is None else store.capacity()
    except StorageFailed:
        return None


def _searches(undescribed: int) -> Iterator[Metric]:
    text = "Events not yet followed for what searches know; a search follows them first, for a second at most."
    yield GaugeMetricFamily("pkgrepo_search_backlog", text, value=undescribed)


def _layout(storages: Iterable[Storage], found: Backlog) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "pkgrepo_layout_backlog", "Changes not yet written to the readable layout.", value=found.behind
    )
    failed = [([each.name], found.failed.get(each.id, 0)) for each in storages]
    text = "Entries that could not be written to the readable layout and are retried."
    yield gauge("pkgrepo_layout_failed", text, ["storage"], failed)
