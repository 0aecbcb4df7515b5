"""What came out of a load: a value that is kept as JSON, and a row of the page."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Factory, define


@define
class Measured:
    """
    One load of a ``size``.

    Others' p99 in milliseconds is that without the load (``idle_ms``; None if nothing but the load is measured) and
    beside it. ``peak_mib`` is the most memory of all processes of the server, ``grown`` the processor time of the last
    steps over that of the first ones. ``notes`` are sentences about what else was seen, ``wrong`` counts what was
    refused or wrong.
    """

    name: str
    size: str
    date: str
    machine: str
    took_s: float
    p99_ms: float
    idle_ms: float | None = None
    peak_mib: float = 0.0
    grown: float | None = None
    notes: list[str] = Factory(list)
    wrong: int = 0


def rows(loads: Sequence[Measured]) -> list[str]:
    """The rows of a table in Markdown, the first of which are its head."""
    head = "| load | took | p99 of others alone | beside it | memory at most | last steps, over the first |"
    return [head, "| --- | --- | --- | --- | --- | --- |", *map(_row, loads)]


def _row(of: Measured) -> str:
    alone = "" if of.idle_ms is None else f"{of.idle_ms:.1f} ms"
    part = f" ({of.p99_ms / of.idle_ms:.1f}x)" if of.idle_ms else ""
    grown = "" if of.grown is None else f"{of.grown:.1f}x"
    cells = (f"{of.size} {of.name}", f"{of.took_s:.0f} s", alone, f"{of.p99_ms:.1f} ms{part}")
    return f"| {' | '.join(cells)} | {of.peak_mib:.0f} MiB | {grown} |"
