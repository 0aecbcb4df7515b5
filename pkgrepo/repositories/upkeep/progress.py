"""Progress of long work: the interface by which it is reported, and what keeps it for the row of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from attrs import asdict, define

from pkgrepo.repositories.clock import Clock

MOST_PARTS: Final = 50  # parts that are kept; the oldest are forgotten first


class Progress(Protocol):
    """Called by long work; implemented by what shows the progress."""

    def begin(self, label: str, total: int) -> None:
        """Begin a part of ``total`` steps, 0 if the number is not known."""

    def step(self, count: int = 1) -> None:
        """Count finished steps."""

    def end(self) -> None:
        """End the part."""


class NoProgress:
    """Ignores all progress."""

    def begin(self, label: str, total: int) -> None:
        """Do nothing."""

    def step(self, count: int = 1) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


@define
class Part:
    """A part of the work: ``done`` of ``total`` steps (0: not known). ``ended_ms`` is None while it runs."""

    label: str
    total: int
    begun_ms: int
    done: int = 0
    ended_ms: int | None = None


class JobProgress:
    """Keeps the parts that work has begun; ``changed`` tells whether they have changed since the last ``to_json``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parts: list[Part] = []
        self.changed = False

    def begin(self, label: str, total: int) -> None:
        """See L{Progress}."""
        self._parts = [*self._parts[1 - MOST_PARTS :], Part(label, total, self._clock.now_ms())]
        self.changed = True

    def step(self, count: int = 1) -> None:
        """See L{Progress}."""
        self._parts[-1].done += count
        self.changed = True

    def end(self) -> None:
        """See L{Progress}."""
        self._parts[-1].ended_ms = self._clock.now_ms()
        self.changed = True

    def to_json(self) -> list[Mapping[str, Any]]:
        """Return the form in which the job's row stores them."""
        self.changed = False
        return [asdict(each) for each in self._parts]
