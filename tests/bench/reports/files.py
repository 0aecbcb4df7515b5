"""The reports of a run as files: tables in Markdown, every figure as JSON, and a picture for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.arena import Result
from tests.bench.scenarios.groups import GROUPS

from .charts import render_chart
from .markdown import summarise
from .tables import to_json


def write_reports(folder: Path, results: Sequence[Result]) -> None:
    """Write C{results.md}, C{results.json} and the pictures, over those of an earlier call."""
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
