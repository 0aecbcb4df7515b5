"""The timeout of everything that tests wait for: a bound for hangs, which no test expects to be reached."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

T = TypeVar("T")

# Seconds. A busy machine may be many times slower than an idle one. The time limit of a test (pyproject.toml) is a
# little longer, so that a hang fails at the call that waits, whose traceback shows what it waits for.
TIMEOUT_S = 300
LONGEST_PAUSE_S = 0.02  # between two questions whether a test can go on


def polled(ask: Callable[[], T]) -> T:
    """
    Return the first true answer; AssertionError when the time limit of tests is over.

    Pauses between the questions leave the processor to what the test waits for.
    """
    ends_at, pause_s = monotonic() + TIMEOUT_S, 0.001
    while not (answer := ask()):
        assert monotonic() < ends_at, ask
        sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return answer
