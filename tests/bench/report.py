"""Reports of a run: a table for each scenario, with ratios first, and the absolute figures beside them."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from .scenarios import OURS, Goal, Metric, Result


@frozen
class Verdict:
    """A goal and what was measured; C{value} is None when one of its sides did not take part."""

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
    return "\n\n".join([_head(), *(_section(result) for result in results)]) + "\n"


def summarise(results: Sequence[Result]) -> str:
    """
    One table in Markdown, and the goals as a list.

    A row is a scenario, a column a peer; a cell says by which factor the judged server's leading figure is the peer's,
    and the same of processor time.
    """
    compared = [result for result in results if len(result.rounds) > 1 and not _is_about_itself(result)]
    peers = list(dict.fromkeys(name for result in compared for name in result.scenario.lineup[1:]))
    titles = [f"{name} {version}".strip() for name in peers for version in [_version(compared, name)]]
    rows = [["", *(compared[0].scenario.lineup[:1] if compared else []), *titles]]
    rows += [[result.scenario.about, _lead(result), *(_factors(result, name) for name in peers)] for result in compared]
    goals = [
        f"- {result.scenario.about}: {verdict.text}"
        for result in results
        for verdict in verdicts(result)
        if verdict.value is not None
    ]
    return "\n".join([_head(), "", *([_markdown(rows), ""] if compared else []), *goals]) + "\n"


def to_json(results: Sequence[Result]) -> str:
    """Every figure of every round, with medians, ratios and verdicts, for programs."""
    return json.dumps({"machine": _head(), "scenarios": [_scenario_json(result) for result in results]}, indent=1)


def _head() -> str:
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
        cells.append(f"{_factor(share)} ({cell})" if share is not None else cell)
    return cells


def _factor(value: float) -> str:
    """Format a ratio with three significant digits."""
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3 if value >= 0.01 else 4
    return f"{value:,.{decimals}f}x"


def _is_about_itself(result: Result) -> bool:
    """Whether all contestants are the judged server, under different conditions."""
    return all(name.startswith(OURS) for name in result.scenario.lineup)


def _version(results: Iterable[Result], name: str) -> str:
    return next((result.versions[name] for result in results if name in result.versions), "")


def _lead(result: Result) -> str:
    metric = result.scenario.metrics[0]
    value = median(result, result.scenario.lineup[0], metric)
    return "-" if value is None else f"{metric.show(value)} {metric.title}"


def _factors(result: Result, name: str) -> str:
    lead = ratio(result, name, result.scenario.metrics[0])
    if lead is None:
        return "-"
    cpu = [ratio(result, name, metric) for metric in result.scenario.metrics if metric.key.startswith("cpu_")]
    return ", CPU ".join(_factor(each) for each in [lead, *cpu] if each is not None)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    rule = "|---|" + "---:|" * (len(rows[0]) - 1)
    return "\n".join([lines[0], rule, *lines[1:]])


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
        "rounds": {name: [dict(figures) for figures in result.rounds[name]] for name in names},
        "medians": {name: {each.key: median(result, name, each) for each in scenario.metrics} for name in names},
        "ratios": {name: {each.key: ratio(result, name, each) for each in scenario.metrics} for name in names[1:]},
        "goals": [
            {"text": each.text, "value": each.value, "met": each.value is not None and each.goal.met(each.value)}
            for each in verdicts(result)
        ],
    }
