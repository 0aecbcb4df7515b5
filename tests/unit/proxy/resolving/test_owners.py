"""Who serves a name: for packages, files by their paths and images alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_twisted
from attrs import frozen

from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.images import make_image
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Stack, running_stacks
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.faults import failing
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import ANY, UNKNOWN, ScriptedUpstream

JAR = "com/example/demo/1.0.0/demo-1.0.0.jar"


@frozen
class Kind:
    """Something that clients ask for: its package, the ``query`` of its explanation, and what upstreams have it."""

    format: str
    upstream: Callable[[], Any]
    add: Callable[[Any], object]
    package: str = "demo"
    query: Mapping[str, str] = {}


KINDS = {
    "package": Kind("npm", NpmUpstream, lambda up: up.add("demo", "1.0.0")),
    "file": Kind(
        "maven",
        MavenUpstream,
        lambda up: up.deploy("com.example", "demo", "1.0.0"),
        "com.example:demo",
        {"file": JAR},
    ),
    "image": Kind(
        "docker", ContainerUpstream, lambda up: up.push("demo", make_image("a"), "1", "1"), query={"version": "1"}
    ),
}


class Scene:
    """A virtual repository ``all`` with the members ``own``, which is hosted, and the proxies ``a`` and ``b``."""

    def __init__(self, stack: Stack, kind: Kind, upstreams: Mapping[str, ScriptedUpstream]) -> None:
        self._stack = stack
        self._kind = kind
        self.upstreams = upstreams

    async def build(self) -> None:
        format_ = self._kind.format
        await self._stack.add_repository("own", format=format_, config={"type": "Hosted"})
        for name, up in self.upstreams.items():
            routes = [{"name": name, "url": up.url, "priority": 0}]
            await self._stack.add_repository(
                name, format=format_, config={"type": "Proxy", "proxy": {"routes": routes}}
            )
        members = ["main/own", "main/a", "main/b"]
        await self._stack.add_repository("all", format=format_, config={"type": "Virtual", "members": members})

    async def own(self) -> None:
        core, own = self._stack.assembly.core, self._repository("own")
        key = self._kind.package
        await core.catalog.write(packages.ensure_package, own.id, key=key, name=key, serial=1, now_ms=1)

    async def disown(self) -> None:
        core, own = self._stack.assembly.core, self._repository("own")
        package = await core.catalog.look(packages.find_package, own.id, self._kind.package)
        await core.catalog.write(packages.remove_package, package.id)

    async def change(self, name: str, **changes: Any) -> None:
        core = self._stack.assembly.core
        await core.catalog.write(repositories.update_repository, self._repository(name).id, now_ms=1, **changes)

    async def reserve(self, name: str) -> None:
        await self.change(name, settings={"policy": {"reserved_names": ["*demo*"]}})

    async def explain(self) -> tuple[str, list[str]]:
        """The outcome, and the steps with the repositories that they are about."""
        query = {"repository": "main/all", "package": self._kind.package, **self._kind.query}
        found = (await self._stack.call("GET", f"/api/explain?{urlencode(query)}")).json
        return found["outcome"], [
            f"{each['repository'].removeprefix('main/')} {each['step']}" for each in found["steps"]
        ]

    async def fetch(self) -> int:
        """Have the first member that has it keep it; the status."""
        if "file" in self._kind.query:
            return (await self._stack.call("GET", f"/repositories/main/all/{JAR}")).status
        await self.explain()
        return 200

    def count(self) -> int:
        return sum(each.count() for each in self.upstreams.values())

    def _repository(self, name: str) -> Any:
        return self._stack.assembly.core.registry.find_path(f"main/{name}")


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as exits:
        exits.enter_context(no_failures())
        yield exits


@pytest_twisted.async_yield_fixture(params=KINDS)
async def scene(request: pytest.FixtureRequest, tmp_path: Path, servers: ExitStack) -> Any:
    kind = KINDS[request.param]
    upstreams = {name: servers.enter_context(kind.upstream()) for name in "ab"}
    for each in upstreams.values():
        kind.add(each)
    async with running_stacks(tmp_path) as make:
        made = Scene(await make(proxy__allow_private=["127.0.0.1"]), kind, upstreams)
        await made.build()
        yield made


async def test_names_of_hosted_members_are_asked_of_nobody(scene: Scene) -> None:
    await scene.own()
    assert (await scene.explain())[1][0] == "own owned"
    await scene.change("own", active=False)
    assert await scene.explain() == ("inactive", ["own owned_inactive"])
    await scene.disown()
    assert await scene.explain() == ("retired", ["own retired"])
    await scene.change("own", active=True)
    assert await scene.explain() == ("retired", ["own retired"])
    assert scene.count() == 0


async def test_members_that_are_not_asked_are_named_with_the_reason(scene: Scene) -> None:
    outcome, steps = await scene.explain()
    assert (outcome, steps[0], steps[-1]) == ("served", "own not_owned", "b unneeded")
    await scene.change("a", active=False)
    outcome, steps = await scene.explain()
    assert (outcome, steps[1]) == ("inactive", "a inactive")
    assert scene.upstreams["b"].count() == 0
    await scene.change("all", settings={"policy": {"skip_inactive": True}})
    outcome, steps = await scene.explain()
    assert (outcome, steps[1], steps[-1].split()[0]) == ("served", "a inactive", "b")
    await scene.change("a", active=True)
    await scene.reserve("b")
    await scene.change("a", active=False)
    outcome, steps = await scene.explain()
    assert (outcome, sorted(steps)) == ("reserved", ["a inactive", "b reserved", "own not_owned"])


async def test_name_that_one_member_reserves_and_no_other_has_is_reserved(scene: Scene) -> None:
    await scene.reserve("a")
    scene.upstreams["b"].misbehave(ANY, UNKNOWN, repeat=True)
    outcome, steps = await scene.explain()
    assert (outcome, steps[1]) == ("reserved", "a reserved")
    assert scene.upstreams["a"].count() == 0


async def test_member_that_reserves_a_name_it_has_served_leaves_it_to_the_others(scene: Scene) -> None:
    assert await scene.fetch() == 200
    await scene.reserve("a")
    outcome, steps = await scene.explain()
    assert (outcome, steps[1], steps[-1].split()[0]) == ("served", "a reserved", "b")


async def test_member_behind_one_that_fails_is_asked_only_if_it_is_known_to_have_had_it(scene: Scene) -> None:
    scene.upstreams["a"].misbehave(ANY, failing(503), repeat=True)
    assert await scene.explain() == ("failed", ["own not_owned", "a failed", "b withheld"])
    assert scene.upstreams["b"].count() == 0
    await scene.change("a", active=False)
    await scene.change("all", settings={"policy": {"skip_inactive": True}})
    assert await scene.fetch() == 200
    await scene.change("all", settings={})
    outcome, steps = await scene.explain()
    assert (outcome, steps[1], steps[-1].split()[0]) == ("served", "a inactive", "b")  # it has served the name before
    await scene.change("a", active=True)
    outcome, steps = await scene.explain()
    assert (outcome, steps[-1].split()[0]) == ("served", "b")


async def test_what_a_member_that_is_off_has_served_is_served_by_nobody_else(scene: Scene) -> None:
    assert await scene.fetch() == 200
    await scene.change("a", active=False)
    outcome, steps = await scene.explain()
    assert (outcome, steps[1:]) == ("inactive", ["a inactive"])
    assert scene.upstreams["b"].count() == 0
