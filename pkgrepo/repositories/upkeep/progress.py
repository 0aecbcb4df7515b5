"""How far a long piece of work has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told by long work, shown by whoever started it."""

    def begin(self, label: str, total: int) -> None:
        """A part begins; ``total`` steps are expected, 0 when nobody knows."""

    def step(self, count: int = 1) -> None:
        """So many steps are done."""

    def end(self) -> None:
        """The part is over."""


class NoProgress:
    """Shows nothing."""

    def begin(self, label: str, total: int) -> None:
        """Nothing to show."""

    def step(self, count: int = 1) -> None:
        """Nothing to show."""

    def end(self) -> None:
        """Nothing to show."""
