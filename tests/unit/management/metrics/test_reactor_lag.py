"""The lag of the reactor."""

from __future__ import annotations

from twisted.internet.task import Clock

from pkgrepo.management.metrics.durations import STEP_S, ReactorLag


def test_lag_is_how_late_the_reactor_runs_a_call() -> None:
    clock = Clock()
    lag = ReactorLag(clock)
    lag.startService()
    clock.advance(STEP_S)
    clock.advance(STEP_S + 0.015)
    lag.stopService()
    (family,) = lag.snapshot()()
    samples = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    assert samples["pkgrepo_reactor_lag_seconds_count"] == 2
    assert (samples["0.001"], samples["0.01"], samples["0.02"], samples["+Inf"]) == (1, 1, 2, 2)
    assert clock.getDelayedCalls() == []
