"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.arena import CPU, RATE, Arena, Goal, Result, Scenario, Trial
from tests.bench.reports.markdown import summarise

Rounds = Mapping[str, Sequence[Mapping[str, float]]]


def prepare(arena: Arena, name: str) -> Trial:
    raise AssertionError("a report runs nothing")


def result(lineup: tuple[str, ...], rounds: Rounds, absent: Mapping[str, str] | None = None) -> Result:
    scenario = Scenario(
        name="reading",
        about="reads",
        lineup=lineup,
        metrics=(RATE, CPU),
        prepare=prepare,
        stock="any",
        goals=(Goal(CPU, "at most", 30),),
    )
    return Result(
        scenario=scenario, rounds=rounds, versions={"peer": "1.2", "pkgrepo-npm": "0a1b2c3d"}, absent=absent or {}
    )


def figures(rate: float, cpu_us: float) -> Sequence[Mapping[str, float]]:
    return [{"rate": rate, "cpu_us": cpu_us}]


def test_a_row_has_the_ratios_of_speed_and_of_processor_time() -> None:
    rounds = {"pkgrepo": figures(90, 20), "peer": figures(9, 80)}
    absent = {"nobody": "not installed"}
    lines = summarise([result(("pkgrepo", "peer", "nobody"), rounds, absent)], {"Reads": ["reading"]}).splitlines()
    assert "**Reads**" in lines
    assert "|  | pkgrepo | peer 1.2 |" in lines
    assert "| reads | 90 requests/s | 10.0x, CPU 0.25x |" in lines
    assert "- reads: CPU us/request: at most 30: 20.00, met" in lines
    assert "- nobody took no part: not installed (reading)" in lines


def test_two_workers_are_a_column() -> None:
    two = result(("pkgrepo-npm-2", "pkgrepo-npm"), {"pkgrepo-npm-2": figures(90, 20), "pkgrepo-npm": figures(60, 20)})
    assert "|  | pkgrepo | one worker |" in summarise([two], {"Workers": ["reading"]})


def test_a_proxy_is_called_by_its_name_alone() -> None:
    rounds = {name: figures(1, 1) for name in ("pkgrepo-npm-proxy", "direct-npm", "pkgrepo-npm", "nora-npm-proxy")}
    assert "|  | pkgrepo | direct | hosted | nora |" in summarise([result(tuple(rounds), rounds)], {"P": ["reading"]})


def test_a_scenario_without_the_judged_server_has_no_row() -> None:
    assert "**" not in summarise([result(("pkgrepo", "peer"), {"peer": figures(1, 1)})], {"Reads": ["reading"]})


def test_a_server_beside_itself_has_no_row() -> None:
    rounds = {"pkgrepo-100000": figures(1, 1), "pkgrepo-100": figures(1, 1)}
    assert "**" not in summarise([result(tuple(rounds), rounds)], {"Reads": ["reading"]})
