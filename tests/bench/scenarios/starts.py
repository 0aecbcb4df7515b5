"""
A server at rest: what a start costs until its first response, and the memory that it then keeps.

It has one repository, of npm packages, and one worker or two. Pages that several processes share count once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.bench.arena import RSS, Arena, Goal, Metric, Scenario, Trial
from tests.bench.clients.load import first_bytes
from tests.bench.contestants.npm import NodeRegistry, PkgrepoNpm
from tests.bench.measure import MIB

FIRST_CPU: Final = Metric("first_cpu_s", "CPU s to the first response", 2)
PSS: Final = Metric("pss_mib", "PSS MiB")


def _start(arena: Arena, name: str) -> Trial:
    server = arena.get(name, NodeRegistry)
    server.fill("bench-start", 5)

    def trial(_number: int) -> Mapping[str, float]:
        server.stop()
        server.start()  # the API, which makes the repository at the first start, is not asked again
        first_bytes([server.package_url("bench-start")], {})
        cpu_s = server.tree.own_cpu_s()
        server.tree.settle()
        return {FIRST_CPU.key: cpu_s, RSS.key: server.tree.rss() / MIB, PSS.key: server.tree.pss() / MIB}

    return trial


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="start",
        about="a start with one npm repository, and the memory at rest",
        lineup=(PkgrepoNpm.name, f"{PkgrepoNpm.name}-2"),
        metrics=(FIRST_CPU, RSS, PSS),
        prepare=_start,
        stock="start",
        goals=(Goal(FIRST_CPU, "at most", 0.7), Goal(RSS, "at most", 60)),
    ),
)
