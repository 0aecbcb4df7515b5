"""Wheels become conda packages once somebody reads the channel."""

import hashlib

import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.formats.conda.wheels import following, reading
from pkgrepo.storage.catalog.packages import followed_wheels
from tests.support.inprocess_server import turn
from tests.support.memory_server import running_stacks
from tests.support.python_packages import make_wheel

CHANNEL = "/repositories/main/py/conda"
REPODATA = f"{CHANNEL}/noarch/repodata.json"
FILE = f"{CHANNEL}/noarch/demo-1.0-py_0.conda"


@pytest_twisted.async_yield_fixture
async def server(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "EVERY_S", 0.005)
    async with running_stacks(tmp_path) as make:
        stack = await make()
        await stack.add_repository("py")
        await stack.publish("main/py", "demo", "1.0")
        yield stack


async def followed(server):
    return await server.assembly.core.catalog.look(followed_wheels.find_followed, 2)


async def names(server, path=REPODATA):
    reply = await server.call("GET", path)
    assert reply.status == 200, reply.body
    return sorted(each["name"] for each in reply.json["packages.conda"].values())


async def test_the_first_read_has_what_was_published_before_and_later_reads_what_follows(server):
    for _ in range(20):
        await turn()
    assert await followed(server) is None
    assert await names(server) == ["demo"]
    assert (await followed(server)).complete
    await server.publish("main/py", "later", "1.0")
    while await names(server) != ["demo", "later"]:
        await turn()


async def test_a_file_of_a_lock_file_and_a_shard_index_are_first_reads_too(server):
    assert (await server.call("GET", FILE)).status == 200
    await server.add_repository("other")
    await server.publish("main/other", "demo", "1.0")
    path = "/repositories/main/other/conda/noarch/repodata_shards.msgpack.zst"
    assert (await server.call("GET", path)).status == 200
    other = "/repositories/main/other/conda/noarch/demo-1.0-py_0.conda"
    assert (await server.call("HEAD", other)).status == 200


async def test_readers_of_a_virtual_repository_read_its_members(server):
    await server.add_repository("second")
    await server.publish("main/second", "more", "1.0")
    await server.add_repository("all", config={"type": "Virtual", "members": ["main/py", "main/second"]})
    assert await names(server, "/repositories/main/all/conda/noarch/repodata.json") == ["demo", "more"]


async def test_many_first_readers_at_a_time_get_the_same(server):
    replies = await gatherResults([Deferred.fromCoroutine(names(server)) for _ in range(20)])
    assert replies == [["demo"]] * 20


async def test_who_may_not_read_begins_nothing(server):
    await server.ok("PATCH", "/repository/main%2Fpy", {"visibility": "private"})
    for path in (REPODATA, FILE, f"{CHANNEL}/unconverted.json"):
        assert (await server.call("GET", path, who=None)).status == 401
    assert await followed(server) is None


async def test_a_read_that_waited_long_enough_is_told_to_come_again(server, monkeypatch):
    monkeypatch.setattr(reading, "WAIT_MS", 0)
    gate: Deferred[None] = Deferred()
    compare = following.WheelFollower._compare_all

    async def wait(self, *args, **others):
        await gate
        await compare(self, *args, **others)

    monkeypatch.setattr(following.WheelFollower, "_compare_all", wait)
    for path in (REPODATA, FILE):
        reply = await server.call("GET", path)
        assert (reply.status, reply.headers["retry-after"]) == (503, "5")
        assert b"0 packages are here, and 1 are there" in reply.body
    gate.callback(None)
    monkeypatch.setattr(reading, "WAIT_MS", 60_000)
    assert (await server.call("GET", FILE)).status == 200


async def test_a_wheel_whose_bytes_are_lost_keeps_readers_from_no_other(server, tmp_path):
    _, data = make_wheel("lost", "1.0")
    await server.publish("main/py", "lost", "1.0")
    (lost,) = tmp_path.rglob(f"blobs/**/{hashlib.sha256(data).hexdigest()}.*")
    content = lost.read_bytes()
    lost.unlink()
    assert await names(server) == ["demo"]
    assert not (await followed(server)).complete
    lost.write_bytes(content)
    while await names(server) != ["demo", "lost"]:
        await turn()
    while not (await followed(server)).complete:
        await turn()


async def test_switched_off_and_to_auto_again_it_waits_for_a_reader(server):
    assert await names(server) == ["demo"]
    await server.ok("PUT", "/repository/main%2Fpy/config/conda", {"from_wheels": False})
    while await names(server):
        await turn()
    await server.ok("PUT", "/repository/main%2Fpy/config/conda", {"from_wheels": "auto"})
    assert await names(server) == ["demo"]
