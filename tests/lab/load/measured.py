"""What came out of a load: a value that is kept as JSON, and a row of the page."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Factory, define, frozen


@frozen
class Felt:
    """A p99 in milliseconds beside a load, and without it (``idle_ms``; None if that was not measured)."""

    p99_ms: float
    idle_ms: float | None = None

    def __str__(self) -> str:
        if not self.idle_ms:
            return f"{self.p99_ms:.1f} ms"
        return f"{self.idle_ms:.1f} -> {self.p99_ms:.1f} ms ({self.p99_ms / self.idle_ms:.1f}x)"


@define
class Measured:
    """
    One load of a ``size``.

    ``reads`` and ``searches`` are what others felt of it; of a load with nothing beside it, what it felt itself.
    ``peak_mib`` is the most memory of all processes of the server, ``grown`` the processor time of the last
    steps over that of the first ones. ``notes`` are sentences about what else was seen, ``wrong`` counts what was
    refused or wrong.
    """

    name: str
    size: str
    date: str
    machine: str
    took_s: float
    reads: Felt
    searches: Felt | None = None
    peak_mib: float = 0.0
    grown: float | None = None
    notes: list[str] = Factory(list)
    wrong: int = 0


def rows(loads: Sequence[Measured]) -> list[str]:
    """The rows of a table in Markdown, the first of which are its head."""
    head = "| load | took | p99 of others' reads | of their searches | memory at most | last steps, over the first |"
    return [head, "| --- | --- | --- | --- | --- | --- |", *map(_row, loads)]


def _row(of: Measured) -> str:
    grown = "" if of.grown is None else f"{of.grown:.1f}x"
    cells = (f"{of.size} {of.name}", f"{of.took_s:.0f} s", str(of.reads), str(of.searches or ""))
    return f"| {' | '.join(cells)} | {of.peak_mib:.0f} MiB | {grown} |"
