"""Rounds of a scenario: who takes part, in which order, and why somebody does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.bench.arena import RATE, Arena, Pace, Scenario, Trial, run
from tests.bench.contestants.server import Contestant, Nginx, Unavailable


class Idle(Contestant):
    """A contestant that no scenario of these tests starts."""

    def command(self) -> Sequence[str]:
        raise Unavailable("not installed")


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    contestants = dict.fromkeys(("ours", "peer"), Idle)
    return Arena(contestants=contestants, scratch=tmp_path / "scratch", cache=tmp_path / "cache")


def scenario(prepare: Callable[[Arena, str], Trial]) -> Scenario:
    lineup = ("ours", "peer", Nginx.name)
    return Scenario(name="x", about="reads", lineup=lineup, metrics=(RATE,), prepare=prepare, stock="any")


def silent(_text: str) -> None:
    """Say nothing."""


def test_every_other_round_goes_backwards_and_who_was_not_chosen_is_left_out(arena: Arena) -> None:
    order: list[str] = []

    def prepare(arena: Arena, name: str) -> Trial:
        return lambda number: order.append(name) or {"rate": float(number)}

    result = run(scenario(prepare), arena, Pace(rounds=3, seconds=1.5), silent)
    assert order == ["ours", "peer", "peer", "ours", "ours", "peer"]
    assert result.scenario.lineup == ("ours", "peer")
    assert [each["rate"] for each in result.rounds["peer"]] == [0, 1, 2]
    assert arena.seconds == 1.5


def test_who_cannot_be_prepared_or_fails_a_round_is_named_with_the_reason(arena: Arena) -> None:
    def prepare(arena: Arena, name: str) -> Trial:
        if name == "ours":
            arena.get(name)

        def trial(number: int) -> dict[str, float]:
            assert number == 0
            return {"rate": 1.0}

        return trial

    result = run(scenario(prepare), arena, Pace(), silent)
    assert result.rounds == {}
    assert result.absent["ours"] == "not installed"
    assert result.absent["peer"].startswith("AssertionError")


def test_nobody_takes_part_after_the_deadline(arena: Arena) -> None:
    def prepare(arena: Arena, name: str) -> Trial:
        raise AssertionError("nobody is prepared")

    result = run(scenario(prepare), arena, Pace(), silent, deadline=time.monotonic() - 1)
    assert result.absent == {"ours": "no time was left", "peer": "no time was left"}
