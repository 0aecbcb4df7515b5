"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from attrs import frozen
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.layout_pending import Backlog, backlog
from pkgrepo.storage.catalog.repositories import all_repositories

from .services import ManagementServices
from .who import WATCHERS

NO_STORE = ((b"Cache-Control", b"no-store"),)


class Figures(Protocol):
    """Something that counts."""

    def collect(self) -> Iterator[Metric]:
        """The families of figures; never waits."""


@frozen(eq=False)
class _State(Collector):
    """What is gauged when somebody asks, beside what was counted before."""

    families: tuple[Metric, ...]
    counted: tuple[Figures, ...]

    def collect(self) -> Iterator[Metric]:
        yield from self.families
        for figures in self.counted:
            yield from figures.collect()


class Metrics:
    """Answers ``/metrics``, for system managers and tokens with the scope ``metrics``."""

    def __init__(self, services: ManagementServices, counted: Iterable[Figures]) -> None:
        self._services = services
        self._counted = tuple(counted)

    async def answer(self, request: Request) -> Answer:
        """All figures, in the text format."""
        services = self._services
        identity = await services.access.identify(request)
        WATCHERS.check(identity, "GET", services.authorizer)
        catalog: ICatalog = services.catalog
        repositories = await catalog.scan(all_repositories)
        layout = self._layout_gauges(await catalog.scan(backlog))
        registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_State((*self._gauged(repositories), *layout), self._counted))
        return Answer(
            body=generate_latest(registry), content_type=CONTENT_TYPE_LATEST.encode("ascii"), headers=NO_STORE
        )

    def _layout_gauges(self, found: Backlog) -> tuple[Metric, ...]:
        behind = GaugeMetricFamily(
            "pkgrepo_layout_backlog", "Changes that the readable layout does not show yet.", value=found.behind
        )
        failed = GaugeMetricFamily(
            "pkgrepo_layout_failed",
            "Entries that the readable layout could not show, and tries again.",
            labels=["storage"],
        )
        for storage in self._services.registry.storages():
            failed.add_metric([storage.name], found.failed.get(storage.id, 0))
        return behind, failed

    def _gauged(self, repositories: Iterable[Repository]) -> tuple[Metric, ...]:
        build = GaugeMetricFamily("pkgrepo_build_info", "What runs here.", labels=["version"])
        build.add_metric([self._services.settings.version], 1)
        size = GaugeMetricFamily("pkgrepo_repository_bytes", "Bytes of published files.", labels=["repo"])
        packages = GaugeMetricFamily("pkgrepo_repository_packages", "Packages.", labels=["repo"])
        for repository in repositories:
            size.add_metric([repository.path], repository.bytes_used)
            packages.add_metric([repository.path], repository.package_count)
        free = GaugeMetricFamily("pkgrepo_disk_free_bytes", "Room left for a storage.", labels=["storage"])
        for storage in self._services.registry.storages():
            store = self._services.stores.opened(storage.id)
            if store is not None:
                free.add_metric([storage.name], store.capacity()[0])
        return build, size, packages, free
