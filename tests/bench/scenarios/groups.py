"""Every scenario by its name, in groups."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

import tests.bench.contestants.nora  # known by its name
import tests.bench.contestants.sizes  # noqa: F401
from tests.bench.arena import Scenario

from . import (
    conda,
    console,
    container,
    large,
    maven,
    nodes,
    npm,
    proxy,
    publishes,
    python,
    rubygems,
    scale,
    singles,
    starts,
    workers,
)


@frozen
class Group:
    """
    Scenarios of one subject.

    When everything is run, each is measured in so many ``rounds``, of so many ``seconds`` where they are small
    requests: as many as the goals need, and no more, for a run of everything ends within the hour. Those that are not
    ``in_all`` take too long for it.
    """

    title: str
    scenarios: tuple[Scenario, ...]
    rounds: int = 3
    seconds: float = 2.0
    in_all: bool = True


GROUPS: Mapping[str, Group] = {
    "peers": Group("Python packages", python.SCENARIOS),
    "npm": Group("npm packages", npm.SCENARIOS),
    "containers": Group("Container images", container.SCENARIOS),
    "maven": Group("Java artifacts", maven.SCENARIOS),
    "publishes": Group("Small publishes", publishes.SCENARIOS),
    "workers": Group("Two workers", workers.SCENARIOS),
    "proxies": Group("Proxies", proxy.SCENARIOS, rounds=1),
    "gems": Group("Ruby gems", rubygems.SCENARIOS, rounds=1),
    "conda": Group("Conda packages", conda.SCENARIOS, rounds=1),
    "singles": Group("Crates, Go modules, charts and plain files", singles.SCENARIOS, rounds=1),
    "figures": Group("Large uploads and catalogs", large.SCENARIOS, rounds=1),
    "console": Group("Console", console.SCENARIOS, rounds=1),
    "starts": Group("Starts, and memory at rest", starts.SCENARIOS),
    "nodes": Group("Nodes on PostgreSQL and a bucket", nodes.SCENARIOS, in_all=False),
    "scale": Group("Growth", scale.SCENARIOS, rounds=1, in_all=False),
}
ALL: Mapping[str, Scenario] = {each.name: each for group in GROUPS.values() for each in group.scenarios}


def group_of(scenario: Scenario) -> Group:
    """The group that a scenario is in."""
    return next(group for group in GROUPS.values() if scenario.name in {each.name for each in group.scenarios})
