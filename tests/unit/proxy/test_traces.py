"""
What is decided for each state of what is kept and each behaviour of an upstream, in every format.

The steps of explanations are compared with those in ``tests/data/traces``. A change of them is a change of what clients
get: look at each line before you write them anew, with ``PKGREPO_WRITE_TRACES=1``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from attrs import frozen
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.storage.catalog.server import repositories
from tests.support.images import make_image
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Stack
from tests.support.proxy_world import ManualClock
from tests.support.upstreams.conda import CondaUpstream
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.faults import HTML, failing
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.rubygems import RubyUpstream
from tests.support.upstreams.server import ANY, UNKNOWN, ScriptedUpstream

DATA = Path(__file__).parents[2] / "data" / "traces"
TTL_S = 300
REFUSED = failing(403)
DOWN = failing(503, retry_after="3600")  # one request is enough to know it

STATES = ("unknown", "fresh", "old", "missed", "missed long ago")
BEHAVIOURS: Mapping[str, Any] = {
    "same": None,
    "changed": None,
    "404": UNKNOWN,
    "503": DOWN,
    "403": REFUSED,
    "page": HTML,
}
SHAPES: Mapping[str, Sequence[str]] = {
    "alone": ("a",),
    "routes": ("a", "b"),
    "replicas": ("a", "b"),
    "virtual": ("a", "b"),
    "member off": ("a", "b"),
    "name reserved": ("a", "b"),
}
MEMBERS = ("virtual", "member off", "name reserved")
FEWER: Mapping[str, Sequence[str]] = {"member off": ("same",), "name reserved": ("same",)}


@frozen
class Kind:
    """
    A format with its ``upstream``.

    ``add`` publishes a version of a package; ``package`` and ``questions`` are what explanations are asked for, of a
    name: a file below the repository, or a version. The first ``kept`` of them are asked before the upstreams change.
    """

    upstream: Callable[[], Any]
    add: Callable[[Any, str, str], object]
    package: str = "{}"
    questions: Sequence[Mapping[str, str]] = ({},)
    kept: int = 1

    def queries(self, name: str) -> list[dict[str, str]]:
        """The parameters of all questions about a package."""
        package = {"package": self.package.format(name)}
        return [package | {key: text.format(name) for key, text in each.items()} for each in self.questions]


def _push(upstream: ContainerUpstream, name: str, version: str) -> None:
    upstream.push(name, make_image(version), "1", version)


KINDS: Mapping[str, Kind] = {
    "npm": Kind(
        NpmUpstream,
        lambda up, name, version: up.add(name, version),
        questions=({}, {"file": "{0}/-/{0}-1.0.0.tgz"}),
    ),
    "python": Kind(
        PythonUpstream,
        lambda up, name, version: up.add(name, version),
        questions=({}, {"file": "packages/{0}/1.0.0/{0}-1.0.0-py3-none-any.whl"}),
    ),
    "maven": Kind(
        MavenUpstream,
        lambda up, name, version: up.deploy("com.example", name, version),
        package="com.example:{}",
        questions=({}, {"file": "com/example/{0}/1.0.0/{0}-1.0.0.jar"}),
    ),
    "ruby": Kind(
        RubyUpstream,
        lambda up, name, version: up.add(name, version),
        questions=({}, {"file": "gems/{0}-1.0.0.gem"}),
    ),
    "conda": Kind(
        CondaUpstream,
        lambda up, name, version: up.add(name, version),
        questions=({}, {"file": "noarch/{0}-1.0.0-py_0.conda"}),
    ),
    "docker": Kind(ContainerUpstream, _push, questions=({}, {"version": "1"}), kept=2),
}


@frozen
class Cell:
    """One question of the matrix: ``repository`` is the one that is asked."""

    shape: str
    state: str
    behaviour: str
    repository: str

    @property
    def name(self) -> str:
        """The package: one that the upstreams have, or one that comes later."""
        return "late" if self.state.startswith("missed") else "demo"

    def __str__(self) -> str:
        return f"{self.shape}, {self.state}, upstream {self.behaviour}"


class Matrix:
    """Servers of one format, one for each behaviour, and one repository for each cell."""

    def __init__(self, stack: Stack, format_: str, kind: Kind) -> None:
        self._stack = stack
        self._format = format_
        self._kind = kind
        self._upstreams: dict[str, ScriptedUpstream] = {}
        self._cells: list[Cell] = []

    async def build(self, exits: ExitStack) -> None:
        """Start upstreams, and make the repositories."""
        for name in (*BEHAVIOURS, "good"):
            upstream = exits.enter_context(self._kind.upstream())
            self._upstreams[name] = upstream
            self._kind.add(upstream, "demo", "1.0.0")
        await self._stack.add_repository("own", format=self._format, config={"type": "Hosted"})
        places = [(a, b, c) for a in SHAPES for b in STATES for c in FEWER.get(a, BEHAVIOURS)]
        self._cells = [Cell(*each, f"c{number}") for number, each in enumerate(places)]
        for cell in self._cells:
            await self._add(cell)

    async def _add(self, cell: Cell) -> None:
        routes = {"a": self._upstreams[cell.behaviour], "b": self._upstreams["good"]}
        names = SHAPES[cell.shape]
        if cell.shape not in MEMBERS:
            more = {"routes_are_replicas": True} if cell.shape == "replicas" else {}
            await self._add_proxy(cell.repository, {name: routes[name] for name in names}, **more)
            return
        for name in names:
            await self._add_proxy(f"{cell.repository}-{name}", {name: routes[name]})
        members = ["main/own", *(f"main/{cell.repository}-{name}" for name in names)]
        config = {"type": "Virtual", "members": members}
        await self._stack.add_repository(cell.repository, format=self._format, config=config)

    async def _add_proxy(self, name: str, routes: Mapping[str, Any], **more: Any) -> None:
        listed = [{"name": route, "url": getattr(up, "simple", up.url), "priority": 0} for route, up in routes.items()]
        config = {"type": "Proxy", "proxy": {"routes": listed}, "cache_ttl": TTL_S, **more}
        await self._stack.add_repository(name, format=self._format, config=config)

    async def prepare(self, clock: ManualClock) -> None:
        """Have everything kept as the states of the cells say, and let the upstreams behave as they shall."""
        await self._ask_all("old", "missed long ago")
        clock.advance(86_400)
        await self._ask_all("fresh", "missed")
        clock.advance(1)
        for name, step in BEHAVIOURS.items():
            if step is not None:
                self._upstreams[name].misbehave(ANY, step, repeat=True)
        self._kind.add(self._upstreams["changed"], "demo", "2.0.0")
        self._kind.add(self._upstreams["changed"], "late", "1.0.0")
        for cell in self._cells:
            if cell.shape in FEWER:
                await self._close_first_member(cell)

    async def _close_first_member(self, cell: Cell) -> None:
        core = self._stack.assembly.core
        member = core.registry.find_path(f"main/{cell.repository}-a")
        assert member is not None, "it was added"
        changes: dict[str, Any] = {"active": False}
        if cell.shape == "name reserved":
            changes = {"settings": {**member.settings, "policy": {"reserved_names": ["*demo*", "*late*"]}}}
        await core.catalog.write(repositories.update_repository, member.id, now_ms=core.clock.now_ms(), **changes)

    async def _ask_all(self, *states: str) -> None:
        await self._each(
            lambda cell: self.explain(cell, self._kind.kept), [each for each in self._cells if each.state in states]
        )
        await self._stack.assembly.core.wait_idle()

    async def explain(self, cell: Cell, count: int | None = None) -> list[str]:
        """The answers to the first ``count`` questions about a cell, by default all, as lines."""
        lines = []
        for query in self._kind.queries(cell.name)[:count]:
            parameters = urlencode({"repository": f"main/{cell.repository}", **query})
            reply = await self._stack.call("GET", f"/api/explain?{parameters}")
            assert reply.status == 200, (cell, reply)
            what = "file" if "file" in query else "version" if "version" in query else "package"
            lines.append(f"  {what}: {self._outcome(cell, reply.json)}")
        return lines

    def _outcome(self, cell: Cell, found: Any) -> str:
        steps = [self._step(cell, each) for each in found["steps"]]
        return " > ".join([*steps, found["outcome"].upper()])

    def _step(self, cell: Cell, step: Any) -> str:
        where = re.sub(rf"^main/{cell.repository}(-?)", lambda match: "" if match[1] else "it", step["repository"])
        what = (step.get("what") or "").replace(cell.name, "")
        parts = (where.removeprefix("main/"), step.get("route"), step["step"], what)
        return " ".join(each for each in parts if each)

    async def _each(self, work: Callable[[Cell], Any], cells: Sequence[Cell]) -> list[Any]:
        return list(await gatherResults([Deferred.fromCoroutine(work(each)) for each in cells], consumeErrors=True))

    async def written(self) -> str:
        """All answers."""
        answers = await self._each(self.explain, self._cells)
        return "".join("\n".join([str(cell), *lines]) + "\n" for cell, lines in zip(self._cells, answers, strict=True))


@pytest.mark.parametrize("format_", KINDS)
async def test_what_is_decided_is_as_written_down(format_: str, tmp_path: Path) -> None:
    stack = Stack(tmp_path, proxy__allow_private=["127.0.0.1"])
    clock = ManualClock()
    stack.assembly.core.clock = clock  # type: ignore[assignment]
    matrix = Matrix(stack, format_, KINDS[format_])
    async with AsyncExitStack() as exits:
        exits.enter_context(no_failures())
        servers = exits.enter_context(ExitStack())
        await stack.start()
        exits.push_async_callback(stack.stop)
        await matrix.build(servers)
        await matrix.prepare(clock)
        written = await matrix.written()
        await stack.assembly.core.wait_idle()
    file = DATA / f"{format_}.txt"
    if os.environ.get("PKGREPO_WRITE_TRACES"):
        file.write_text(written)
    assert written.splitlines() == file.read_text().splitlines()
