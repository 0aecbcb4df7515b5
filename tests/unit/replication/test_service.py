"""Which followers there are, and how long each waits for an event."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from twisted.internet.task import Clock

from pkgrepo.formats.npm.format import npm
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.replication.service import LONGEST_WAIT_S, Parts, Replication
from pkgrepo.storage.catalog.server import replicas
from tests.support.auth import make_repository
from tests.support.catalog import MemoryCatalog, add_repository
from tests.support.inprocess_server import reactor
from tests.unit.replication.test_source import SETTINGS


class Scene:
    """Followers of servers that do not answer. ``repositories`` are those that there are."""

    def __init__(self, idle_timeout_s: float = 60) -> None:
        self.catalog = MemoryCatalog()
        self.repositories: list[Repository] = []

        async def nothing(*_: object) -> None:
            pass

        unused: Any = None
        registry: Any = SimpleNamespace(
            refresh=nothing,
            all=lambda: [each for each in self.repositories if each.active],
            find_id=lambda id_: next((each for each in self.repositories if each.id == id_), None),
        )
        self.service = Replication(
            Parts(
                catalog=self.catalog,
                registry=registry,
                clock=unused,
                formats={"npm": npm()},
                copies=lambda _: unused,
                upstreams=Upstreams(SETTINGS, reactor, authorize=lambda _: None),
                settle=nothing,
                mark_old=unused,
                idle_timeout_s=idle_timeout_s,
                reactor=Clock(),
            )
        )
        self.service.startService()

    def add(self, id_: int, **route: Any) -> Repository:
        add_repository(self.catalog, id_, format="npm")
        url = "http://127.0.0.1:1/repositories/main/b"
        added = evolve(
            make_repository(id_, format="npm", settings={"replicate": {}}),
            type=RepositoryType.PROXY,
            config={"proxy": {"routes": [{"name": "there", "url": url, "priority": 0, **route}]}},
        )
        self.repositories.append(added)
        return added

    async def look(self) -> dict[int, Any]:
        """The followers after a look at the configurations, by the id of the repository."""
        await self.service._look()
        return {plan.repository_id: follower for plan, (follower, _) in self.service._running.items()}

    def known(self) -> list[int]:
        return [each.repository_id for each in self.catalog.peek(replicas.all_replicas)]


@pytest.mark.parametrize(
    ("server_s", "route_s", "waits_s"),
    [(60, None, LONGEST_WAIT_S), (30, None, 15), (60, 11, 5), (5, 300, LONGEST_WAIT_S)],
)
async def test_a_follower_waits_for_half_of_what_connections_may_idle_and_not_too_long(
    server_s: float, route_s: int | None, waits_s: int
) -> None:
    scene = Scene(server_s)
    scene.add(1, **({} if route_s is None else {"idle_timeout": f"{route_s}s"}))
    source = (await scene.look())[1]._source
    assert (source.waits_s, source.images) == (waits_s, False)
    await scene.service.stopService()


async def test_what_is_known_of_a_replica_is_forgotten_unless_it_is_off_for_a_while() -> None:
    scene = Scene()
    one, two = scene.add(1), scene.add(2)
    assert (await scene.look()).keys() == {1, 2}
    assert scene.known() == [1, 2]
    scene.repositories[:] = [evolve(one, active=False), evolve(two, settings={})]
    await scene.look()
    assert (await scene.look()).keys() == set()
    assert scene.known() == [1]
    scene.repositories[:] = [one, two]
    assert (await scene.look()).keys() == {1, 2}
    scene.repositories[:] = [evolve(one, active=False, settings={})]
    await scene.look()
    await scene.look()
    assert scene.known() == []
    await scene.service.stopService()
    assert scene.service._running == {}
