"""Reports of a run: a table for each scenario, with ratios first, and the absolute figures beside them."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from tests.bench.arena import Goal, Metric, Result


@frozen
class Verdict:
    """A goal and what was measured; ``value`` is None when one of its sides did not take part."""

    goal: Goal
    value: float | None

    @property
    def text(self) -> str:
        """As a sentence."""
        of = f" of {self.goal.against}'s" if self.goal.against else ""
        bound = f"{self.goal.metric.title}{of}: {self.goal.bound} {self.goal.limit:g}"
        if self.value is None:
            return f"{bound}: not measured"
        return f"{bound}: {self.value:,.2f}, {'met' if self.goal.met(self.value) else 'MISSED'}"


def median(result: Result, name: str, metric: Metric) -> float | None:
    """A contestant's figure: the median of its rounds; None when it did not take part or has no such figure."""
    values = [figures[metric.key] for figures in result.rounds.get(name, ()) if metric.key in figures]
    return statistics.median(values) if values else None


def ratio(result: Result, name: str, metric: Metric) -> float | None:
    """The first contestant's figure over this one's, each round by itself, the median of them."""
    pairs = zip(result.rounds.get(result.scenario.lineup[0], ()), result.rounds.get(name, ()), strict=False)
    ratios = [ours[metric.key] / theirs[metric.key] for ours, theirs in pairs if theirs.get(metric.key)]
    return statistics.median(ratios) if ratios else None


def verdicts(result: Result) -> list[Verdict]:
    """Return whether each goal of a scenario was met."""
    judged = result.scenario.lineup[0]
    return [
        Verdict(goal, ratio(result, goal.against, goal.metric) if goal.against else median(result, judged, goal.metric))
        for goal in result.scenario.goals
    ]


def render(results: Iterable[Result]) -> str:
    """A table for each scenario, and below it what became of its goals and who took no part."""
    return "\n\n".join([head(), *(_section(result) for result in results)]) + "\n"


def to_json(results: Sequence[Result]) -> str:
    """Every figure of every round, with medians, ratios and verdicts, for programs."""
    return json.dumps({"machine": head(), "scenarios": [_scenario_json(result) for result in results]}, indent=1)


def head() -> str:
    """The machine."""
    cores = len(os.sched_getaffinity(0))
    return f"{platform.system()} {platform.release()}, {cores} cores, Python {platform.python_version()}"


def _section(result: Result) -> str:
    scenario = result.scenario
    judged = scenario.lineup[0]
    rows = [["server", *(metric.title for metric in scenario.metrics)]]
    rows += [_row(result, name, judged) for name in scenario.lineup if name in result.rounds]
    notes = [f"- {verdict.text}" for verdict in verdicts(result)]
    notes += [f"- {name} took no part: {reason}" for name, reason in result.absent.items()]
    return "\n".join([f"{scenario.name}: {scenario.about}", "", _aligned(rows), *([""] if notes else []), *notes])


def _row(result: Result, name: str, judged: str) -> list[str]:
    version = result.versions.get(name, "")
    cells = [f"{name} {version}".strip()]
    for metric in result.scenario.metrics:
        value = median(result, name, metric)
        share = None if name == judged or not metric.compared else ratio(result, name, metric)
        cell = "-" if value is None else metric.show(value)
        cells.append(f"{factor(share)} ({cell})" if share is not None else cell)
    return cells


def factor(value: float) -> str:
    """Format a ratio with three significant digits."""
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3 if value >= 0.01 else 4
    return f"{value:,.{decimals}f}x"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _scenario_json(result: Result) -> Mapping[str, object]:
    scenario = result.scenario
    names = [name for name in scenario.lineup if name in result.rounds]
    return {
        "name": scenario.name,
        "about": scenario.about,
        "versions": {name: result.versions.get(name, "") for name in names},
        "absent": dict(result.absent),
        "seconds": result.pace.seconds,
        "rounds": {name: [dict(figures) for figures in result.rounds[name]] for name in names},
        "medians": {name: {each.key: median(result, name, each) for each in scenario.metrics} for name in names},
        "ratios": {name: {each.key: ratio(result, name, each) for each in scenario.metrics} for name in names[1:]},
        "goals": [
            {"text": each.text, "value": each.value, "met": each.value is not None and each.goal.met(each.value)}
            for each in verdicts(result)
        ],
    }
