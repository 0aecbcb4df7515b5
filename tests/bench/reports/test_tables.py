"""Ratios, medians and verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from tests.bench.arena import CPU, RATE, Arena, Goal, Result, Scenario, Trial
from tests.bench.reports.tables import median, ratio, render, to_json, verdicts

GOALS = (Goal(RATE, "at least", 5, "peer"), Goal(CPU, "at most", 30), Goal(RATE, "at least", 2, "nobody"))


def prepare(arena: Arena, name: str) -> Trial:
    raise AssertionError("a report runs nothing")


def result(rounds: Mapping[str, Sequence[Mapping[str, float]]]) -> Result:
    scenario = Scenario(
        name="reading",
        about="something",
        lineup=("ours", "peer", "nobody"),
        metrics=(RATE, CPU),
        prepare=prepare,
        stock="any",
        goals=GOALS,
    )
    return Result(scenario=scenario, rounds=rounds, versions={"peer": "1.2"}, absent={"nobody": "not installed"})


@pytest.fixture
def measured() -> Result:
    ours = [{"rate": 100.0, "cpu_us": 20.0}, {"rate": 10.0, "cpu_us": 40.0}, {"rate": 90.0, "cpu_us": 20.0}]
    peer = [{"rate": 10.0, "cpu_us": 80.0}, {"rate": 1.0, "cpu_us": 80.0}, {"rate": 30.0, "cpu_us": 80.0}]
    return result({"ours": ours, "peer": peer})


def test_a_ratio_is_the_median_of_the_ratios_of_each_round(measured: Result) -> None:
    # The ratio of the medians would be 9: rounds on a busy machine are slow for both.
    assert ratio(measured, "peer", RATE) == 10.0


def test_a_figure_is_the_median_of_its_rounds(measured: Result) -> None:
    assert median(measured, "ours", RATE) == 90.0


def test_who_took_no_part_has_neither(measured: Result) -> None:
    assert median(measured, "nobody", RATE) is None
    assert ratio(measured, "nobody", RATE) is None


def test_goals_are_judged_by_ratio_or_by_figure(measured: Result) -> None:
    texts = [verdict.text for verdict in verdicts(measured)]
    assert texts == [
        "requests/s of peer's: at least 5: 10.00, met",
        "CPU us/request: at most 30: 20.00, met",
        "requests/s of nobody's: at least 2: not measured",
    ]


def test_a_goal_that_is_not_reached_is_said_to_be_missed() -> None:
    slow = result({"ours": [{"rate": 10.0, "cpu_us": 31.0}], "peer": [{"rate": 10.0, "cpu_us": 1.0}]})
    assert [verdict.text.endswith("MISSED") for verdict in verdicts(slow)] == [True, True, False]


def test_a_table_has_ratios_with_figures_beside(measured: Result) -> None:
    text = render([measured])
    assert "10.0x (10)" in text
    assert "0.25x (80)" in text
    assert "nobody took no part: not installed" in text


def test_json_has_every_round_and_the_verdicts(measured: Result) -> None:
    [scenario] = json.loads(to_json([measured]))["scenarios"]
    assert [figures["rate"] for figures in scenario["rounds"]["ours"]] == [100.0, 10.0, 90.0]
    assert [goal["met"] for goal in scenario["goals"]] == [True, True, False]
