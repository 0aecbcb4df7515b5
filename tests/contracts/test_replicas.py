"""What remains to be done for replicas, on every engine."""

from datetime import UTC, datetime
from unittest.mock import ANY

from pkgrepo.storage.catalog.packages import deleted_names, packages
from pkgrepo.storage.catalog.packages.deleted_names import DeletedName
from pkgrepo.storage.catalog.packages.events import events_after
from pkgrepo.storage.catalog.rows import put
from pkgrepo.storage.catalog.server import replicas
from pkgrepo.storage.catalog.server.replicas import ALL, ANNOUNCED_MS, KEPT, NEW, Backlog
from tests.support.catalogs import NOW, add_repository, publish

SOURCE = "https://b.example main/b"


async def test_tasks_come_with_the_position_and_go_when_they_are_done(catalog):
    repository = await catalog.write(add_repository)
    place = repository.id
    await catalog.write(replicas.ensure_replica, place, SOURCE)
    assert (await catalog.look(replicas.find_replica, place)).walk == NEW
    assert await catalog.write(replicas.compare_again, place, 1) is False
    assert await catalog.write(replicas.begin_comparison, place, SOURCE, "evt_1_1", "first", 1) == []
    await catalog.write(replicas.walk_on, place, KEPT, "b", [("a", ALL), ("b", ALL)], 2)
    items = [("b", "1.0"), ("b", "1.0"), ("c", "")]
    assert await catalog.write(replicas.take_events, place, "evt_1_1", "evt_9_1", 3, items, 3) == []
    assert await catalog.write(replicas.take_events, place, "evt_1_1", "evt_8_1", 0, items, 3) is None
    found = await catalog.look(replicas.find_replica, place)
    assert (found.position, found.walk, found.walked, found.events_left) == ("evt_9_1", KEPT, "b", 3)
    due = await catalog.look(replicas.due_tasks, place, 5, 10)
    assert [(each.package_key, each.version) for each in due] == [("b", "1.0"), ("c", ""), ("a", ALL), ("b", ALL)]
    await catalog.write(replicas.add_tasks, place, [("b", "1.0")], 4)  # while it is being done
    await catalog.write(replicas.end_task, place, due[0])
    await catalog.write(replicas.fail_task, place, due[1], "it is away", 100)
    await catalog.write(replicas.end_task, place, due[2])
    assert await catalog.look(replicas.backlog_of, place) == Backlog(3, 1, "it is away")
    assert len(await catalog.look(replicas.due_tasks, place, 5, 10)) == 2
    assert await catalog.write(replicas.compare_again, place, 6) is True
    assert len(await catalog.look(replicas.due_tasks, place, 6, 10)) == 3
    await catalog.write(replicas.ensure_replica, place, "https://c.example main/c")
    assert await catalog.look(replicas.backlog_of, place) == Backlog()


async def test_tasks_of_a_package_that_failed_become_one(catalog):
    repository = await catalog.write(add_repository)
    place = repository.id
    await catalog.write(replicas.ensure_replica, place, SOURCE)
    items = [("a", "1.0"), ("a", "2.0"), ("a", "3.0"), ("a", ""), ("b", "1.0"), ("c", "1.0"), ("c", "2.0")]
    await catalog.write(replicas.add_tasks, place, items, 1)
    for each in await catalog.look(replicas.due_tasks, place, 5, 10):
        if (each.package_key, each.version) != ("a", "3.0"):
            await catalog.write(replicas.fail_task, place, each, f"{each.version} is wrong", 100)
    assert await catalog.look(replicas.backlog_of, place) == Backlog(7, 6, ANY)
    assert await catalog.write(replicas.fold_failed, place, 1) == 1
    assert await catalog.write(replicas.fold_failed, place, 1) == 1
    assert await catalog.write(replicas.fold_failed, place, 1) == 0
    due = await catalog.look(replicas.due_tasks, place, 100, 10)
    left = {("a", ALL): 1, ("a", "3.0"): 0, ("a", ""): 1, ("b", "1.0"): 1, ("c", ALL): 1}
    assert {(each.package_key, each.version): each.attempts for each in due} == left
    assert len(await catalog.look(replicas.due_tasks, place, 99, 10)) == 1


