"""What a long run says of its samples."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.bench.measure import MIB
from tests.bench.soak import Sample, Soak, Tally, describe, lag_bound, soak_json


def soak(own: Sequence[float], errors: Sequence[str] = (), lag_s: float = 0.005) -> Soak:
    samples = [
        Sample(5.0 * number, {1: int(each * MIB), 2: int(each * MIB)}, {1: MIB, 2: (1 + number) * MIB})
        for number, each in enumerate(own)
    ]
    return Soak(1000.0, 700.0, Tally([1.0, 2.0], list(errors)), samples, lag_s)


def test_growth_at_the_beginning_does_not_count() -> None:
    run = soak([50, 80, 95, 100, 100, 100, 100, 100, 100, 100])
    assert run.growth == 0
    assert run.mapped_growth > 0.1  # told, and no bound
    assert all(run.verdicts.values())


def test_growth_in_the_second_half_counts() -> None:
    run = soak([100, 100, 100, 100, 100, 101, 102, 103, 104, 105])
    assert run.growth == pytest.approx(4 / 101)
    assert list(run.verdicts.values()) == [False, True, True]


def test_an_error_and_a_lag_are_each_missed() -> None:
    run = soak([100] * 8, errors=["LoadFailed: 500"], lag_s=0.05)
    assert list(run.verdicts.values()) == [True, False, False]
    assert "1 errors of 2 requests: MISSED" in describe(run)
    assert "LoadFailed: 500" in describe(run)


def test_a_run_without_samples_has_no_growth() -> None:
    assert soak([]).growth == 0


def test_lag_is_the_bound_below_which_nearly_all_delays_are() -> None:
    before = {0.001: 10.0, 0.02: 10.0, float("inf"): 10.0}
    assert lag_bound(before, {0.001: 1009.0, 0.02: 1010.0, float("inf"): 1010.0}) == 0.001
    assert lag_bound(before, {0.001: 1000.0, 0.02: 1010.0, float("inf"): 1010.0}) == 0.02
    assert lag_bound(before, {0.001: 10.0, 0.02: 10.0, float("inf"): 11.0}) == float("inf")


def test_json_has_every_sample() -> None:
    value = json.loads(soak_json(soak([1, 2, 3])))
    assert [each["own"]["1"] for each in value["samples"]] == [MIB, 2 * MIB, 3 * MIB]
    assert [each["mapped"]["2"] for each in value["samples"]] == [MIB, 2 * MIB, 3 * MIB]
