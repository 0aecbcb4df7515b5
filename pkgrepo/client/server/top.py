"""``pkgrepo top``: what a server does now, from two looks at its metrics."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Self

import attrs
import click
from attrs import frozen
from prometheus_client.parser import text_string_to_metric_families

from pkgrepo.client.http import Failed
from pkgrepo.client.printer import cut, render_table
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import printable
from pkgrepo.display import age, plural, size
from pkgrepo.errors import Invalid

REQUESTS = "pkgrepo_http_requests_total"
Labels = tuple[tuple[str, str], ...]


@frozen
class Row:
    """The requests of one area and format: how many a second, how many of them failed, and the latency in seconds."""

    area: str
    format: str
    per_second: float
    refused_per_second: float
    failed_per_second: float
    p50_s: float | None
    p99_s: float | None


@frozen
class Figures:
    """What happened between two looks; sizes in bytes, times in seconds.

    ``started_at`` is in Unix time, ``cpu`` in processors. ``cpu``, ``memory`` and ``open_files`` are those of all
    ``processes`` together. What is None was not measured.
    """

    seconds: float
    version: str
    started_at: float | None
    processes: int
    requests: list[Row]
    total: Row
    in_flight: int
    connections: int
    sent_per_second: float
    received_per_second: float
    cache_hits: float | None
    lag_p50_s: float | None
    lag_p99_s: float | None
    cpu: float
    memory: int
    open_files: int
    login_failures: int
    layout_backlog: int
    layout_failed: int
    disk_free: dict[str, int]
    upstreams_down: list[str]

    def to_json(self) -> dict[str, Any]:
        """The figures for programs."""
        return attrs.asdict(self)


@frozen
class Samples:
    """All samples of one look, by name and labels."""

    values: Mapping[str, Mapping[Labels, float]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text format of Prometheus. :raises Failed: the text is no such format"""
        values: dict[str, dict[Labels, float]] = defaultdict(dict)
        try:
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    values[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
        except (ValueError, IndexError, KeyError):
            raise Failed("the server's metrics cannot be read") from None
        if "pkgrepo_build_info" not in values:
            raise Failed("these are no metrics of a server; is the address right?")
        return cls(dict(values))

    def since(self, before: Samples, seconds: float) -> Figures:
        """The figures of the time since an earlier look, which was ``seconds`` ago."""
        delta = _Delta(before, self, seconds)
        keys = sorted({(label(each, "area"), label(each, "format")) for each in self._of(REQUESTS)})
        rows = [delta.row({"area": area, "format": format_}) for area, format_ in keys]
        hits = delta.rate("pkgrepo_cache_requests_total", {"result": "hit"})
        reads = delta.rate("pkgrepo_cache_requests_total", {})
        return Figures(
            seconds=seconds,
            version=next((label(each, "version") for each in self._of("pkgrepo_build_info")), ""),
            started_at=self.total("process_start_time_seconds") or None,
            processes=int(self.total("pkgrepo_workers")) or 1,
            requests=sorted((row for row in rows if row.per_second), key=lambda row: -row.per_second),
            total=delta.row({}),
            in_flight=int(self.total("pkgrepo_http_requests_in_flight")),
            connections=int(self.total("pkgrepo_connections")),
            sent_per_second=delta.rate("pkgrepo_sent_bytes_total", {}),
            received_per_second=delta.rate("pkgrepo_received_bytes_total", {}),
            cache_hits=hits / reads if reads else None,
            lag_p50_s=delta.quantile("pkgrepo_reactor_lag_seconds_bucket", {}, 0.5),
            lag_p99_s=delta.quantile("pkgrepo_reactor_lag_seconds_bucket", {}, 0.99),
            cpu=delta.rate("process_cpu_seconds_total", {}),
            memory=int(self.total("process_resident_memory_bytes")),
            open_files=int(self.total("process_open_fds")),
            login_failures=round(delta.rate("pkgrepo_login_failures_total", {}) * seconds),
            layout_backlog=int(self.total("pkgrepo_layout_backlog")),
            layout_failed=int(self.total("pkgrepo_layout_failed")),
            disk_free={
                label(each, "storage"): int(value) for each, value in self._of("pkgrepo_disk_free_bytes").items()
            },
            upstreams_down=[
                f"{label(each, 'repo')} {label(each, 'route')}"
                for each, value in self._of("pkgrepo_upstream_up").items()
                if not value
            ],
        )

    def total(self, name: str, labels: Mapping[str, str] | None = None) -> float:
        """The sum of the samples with this name and these labels."""
        return sum(value for each, value in self._of(name).items() if _has(each, labels or {}))

    def buckets(self, name: str, labels: Mapping[str, str]) -> dict[float, float]:
        """Cumulative counts of histograms, by the upper bound in seconds."""
        found: dict[float, float] = defaultdict(float)
        for each, value in self._of(name).items():
            if _has(each, labels):
                found[float(label(each, "le"))] += value
        return found

    def _of(self, name: str) -> Mapping[Labels, float]:
        return self.values.get(name, {})


class _Delta:
    """
    Two looks; a server that started in between counts from zero.

    The start time does not tell: of several processes it is the first one's, which may be replaced, and the counters of
    a replaced process stay in the sums.
    """

    def __init__(self, before: Samples, after: Samples, seconds: float) -> None:
        restarted = after.total(REQUESTS) < before.total(REQUESTS)
        self._before = Samples({}) if restarted else before
        self._after = after
        self._seconds = max(seconds, 0.001)

    def rate(self, name: str, labels: Mapping[str, str]) -> float:
        """How much a counter grew in a second."""
        grown = self._after.total(name, labels) - self._before.total(name, labels)
        return max(0.0, grown) / self._seconds

    def quantile(self, name: str, labels: Mapping[str, str], share: float) -> float | None:
        """The upper bound of the bucket in which a quantile is; None if nothing was counted."""
        before = self._before.buckets(name, labels)
        counts = {bound: count - before.get(bound, 0) for bound, count in self._after.buckets(name, labels).items()}
        return find_quantile(counts, share)

    def row(self, labels: Mapping[str, str]) -> Row:
        """The requests with these labels."""
        name, histogram = REQUESTS, "pkgrepo_http_request_seconds_bucket"
        codes = {label(each, "code") for each in self._after.values.get(name, {}) if _has(each, labels)}
        rates = {code: self.rate(name, {**labels, "code": code}) for code in codes}
        return Row(
            area=labels.get("area", ""),
            format=labels.get("format", ""),
            per_second=sum(rates.values()),
            refused_per_second=sum(rate for code, rate in rates.items() if code.startswith("4")),
            failed_per_second=sum(rate for code, rate in rates.items() if code.startswith("5")),
            p50_s=self.quantile(histogram, labels, 0.5),
            p99_s=self.quantile(histogram, labels, 0.99),
        )


def find_quantile(cumulative: Mapping[float, float], share: float) -> float | None:
    """
    The upper bound of the bucket in which a quantile is; None if the histogram is empty.

    Beyond the last finite bound, infinity.
    """
    total = max(cumulative.values(), default=0)
    if total <= 0:
        return None
    return next(bound for bound in sorted(cumulative) if cumulative[bound] >= share * total)


def label(labels: Iterable[tuple[str, str]], name: str) -> str:
    """The value of a label; empty if it is absent."""
    return dict(labels).get(name, "")


def _has(labels: Labels, wanted: Mapping[str, str]) -> bool:
    return all((name, value) in labels for name, value in wanted.items())


HOME = "\x1b[H"  # the cursor goes to the first column of the first line
CLEAR_LINE = "\x1b[K"
CLEAR_REST = "\x1b[J"
CLEAR = "\x1b[2J"

TITLES = ("AREA", "FORMAT", "REQUESTS/S", "4XX/S", "5XX/S", "P50", "P99")
RIGHT = frozenset(range(2, len(TITLES)))


@click.command()
@click.option(
    "--interval", type=click.FloatRange(min=0.2), default=2.0, show_default=True, help="Seconds between looks."
)
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many screens.")
@remote
async def top(session: Session, interval: float, count: int | None) -> None:
    """
    Show what the server does: requests, latency, lag, traffic, jobs, until you press Ctrl-C.

    The figures are those of the time between two looks at /metrics, for system managers and tokens with the scope
    metrics. They are those of all processes of the server together.
    """
    printer = session.printer
    if printer.as_json and count is None:
        raise Invalid("--json needs --count")
    before, seen = await _look(session), time.monotonic()
    fresh, number = printer.width is not None, 0
    while count is None or number < count:
        await session.sleep(interval)
        after, now = await _look(session), time.monotonic()
        number += 1
        figures = after.since(before, now - seen)
        before, seen = after, now
        if printer.as_json:
            printer.json(figures.to_json())
            continue
        lines = render_screen(session.client.url, figures, printer.width)
        if printer.width is None:
            click.echo("\n".join(lines))
            continue
        start = CLEAR + HOME if fresh else HOME
        fresh = False
        click.echo(start + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST, nl=False)


async def _look(session: Session) -> Samples:
    reply = await session.client.call("GET", "/metrics", headers={"Accept": "text/plain"})
    return Samples.parse(reply.body.decode("utf-8", "replace"))


def render_screen(url: str, figures: Figures, width: int | None, now: datetime | None = None) -> list[str]:
    """The lines of the screen, cut to ``width`` columns."""
    at = now or datetime.now(UTC)
    total = figures.total
    lines = [
        f"{url}  pkgrepo {figures.version}  {plural(figures.processes, 'process', 'processes')}  "
        f"started {_started(figures, at)}  {at:%H:%M:%S} UTC",
        "",
        f"requests {total.per_second:.1f}/s  in flight {figures.in_flight}  connections {figures.connections}  "
        f"latency p50 {_within(total.p50_s)} p99 {_within(total.p99_s)}",
        f"lag      p50 {_within(figures.lag_p50_s)} p99 {_within(figures.lag_p99_s)}  cpu {figures.cpu * 100:.0f} %  "
        f"memory {size(figures.memory)}  open files {figures.open_files}",
        f"traffic  sent {_per_second(figures.sent_per_second)}  received {_per_second(figures.received_per_second)}  "
        f"answered from memory {_share(figures.cache_hits)}",
        f"work     changes not in the readable layout {figures.layout_backlog}, failed {figures.layout_failed}  "
        f"wrong logins {figures.login_failures}",
        "disk     " + "  ".join(f"{name} {size(free)} free" for name, free in sorted(figures.disk_free.items())),
    ]
    if figures.upstreams_down:
        lines.append("upstreams down: " + ", ".join(figures.upstreams_down))
    lines.append("")
    lines += render_table(TITLES, [_cells(row) for row in figures.requests], right=RIGHT)
    if not figures.requests:
        lines.append("no requests")
    return [line if width is None else cut(line, width) for line in map(printable, lines)]


def _cells(row: Row) -> list[str]:
    rates = (row.per_second, row.refused_per_second, row.failed_per_second)
    return [row.area, row.format or "-", *(f"{rate:.1f}" for rate in rates), _within(row.p50_s), _within(row.p99_s)]


def _within(seconds: float | None) -> str:
    """A bound of a histogram: the value is at most this."""
    if seconds is None:
        return "-"
    if math.isinf(seconds):
        return "long"
    return f"<{seconds * 1000:g} ms" if seconds < 1 else f"<{seconds:g} s"


def _per_second(count: float) -> str:
    return f"{size(round(count))}/s"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f} %"


def _started(figures: Figures, now: datetime) -> str:
    if figures.started_at is None:
        return "at an unknown time"
    return age(datetime.fromtimestamp(figures.started_at, UTC), now)
