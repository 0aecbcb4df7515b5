"""The tables of scenarios and contestants belong together."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.contestants.server import CONTESTANTS, ROOT
from tests.bench.scenarios.groups import ALL, GROUPS


def test_every_contestant_of_a_scenario_is_known() -> None:
    lineups = {name: scenario.lineup for name, scenario in ALL.items()}
    assert {name for lineup in lineups.values() for name in lineup} <= CONTESTANTS.keys()


def test_two_scenarios_of_a_name_are_one() -> None:
    assert all(ALL[scenario.name] is scenario for group in GROUPS.values() for scenario in group.scenarios)


def test_the_command_needs_nothing_of_the_project() -> None:
    # It runs in an environment of its own, beside the peers.
    check = "import sys, tests.bench.__main__; sys.exit(any(each.split('.')[0] == 'pkgrepo' for each in sys.modules))"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, timeout=60, check=False).returncode == 0