async def test_a_failure_is_told_after_a_minute_and_when_it_is_over(catalog):
    repository = await catalog.write(add_repository)
    place = repository.id
    await catalog.write(replicas.ensure_replica, place, SOURCE)

    async def kinds():
        return [each.kind for each in await catalog.look(events_after, 0, 10, place) if "replication" in each.kind]

    await catalog.write(replicas.note_state, place, "it is away", 1, current=False)
    await catalog.write(replicas.note_state, place, "", 2, current=True)
    assert await kinds() == []
    for now_ms in (10, 10 + ANNOUNCED_MS, 11 + ANNOUNCED_MS):
        await catalog.write(replicas.note_state, place, "it is away", now_ms, current=False)
    assert await kinds() == ["replication.failed"]
    found = await catalog.look(replicas.find_replica, place)
    assert (found.error, found.failing_since.timestamp(), found.current_at.timestamp()) == ("it is away", 0.01, 0.002)
    await catalog.write(replicas.note_state, place, "", 100_000, current=False)
    assert await kinds() == ["replication.failed", "replication.recovered"]
    await catalog.write(replicas.forget_replica, place)
    assert await catalog.look(replicas.find_replica, place) is None


AT = datetime(2026, 1, 2, tzinfo=UTC)
SHA256 = "a" * 64


async def pages(catalog, repository, **of):
    """All deleted names, read two at a time."""
    found, after = [], ""
    while page := await catalog.look(deleted_names.list_deleted, repository.id, after=after, limit=2, **of):
        assert len(page) <= 2
        found += page
        after = page[-1].key
    return [(each.package_key, each.path, each.sha256) for each in found]


async def test_deleted_names_are_read_in_pages_and_noted_elsewhere(catalog):
    there, here = await catalog.write(add_repository), await catalog.write(add_repository, "here")
    await catalog.write(publish, here, "b-1", package="b")  # of which something is kept here
    names = [
        DeletedName("a", "a-1", SHA256, AT),
        DeletedName("b", "b-1", SHA256, AT),
        DeletedName("b", "b-2", SHA256, AT),
        DeletedName("a", "", "", AT),
        DeletedName("b", "", "", datetime(9999, 1, 1, tzinfo=UTC)),
        DeletedName("c", "", "", AT),
    ]
    expected = [(each.package_key, each.path, each.sha256) for each in names]
    for repository in (there, here):
        for _ in range(2):  # nothing changes by the second time
            await catalog.write(deleted_names.adopt_deleted, repository.id, names, NOW)
    assert await pages(catalog, there) == expected
    for package in "abc":
        assert await pages(catalog, there, package=package) == [each for each in expected if each[0] == package]
    assert await pages(catalog, here) == [each for each in expected if each[1] != "b-1"]
    (last, *_) = reversed(await catalog.look(deleted_names.list_deleted, there.id, package="b"))
    assert last.deleted_at.timestamp() * 1000 == NOW, "it is in the future"
    told = [each.package_key for each in await catalog.look(events_after, 0, 100, there.id) if each.kind == "rewritten"]
    assert told == ["a", "b", "c"]

    await catalog.write(packages.free_names, here.id)
    assert [each.key for each in await catalog.look(packages.list_retired, here.id)] == ["a", "c"]
    await catalog.write(deleted_names.take_back, there.id, "b", ["b-2"], NOW)
    assert await pages(catalog, there, package="b") == [("b", "b-1", SHA256), ("b", "", "")]


async def test_what_was_found_to_be_nowhere_is_asked_for_again_after_an_event(catalog):
    place = (await catalog.write(add_repository)).id
    await catalog.write(replicas.begin_comparison, place, SOURCE, "evt_1_1", "first", 1)
    row = {"repository_id": place, "fetched_at": NOW, "checked_at": NOW, "fresh_until": NOW + 60_000}
    for key in ("simple/demo", "simple/other"):
        package = key.rpartition("/")[2]
        await catalog.write(put, "upstream_document", key=key, package_key=package, route="", **row)
    keys = await catalog.write(replicas.take_events, place, "evt_1_1", "evt_2_1", 0, [("demo", "1.0")], NOW)
    assert keys == ["simple/demo"]
