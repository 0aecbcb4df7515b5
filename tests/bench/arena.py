"""
What is measured: a scenario, the servers it needs, and its rounds.

A scenario prepares each of its contestants once and gets back a trial; a round runs every trial once, one contestant
after the other, so that whatever else the machine does falls on all of them. A ratio is taken within a round.
"""

from __future__ import annotations

import http.client
import math
import subprocess
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import Factory, evolve, frozen

from tests.bench.clients.load import LoadFailed
from tests.bench.contestants.server import Contestant, Nginx, Unavailable

Trial = Callable[[int], Mapping[str, float]]
OURS = "pkgrepo"
PROBLEMS = (
    *(Unavailable, LoadFailed, OSError, http.client.HTTPException, subprocess.SubprocessError),
    *(ValueError, LookupError, AssertionError),  # an answer that is not what the protocol says
)


@frozen
class Metric:
    """
    A figure of a trial: its key, its heading with the unit, and how many decimals are worth reading.

    One whose ``compared`` is false says nothing as a ratio, because it may well be zero.
    """

    key: str
    title: str
    decimals: int = 0
    compared: bool = True

    def show(self, value: float) -> str:
        """The figure as people read it."""
        return f"{value:,.{self.decimals}f}"


RATE = Metric("rate", "requests/s")
CPU = Metric("cpu_us", "CPU us/request")
P50 = Metric("p50_ms", "p50 ms", 2)
P99 = Metric("p99_ms", "p99 ms", 2)
RSS = Metric("rss_mib", "RSS MiB")
GROWTH = Metric("growth_mib", "RSS growth MiB", 1, compared=False)


@frozen
class Goal:
    """A bound on a figure of the first contestant, or on its ratio to the same figure of ``against``."""

    metric: Metric
    bound: Literal["at most", "at least"]
    limit: float
    against: str | None = None

    def met(self, value: float) -> bool:
        """Whether a figure, or a ratio, keeps the bound."""
        return value <= self.limit if self.bound == "at most" else value >= self.limit


@frozen
class Scenario:
    """
    One thing to measure.

    ``lineup`` names the contestants, the judged one first. ``prepare`` gets one of them ready. Servers are kept for the
    next scenario when it has the same ``stock``, and begin empty otherwise: some of them slow down with what they hold.
    """

    name: str
    about: str
    lineup: tuple[str, ...]
    metrics: tuple[Metric, ...]
    prepare: Callable[[Arena, str], Trial]
    stock: str
    goals: tuple[Goal, ...] = ()


def measuring(
    name: str, lineup: tuple[str, ...], metrics: tuple[Metric, ...], stock: str, *goals: Goal
) -> Callable[[Callable[[Arena, str], Trial]], Scenario]:
    """Decorate what prepares the contestants of a scenario, whose docstring says what it is about."""

    def decorate(prepare: Callable[[Arena, str], Trial]) -> Scenario:
        about = " ".join((prepare.__doc__ or "").split()).removesuffix(".")
        return Scenario(name, about[:1].lower() + about[1:], lineup, metrics, prepare, stock, goals)

    return decorate


@frozen
class Pace:
    """How often a scenario is measured, and for how many seconds where it is small requests."""

    rounds: int = 3
    seconds: float = 4.0


@frozen
class Result:
    """What came of a scenario: the figures of each contestant by round, and why some did not take part."""

    scenario: Scenario
    rounds: Mapping[str, Sequence[Mapping[str, float]]]
    versions: Mapping[str, str] = Factory(dict)
    absent: Mapping[str, str] = Factory(dict)
    pace: Pace = Factory(Pace)


