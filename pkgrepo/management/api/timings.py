"""Histograms of durations, from which quantiles are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from attrs import frozen


@frozen
class Histogram:
    """How many durations were up to each of ``bounds`` (seconds), and above the one before; the last count: longer."""

    bounds: Sequence[float]
    counts: Sequence[int]

    @property
    def total(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def quantile(self, part: float) -> float | None:
        """
        The least bound, in seconds, that this part of the durations did not exceed.

        The highest bound if they exceeded that; None without any.
        """
        wanted = part * self.total
        for bound, reached in zip(self.bounds, accumulate(self.counts), strict=False):
            if reached and reached >= wanted:
                return bound
        return self.bounds[-1] if self.total else None

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(self.bounds, [a + b for a, b in zip(self.counts, other.counts, strict=True)])
