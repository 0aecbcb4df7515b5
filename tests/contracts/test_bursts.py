"""What brakes count of a publisher, and which uploads they lead to a stage, on every engine."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, evolve
from twisted.internet.defer import Deferred, DeferredList

from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import Conflict
from pkgrepo.model import Actor
from pkgrepo.repositories.publish import bursts
from pkgrepo.repositories.publish.bursts import DAY_MS, HOUR_MS, Held, check_burst, count, lead_to_stage
from pkgrepo.storage.catalog.server import settings, stages
from pkgrepo.storage.catalog.server.purge import purge_repository
from tests.support.admission import admitted
from tests.support.catalogs import add_repository

NOW = 20_000 * DAY_MS
ANN = Actor(user_id=7, name="ann", address="192.0.2.1")


@define
class Opening:
    """Opens stages as the gateway does."""

    repository: Any

    def open(self, tx: Any, actor: Any, now_ms: int) -> Any:
        uid = f"00000000-0000-4000-8000-{now_ms % 10**12:012}"
        made = {"type": "Hosted"}, {}
        overlay = {"type": "Virtual", "members": []}, {}
        names = (uid, uid.replace("8000", "8001"))
        return stages.open_stage(tx, self.repository, self.repository, made, overlay, *names, "", actor, now_ms)


def of_client(repository: Any, actor: Actor = ANN) -> Any:
    """An actor whom the rules have admitted."""
    return evolve(admitted(repository, actor), road="")


class Place:
    """A repository with brakes; ``publish`` publishes packages as a client does."""

    def __init__(self, catalog: Any, repository: Any) -> None:
        self.catalog = catalog
        self.repository = repository

    async def publish(self, *keys: str, at_ms: int = NOW, actor: Actor = ANN) -> str:
        """The id of the stage that takes packages; empty if they go to the repository."""

        def command(tx: Any) -> str:
            by = of_client(self.repository, actor)
            brake = count(tx, self.repository, keys, by, at_ms)
            if brake is None:
                return ""
            return str(lead_to_stage(tx, self.repository, brake, keys, Opening(self.repository), by, at_ms))

        found: str = await self.catalog.write(command)
        return found

    async def end(self, uid: str, state: str) -> None:
        def command(tx: Any) -> None:
            stages.end_stage(tx, stages.get_open(tx, uid), state, [], ANN, NOW)

        await self.catalog.write(command)


@pytest.fixture
def place(catalog: Any) -> Any:
    async def make(**burst: Any) -> Place:
        repository = await catalog.write(add_repository)
        return Place(catalog, evolve(repository, settings={**repository.settings, "policy": {"burst": burst}}))

    return make


async def test_further_packages_of_an_hour_go_to_one_stage(place: Any) -> None:
    found = await place(packages_per_hour=2)
    assert [await found.publish(each) for each in ("a", "b", "a")] == ["", "", ""]
    stage = await found.publish("c")
    assert stage
    assert [await found.publish(each) for each in ("a", "c", "d")] == ["", stage, stage]
    assert await found.publish("e", actor=evolve(ANN, user_id=8)) == ""
    kinds = await found.catalog.scan(lambda r: r.all("SELECT kind, data FROM event ORDER BY seq"))
    assert [kind for kind, _ in kinds] == ["stage.created", "package.held", "package.held"]
    assert all("more than 2 packages in an hour" in data for kind, data in kinds if kind == bursts.EVENT)


async def test_of_several_packages_of_one_upload_all_are_held(place: Any) -> None:
    found = await place(packages_per_hour=2)
    assert await found.publish("a") == ""
    stage = await found.publish("b", "c")
    assert stage
    assert await found.publish("b") == stage
    assert await found.publish("d") == ""


@pytest.mark.parametrize("state", [stages.APPROVED, stages.REJECTED, stages.EXPIRED])
async def test_what_is_staged_stays_together_until_the_stage_ends(place: Any, state: str) -> None:
    found = await place(packages_per_hour=1)
    await found.publish("a")
    stage = await found.publish("b")
    later = NOW + HOUR_MS
    assert await found.publish("b", at_ms=later) == stage
    assert await found.publish("c", at_ms=later) == ""
    await found.end(stage, state)
    assert await found.publish("b", at_ms=later + HOUR_MS) == ""


async def test_more_than_ever_is_by_the_highest_hour_of_90_days(place: Any) -> None:
    found = await place(times_highest=2)
    many = [f"p{number}" for number in range(40)]

    async def hour(first_ms: int, packages: int) -> int:
        """How many of so many packages are published directly in an hour."""
        return [await found.publish(each, at_ms=first_ms) for each in many[:packages]].count("")

    assert await hour(NOW, 9) == bursts.LEAST  # nothing is known of earlier hours
    [stage] = [each.uid for each in await found.catalog.scan(stages.list_stages, limit=9)]
    await found.end(stage, stages.REJECTED)
    assert await hour(NOW + HOUR_MS, 30) == 10
    [stage] = [each.uid for each in await found.catalog.scan(stages.list_stages, state=stages.OPEN, limit=9)]
    await found.end(stage, stages.APPROVED)  # which knows 20 packages
    assert await hour(NOW + 2 * HOUR_MS, 40) == 40
    assert await hour(NOW + 91 * DAY_MS, 9) == bursts.LEAST


async def test_a_network_is_known_once_something_from_it_was_let_through(place: Any) -> None:
    found = await place(new_networks=True)
    elsewhere = evolve(ANN, address="198.51.100.7")
    first = await found.publish("a")
    assert first
    assert await found.publish("b", actor=elsewhere) == first
    await found.end(first, stages.REJECTED)
    second = await found.publish("a", at_ms=NOW + 1)
    await found.end(second, stages.APPROVED)
    assert await found.publish("c", at_ms=NOW + 2) == ""
    assert await found.publish("d", at_ms=NOW + 2, actor=elsewhere)
    assert await found.publish("e", at_ms=NOW + 90 * DAY_MS)


async def test_a_pipeline_is_new_until_something_of_it_was_let_through(place: Any, monkeypatch: Any) -> None:
    found = await place(new_pipelines=True)
    assert await found.publish("a") == ""  # a person is none
    monkeypatch.setattr(bursts, "_pipeline_of", lambda *_: "acme/app")
    stage = await found.publish("b")
    assert stage
    assert await found.publish("c") == stage
    await found.end(stage, stages.APPROVED)
    assert await found.publish("d") == ""
    monkeypatch.setattr(bursts, "_pipeline_of", lambda *_: "acme/other")
    assert await found.publish("e", at_ms=NOW + 1)


async def test_the_count_is_shared_by_those_who_publish_at_once(place: Any) -> None:
    found = await place(packages_per_hour=5)
    attempts = [Deferred.fromCoroutine(found.publish(f"p{number}")) for number in range(20)]
    results = [value for _, value in await DeferredList(attempts, fireOnOneErrback=True)]
    assert results.count("") == 5
    assert len({each for each in results if each}) == 1


async def test_what_no_stage_takes_is_refused_and_nothing_is_counted(place: Any) -> None:
    found = await place(packages_per_hour=1)

    def push(tx: Any, key: str) -> None:
        check_burst(tx, found.repository, [key], of_client(found.repository), NOW)

    await found.catalog.write(push, "a")
    for _ in range(2):
        with pytest.raises(Held, match=r"'?b'? is published to main/py by an approval"):
            await found.catalog.write(push, "b")
    await found.catalog.write(push, "a")


async def test_the_servers_own_work_is_not_counted(place: Any) -> None:
    found = await place(packages_per_hour=1)
    own = admit_server(Road.IMPORT, found.repository, ANN)
    for each in ("a", "b", "c"):
        assert await found.catalog.write(lambda tx, key: count(tx, found.repository, [key], own, NOW), each) is None


async def test_what_cannot_be_counted_is_not_published(place: Any) -> None:
    found = await place(packages_per_hour=1)
    await found.publish("a")
    [key] = [
        key for (key,) in await found.catalog.scan(lambda r: r.all("SELECT key FROM setting WHERE key LIKE 'burst:%'"))
    ]
    await found.catalog.write(settings.put, key, "{")
    with pytest.raises(Exception, match="truncated"):
        await found.publish("b")


async def test_stages_of_a_publisher_are_bounded_and_full_ones_take_no_more(place: Any, monkeypatch: Any) -> None:
    found = await place(packages_per_hour=1)
    monkeypatch.setattr(bursts, "MOST_STAGED", 2)
    monkeypatch.setattr(bursts, "MOST_STAGES", 2)
    await found.publish("a")
    taken = [await found.publish(each, at_ms=NOW + number) for number, each in enumerate("bcde")]
    assert (taken[0] == taken[1], taken[2] == taken[3], len({*taken})) == (True, True, 2)
    with pytest.raises(Conflict, match="2 stages of ann wait"):
        await found.publish("f", at_ms=NOW + 9)


async def test_nothing_is_left_of_a_removed_repository(place: Any) -> None:
    found = await place(packages_per_hour=1)
    await found.publish("a")
    await found.catalog.write(
        lambda tx: tx.execute("UPDATE repository SET deleted_at = 1 WHERE id = ?", (found.repository.id,))
    )
    while await found.catalog.write(purge_repository, found.repository.id):
        pass
    assert await found.catalog.scan(lambda r: r.all("SELECT key FROM setting WHERE key LIKE 'burst:%'")) == []
