"""The interface by which long work reports its progress."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called by long work; implemented by what shows the progress."""

    def begin(self, label: str, total: int) -> None:
        """Begin a part of ``total`` steps, 0 if the number is not known."""

    def step(self, count: int = 1) -> None:
        """Count finished steps."""

    def end(self) -> None:
        """End the part."""
