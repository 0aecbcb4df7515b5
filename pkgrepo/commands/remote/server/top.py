"""``pkgrepo top``: what a server does now, from two looks at its metrics."""

from __future__ import annotations

import time

import click

from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.errors import Invalid

from .samples import Samples
from .screen import render_screen

HOME = "\x1b[H"  # the cursor goes to the first column of the first line
CLEAR_LINE = "\x1b[K"
CLEAR_REST = "\x1b[J"
CLEAR = "\x1b[2J"


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
