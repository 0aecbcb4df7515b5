"""The clock of the servers of the matrix: that of the machine, which goes on at once where a format tells seconds."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

from attrs import define

from pkgrepo.repositories.clock import SystemClock


@define(eq=False)
class MatrixClock:
    """Time that was added to that of the machine (ms)."""

    added_ms: int = 0

    def go_on(self) -> None:
        """Let a second go by, so that the next version is later in a list that tells seconds."""
        self.added_ms += 1000

    def installed(self) -> Any:
        """A context in which servers of this process go by this clock."""
        return patch.object(SystemClock, "now_ms", lambda _: time.time_ns() // 1_000_000 + self.added_ms)


CLOCK = MatrixClock()
