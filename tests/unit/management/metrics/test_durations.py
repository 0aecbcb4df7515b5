"""Counters of requests, and what counting one costs."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.task import Clock

from pkgrepo.management.metrics.durations import STEP_S, ReactorLag, RequestMetrics


class Registry:
    """A registry with one repository that counts how often all are listed."""

    def __init__(self):
        self.serial = 1
        self.name = "main/py"
        self.asked = 0

    def all(self):
        self.asked += 1
        return [SimpleNamespace(path=self.name, format="python")]


def request(repository, cache=""):
    return SimpleNamespace(
        code=404,
        startedWriting=True,
        repository=repository,
        method=b"GET",
        raw_path=b"/repositories/" + repository.encode(),
        site=SimpleNamespace(seconds=lambda: 1.0),
        started=0.0,
        sentLength=10,
        body_is_empty=True,
        cache=cache,
        header=lambda _name: None,
    )


def count(figures, repository):
    figures.request(request(repository))


def formats(figures):
    total = next(each for each in figures.snapshot()() if each.name == "pkgrepo_http_requests")
    return {sample.labels["format"]: sample.value for sample in total.samples if sample.name.endswith("_total")}


def test_names_of_unknown_repositories_are_looked_up_once_for_each_configuration():
    registry = Registry()
    figures = RequestMetrics(registry)
    for number in range(100):
        count(figures, f"main/none{number}")
        count(figures, "main/py")
    assert registry.asked == 1
    registry.serial, registry.name = 2, "main/new"
    count(figures, "main/new")
    assert registry.asked == 2
    assert formats(figures) == {"": 100, "python": 101}


def test_repetitions_count_like_the_request_that_they_repeat():
    repeated, usual = RequestMetrics(Registry()), RequestMetrics(Registry())
    asked = request("main/py", "hot")
    for _ in range(3):
        usual.request(asked)
    again = repeated.repeater(asked)
    for _ in range(3):
        again("192.0.2.1", b"id", 1.0)
    figures = [[sample for family in each.snapshot()() for sample in family.samples] for each in (usual, repeated)]
    assert figures[0] == figures[1]


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
