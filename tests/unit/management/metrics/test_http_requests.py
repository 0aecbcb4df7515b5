"""Counters of requests, and what counting one costs."""

from types import SimpleNamespace

from pkgrepo.management.metrics.http_requests import RequestMetrics


class Registry:
    """A registry with one repository that counts how often all are listed."""

    def __init__(self):
        self.serial = 1
        self.name = "main/py"
        self.asked = 0

    def all(self):
        self.asked += 1
        return [SimpleNamespace(path=self.name, format="python")]


def count(figures, repository):
    figures.request(
        SimpleNamespace(
            code=404,
            startedWriting=True,
            repository=repository,
            method=b"GET",
            raw_path=b"/repositories/" + repository.encode(),
            site=SimpleNamespace(seconds=lambda: 1.0),
            started=0.0,
            sentLength=10,
            body_is_empty=True,
            cache="",
            header=lambda _name: None,
        )
    )


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