class Arena:
    """
    The servers of a run, each started when a scenario first needs it.

    ``scratch`` is removed when the run ends; ``cache`` stays, for big files that take long to write. ``seconds`` is the
    length of a round of small requests in the scenario that runs.
    """

    def __init__(self, *, contestants: Mapping[str, type[Contestant]], scratch: Path, cache: Path) -> None:
        self.scratch = scratch
        self.cache = cache
        self.seconds = Pace().seconds
        self._classes = contestants
        self._running: dict[str, Contestant] = {}
        self._failed: dict[str, str] = {}
        self._done: set[Hashable] = set()
        self._versions: dict[str, str] = {}
        self._stock = ""
        self._starts = 0

    def has(self, name: str) -> bool:
        """Whether this contestant was chosen to take part."""
        return name in self._classes

    def get(self, name: str, kind: type[Any] = Contestant) -> Any:
        """
        A contestant of a kind that runs, with whatever earlier scenarios put into it.

        :raises Unavailable: it cannot run here
        """
        if name in self._failed:
            raise Unavailable(self._failed[name])
        if name not in self._running:
            try:
                self._running[name] = self._start(name)
            except PROBLEMS as problem:
                self._failed[name] = str(problem)
                raise Unavailable(str(problem)) from problem
        return checked(self._running[name], kind)

    @contextmanager
    def fresh(self, name: str, kind: type[Any] = Contestant) -> Iterator[Any]:
        """A contestant of its own, empty, that is gone afterwards with its folder."""
        contestant = self._start(name)
        try:
            checked(contestant, kind)
            yield contestant
        finally:
            contestant.discard()

    def once(self, key: Hashable, action: Callable[[], object]) -> None:
        """Do something that need not be done again while the running servers live."""
        if key not in self._done:
            action()
            self._done.add(key)

    def nginx(self) -> Nginx:
        """The floor, running."""
        return self.get(Nginx.name, Nginx)

    def first(self, lineup: Sequence[str]) -> str:
        """
        The first name of a lineup that runs and is not the floor: whose bytes the floor serves.

        :raises Unavailable: there is none
        """
        for name in lineup:
            if name == Nginx.name or name not in self._classes:
                continue
            try:
                self.get(name)
            except Unavailable:
                continue
            return name
        raise Unavailable("nobody whose bytes it could serve")

    def source(self, name: str, lineup: Sequence[str]) -> str:
        """Whose documents this contestant answers: those of the first one of the lineup, if it is the floor."""
        return self.first(lineup) if name == Nginx.name else name

    def versions(self) -> Mapping[str, str]:
        """Which version of each contestant has run so far."""
        return dict(self._versions)

    def restock(self, stock: str) -> None:
        """Begin with empty servers, unless those that run hold this stock."""
        if stock != self._stock:
            self.clear()
            self._stock = stock

    def clear(self) -> None:
        """Stop every server and remove its folder."""
        for contestant in self._running.values():
            contestant.discard()
        self._running.clear()
        self._done.clear()

    def _start(self, name: str) -> Contestant:
        if name not in self._classes:
            raise Unavailable("left out")
        self._starts += 1
        contestant = self._classes[name](self.scratch / f"{name}-{self._starts}")
        contestant.start()
        self._versions[name] = contestant.version
        return contestant


def checked(contestant: Contestant, kind: type[Any]) -> Any:
    """The contestant, which must be of this kind."""
    assert isinstance(contestant, kind), f"{contestant.name} is no {kind.__name__}"
    return contestant


def run(scenario: Scenario, arena: Arena, pace: Pace, say: Callable[[str], None], deadline: float = math.inf) -> Result:
    """
    The figures of a scenario; a contestant that cannot do its part is named with the reason, and left out.

    After ``deadline``, a reading of the monotonic clock, nobody takes part.
    """
    scenario = evolve(scenario, lineup=tuple(name for name in scenario.lineup if arena.has(name)))
    absent: dict[str, str] = {}
    if time.monotonic() > deadline:
        absent = dict.fromkeys(scenario.lineup, "no time was left")
        return Result(scenario=scenario, rounds={}, absent=absent, pace=pace)
    arena.restock(scenario.stock)
    arena.seconds = pace.seconds
    trials: dict[str, Trial] = {}
    for name in scenario.lineup:
        say(f"{scenario.name}: preparing {name}")
        try:
            trials[name] = scenario.prepare(arena, name)
        except PROBLEMS as problem:
            absent[name] = _reason(problem)
            say(f"{scenario.name}: {name} takes no part: {absent[name]}")
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in trials}
    for number in range(pace.rounds):
        # Every other round goes backwards, lest being first be an advantage.
        for name in list(trials)[:: -1 if number % 2 else 1]:
            if name in absent:
                continue
            say(f"{scenario.name}: round {number + 1} of {pace.rounds}, {name}")
            try:
                found = trials[name](number)
                figures[name].append({each.key: found[each.key] for each in scenario.metrics if each.key in found})
            except PROBLEMS as problem:
                absent[name] = _reason(problem)
                say(f"{scenario.name}: {name} takes no part: {absent[name]}")
    present = {name: values for name, values in figures.items() if name not in absent}
    return Result(scenario=scenario, rounds=present, versions=arena.versions(), absent=absent, pace=pace)


def _reason(problem: Exception) -> str:
    return f"{problem}" if isinstance(problem, Unavailable | LoadFailed) else f"{type(problem).__name__}: {problem}"
