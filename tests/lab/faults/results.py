"""What came out of rounds: a value for each engine."""

from __future__ import annotations

import os
import platform
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from attrs import Factory, define, frozen

from .rounds import KINDS

LONGEST: Final = 300  # characters of a sentence about what was wrong


@define
class Result:
    """
    What comes out of the rounds of a run.

    ``faults`` are counted by name, those that others are made of and those, too; ``recoveries_s`` are the seconds from
    the end of each to a good answer of every server. ``wrong`` are sentences, ``found`` counts them by kind. ``lives``
    counts the servers, which are new ones from time to time; ``items`` are those of all of them.
    """

    seed: int
    minutes: float = 0
    rounds: int = 0
    lives: int = 0
    interrupted: bool = False
    faults: Counter[str] = Factory(Counter)
    recoveries_s: defaultdict[str, list[float]] = Factory(lambda: defaultdict(list))
    steps: Counter[str] = Factory(Counter)
    acknowledged: int = 0
    items: int = 0
    wrong: list[str] = Factory(list)
    found: Counter[str] = Factory(Counter)
    tasks: list[str] = Factory(list)
    left_out: list[str] = Factory(list)


@frozen
class Struck:
    """A fault of a summary: how often it came, and the seconds after which every server gave a good answer again."""

    times: int
    median_s: float | None = None
    p99_s: float | None = None
    longest_s: float | None = None


@frozen
class Summary:
    """
    What the page says of an engine; the form of its value in the file of results.

    ``told`` are sentences about what was wrong, without their histories.
    """

    date: str
    machine: str
    command: str
    minutes: float
    rounds: int
    faults: Mapping[str, Struck]
    steps: Mapping[str, int]
    acknowledged: int
    items: int
    found: Mapping[str, int]
    left_out: Sequence[str]
    told: Sequence[str] = ()
    tasks: Sequence[str] = ()


def summary_of(result: Result, command: str) -> Summary:
    """The summary of a run on this machine."""
    return Summary(
        date=today(),
        machine=machine(),
        command=command,
        minutes=result.minutes,
        rounds=result.rounds,
        faults={
            name: Struck(times, *_times(result.recoveries_s.get(name, [])))
            for name, times in sorted(result.faults.items())
        },
        steps=dict(sorted(result.steps.items())),
        acknowledged=result.acknowledged,
        items=result.items,
        found={each: result.found[each] for each in KINDS},
        left_out=result.left_out,
        tasks=sorted(result.tasks),
        told=[each.partition("\n")[0][:LONGEST] for each in result.wrong],
    )


def today() -> str:
    """The day, as pages have it."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def machine() -> str:
    """What a page says of this machine."""
    system = f"{platform.system()} {platform.release()}"
    return f"{system}, {os.cpu_count()} processors, Python {platform.python_version()}"


def _times(recoveries_s: Sequence[float]) -> tuple[float, ...]:
    found = sorted(recoveries_s)
    return tuple(round(found[int((len(found) - 1) * part)], 2) for part in (0.5, 0.99, 1)) if found else ()
