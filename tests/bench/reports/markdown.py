"""Reports as files, and tables in Markdown: one for each group, with ratios of speed and of processor time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.arena import OURS, Result
from tests.bench.scenarios.groups import GROUPS

from .charts import render_chart
from .tables import factor, head, median, ratio, to_json, verdicts

METHOD = """\
One server at a time on the same machine, rounds in turn, each ratio taken within a round (pkgrepo / peer), the median
of them shown. A ratio of a rate above 1 is in favour of pkgrepo, one of a time or of CPU below 1. CPU is that of the
whole process tree for a request. Small requests: wrk with one thread and 16 kept connections, on the same processors.
No access logs; pkgrepo has one worker unless two are named, and checks credentials where its peers run open."""


def write_reports(folder: Path, results: Sequence[Result]) -> None:
    """Write ``results.md``, ``results.json`` and the pictures, over those of an earlier call."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(summarise(results, titles()))
    (folder / "results.json").write_text(to_json(results))
    for name, group in GROUPS.items():
        names = {scenario.name for scenario in group.scenarios}
        shown = [result for result in results if result.scenario.name in names]
        if any(len(result.rounds) > 1 for result in shown):
            (folder / f"{name}.svg").write_text(render_chart(group.title, shown))


def titles() -> Mapping[str, Sequence[str]]:
    """The names of scenarios by the title of their group."""
    return {group.title: [scenario.name for scenario in group.scenarios] for group in GROUPS.values()}


def summarise(results: Sequence[Result], groups: Mapping[str, Sequence[str]]) -> str:
    """
    The tables, and the goals as a list; ``groups`` are names of scenarios by the title of their table.

    A row is a scenario, a column a peer; a cell says by which factor the judged server's leading figure is the peer's,
    and the same of processor time.
    """
    parts = [f"{head()}. {_paces(results)}", METHOD]
    for title, names in groups.items():
        shown = [result for result in results if result.scenario.name in names and _columns(result)]
        if shown:
            parts += [f"**{title}**", _table(shown)]
    parts.append("\n".join(_notes(results)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(results: Sequence[Result]) -> str:
    columns: dict[str, str] = {}
    for result in results:
        for label, name in _columns(result).items():
            version = "" if name.startswith(OURS) else result.versions.get(name, "")
            columns[label] = columns.get(label) or version
    titles = [f"{label} {version}".strip() for label, version in columns.items()]
    rows = [["", OURS, *titles]]
    for result in results:
        names = _columns(result)
        cells = [_factors(result, names[label]) if label in names else "-" for label in columns]
        rows.append([result.scenario.about, _lead(result), *cells])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    rule = "|---|" + "---:|" * (len(rows[0]) - 1)
    return "\n".join([lines[0], rule, *lines[1:]])


def _columns(result: Result) -> Mapping[str, str]:
    """The servers beside the judged one, by the titles of their columns; none if it is only compared to itself."""
    judged, *others = result.scenario.lineup or ("",)
    if judged not in result.rounds:
        return {}
    labels = {_label(name, judged): name for name in others if name in result.rounds}
    return {label: name for label, name in labels.items() if label}


def _label(name: str, judged: str) -> str:
    if name.startswith(OURS):
        if name == f"{judged}-2":
            return "two workers"
        if judged == f"{name}-2":
            return "one worker"
        return "hosted" if judged.endswith("-proxy") else ""
    return name.partition("-")[0] if name.endswith("-proxy") or name.startswith("direct-") else name


def _lead(result: Result) -> str:
    metric = result.scenario.metrics[0]
    value = median(result, result.scenario.lineup[0], metric)
    return "-" if value is None else f"{metric.show(value)} {metric.title}"


def _factors(result: Result, name: str) -> str:
    metrics = result.scenario.metrics
    lead = ratio(result, name, metrics[0])
    if lead is None:
        return "-"
    cpu = [ratio(result, name, metric) for metric in metrics if metric.key.startswith("cpu_")]
    return ", CPU ".join(factor(each) for each in [lead, *cpu] if each is not None)


def _paces(results: Sequence[Result]) -> str:
    rounds = sorted({result.pace.rounds for result in results})
    return f"Rounds: {', '.join(map(str, rounds))}."


def _notes(results: Sequence[Result]) -> Sequence[str]:
    goals = [
        f"- {result.scenario.about}: {verdict.text}"
        for result in results
        for verdict in verdicts(result)
        if verdict.value is not None
    ]
    reasons: dict[str, list[str]] = {}
    for result in results:
        for name, reason in result.absent.items():
            reasons.setdefault(f"{name} took no part: {reason}", []).append(result.scenario.name)
    return [*goals, *(f"- {reason} ({', '.join(names)})" for reason, names in reasons.items())]
