"""``pkgrepo top``: what a server does now, from two looks at its metrics."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime

import click

from pkgrepo.commands.remote.printer import cut, render_table
from pkgrepo.commands.remote.samples import Figures, Row, Samples
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.commands.terminal import printable
from pkgrepo.errors import Invalid
from pkgrepo.web.rendering.filters import age, plural, size

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
