"""Gauges of connections, caches, the certificate, and the sizes of the server's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.http.repeats import Repeats
from pkgrepo.http.site import Site
from pkgrepo.storage.free_space import free_and_total

from .exposition import counter, gauge
from .sums import Families


class ServerMetrics:
    """
    Gauges of the present state of the server.

    ``caches`` are the caches in memory by their label. ``expires_at`` returns the time at which the certificate in use
    expires (aware UTC), None without one. ``audit`` is the file with the copy of the audit log, if there is one.
    """

    def __init__(
        self,
        site: Site,
        caches: Mapping[str, SizedCache[Any] | Repeats],
        expires_at: Callable[[], datetime | None],
        *,
        database: Path | None,
        audit: Path | None,
    ) -> None:
        self._site = site
        self._caches = caches
        self._expires_at = expires_at
        self._database = database
        self._audit = audit

    def snapshot(self) -> Families:
        """The gauges; sizes of files are read in the other thread."""
        connections, active, expires_at = len(self._site.channels), self._site.active, self._expires_at()
        caches = [
            (name, each.hits, each.misses, each.size, len(each), each.limit) for name, each in self._caches.items()
        ]

        def families() -> Iterator[Metric]:
            yield GaugeMetricFamily("pkgrepo_workers", "Processes that serve.", value=1)
            yield GaugeMetricFamily("pkgrepo_connections", "Open connections.", value=connections)
            yield GaugeMetricFamily(
                "pkgrepo_http_requests_in_flight", "Requests that are being received or answered.", value=active
            )
            certificate = GaugeMetricFamily(
                "pkgrepo_certificate_expiry_timestamp_seconds", "Expiry of the certificate in use (Unix time)."
            )
            if expires_at is not None:
                certificate.add_metric([], expires_at.timestamp())
            yield certificate
            hits = [([name, "hit"], hits) for name, hits, *_ in caches]
            misses = [([name, "miss"], misses) for name, _, misses, *_ in caches]
            yield counter("pkgrepo_cache_lookups", "Look-ups in a cache.", ["cache", "result"], hits + misses)
            sizes = [([name], size) for name, _, _, size, *_ in caches]
            yield gauge("pkgrepo_cache_bytes", "Memory used by a cache.", ["cache"], sizes)
            entries = [([name], count) for name, _, _, _, count, _ in caches]
            yield gauge("pkgrepo_cache_entries", "Entries in a cache.", ["cache"], entries)
            limits = [([name], limit) for name, *_, limit in caches]
            yield gauge("pkgrepo_cache_limit_bytes", "Memory that a cache may use.", ["cache"], limits)
            yield from self._files()

        return families

    def _files(self) -> Iterator[Metric]:
        sizes = GaugeMetricFamily("pkgrepo_file_bytes", "Size of a file of the server.", labels=["file"])
        database = self._database
        named = {"database": database, "wal": database and Path(f"{database}-wal"), "audit": self._audit}
        for name, path in named.items():
            with suppress(OSError):  # a file that does not exist has no sample
                if path is not None:
                    sizes.add_metric([name], path.stat().st_size)
        yield sizes
        if database is None:  # it is on a server
            return
        free = GaugeMetricFamily("pkgrepo_database_free_bytes", "Free space on the file system of the database.")
        with suppress(OSError):
            free.add_metric([], free_and_total(database.parent)[0])
        yield free
