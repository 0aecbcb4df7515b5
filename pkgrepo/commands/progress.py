"""Progress output of long commands: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from pkgrepo.repositories.upkeep.progress import Progress

LINE_EVERY_S = 10.0  # seconds between two lines about one part


class Bar:
    """A progress bar on a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def begin(self, label: str, total: int) -> None:
        """Start a part with ``total`` steps (0: unknown)."""
        self._bar = click.progressbar(length=total or None, label=label, file=sys.stderr)
        self._bar.__enter__()

    def step(self, count: int = 1) -> None:
        """Add ``count`` finished steps."""
        self._bar.update(count)

    def end(self) -> None:
        """End the part."""
        self._bar.__exit__(None, None, None)
        self._bar = None


class Lines:
    """A line every ``LINE_EVERY_S`` seconds, for logs."""

    def __init__(self) -> None:
        self._label = ""
        self._total = self._done = 0
        self._told_at = 0.0

    def begin(self, label: str, total: int) -> None:
        """Start a part with ``total`` steps (0: unknown)."""
        self._label, self._total, self._done = label, total, 0
        self._told_at = time.monotonic()

    def step(self, count: int = 1) -> None:
        """Add ``count`` finished steps."""
        self._done += count
        if time.monotonic() - self._told_at >= LINE_EVERY_S:
            self._told_at = time.monotonic()
            self._tell()

    def end(self) -> None:
        """End the part."""
        self._tell()

    def _tell(self) -> None:
        of = f" of {self._total}" if self._total else ""
        click.echo(f"{self._label}: {self._done}{of}", err=True)


def make_progress() -> Progress:
    """A bar if standard error is a terminal, otherwise lines."""
    return Bar() if sys.stderr.isatty() else Lines()
