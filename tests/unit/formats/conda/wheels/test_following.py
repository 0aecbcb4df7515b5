"""The channel of a Python repository follows the wheels there."""

import hashlib

import pytest
import pytest_twisted

from pkgrepo.errors import NotFound
from pkgrepo.formats.conda.wheels import following, publishing
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.storage.catalog.packages import followed_wheels
from pkgrepo.storage.catalog.packages.followed_wheels import Followed, Unconverted
from tests.support.conda_packages import make_conda
from tests.support.inprocess_server import turn
from tests.support.memory_server import running_stacks
from tests.support.python_packages import make_wheel

CHANNEL = "/repositories/main/py/conda"
ALWAYS = {"type": "Hosted", "conda": {"from_wheels": True}}


@pytest_twisted.async_yield_fixture
async def server(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "EVERY_S", 0.005)
    async with running_stacks(tmp_path) as make:
        stack = await make()
        await stack.add_repository("py", config=ALWAYS)
        yield stack


async def put(server, *wheel):
    filename, data = wheel
    project, version, _ = filename.split("-", 2)
    reply = await server.call("PUT", f"/repositories/main/py/{project}/{version}/{filename}", raw=data)
    assert reply.status == 201, reply.body


async def shown(server):
    """The packages in the channel, once it follows the last event."""
    while not await _is_current(server):
        await turn()
    reply = await server.call("GET", f"{CHANNEL}/noarch/repodata.json")
    return sorted(reply.json["packages.conda"])


async def _is_current(server):
    """Whether the channel has followed all events of the repository, under its present configuration."""

    def read(r):
        sql = "SELECT seq, converting FROM followed_wheels WHERE repository_id = 2"
        settings = r.one("SELECT settings FROM repository WHERE id = 1")[0]
        wanted = (
            r.one("SELECT MAX(seq) FROM event WHERE repository_id = 1")[0] or 0,
            int('wheels":false' not in settings),
        )
        followed = r.one(sql)
        if followed is None:
            return not wanted[1]
        return tuple(followed) == wanted or (not wanted[1] and followed[1] == 0)

    return await server.assembly.core.catalog.scan(read)


async def reasons(server):
    reply = await server.call("GET", f"{CHANNEL}/unconverted.json", who=None)
    assert reply.status == 200
    return {each["path"].rpartition("/")[2]: each["reason"] for each in reply.json["wheels"]}


async def test_a_wheel_appears_and_goes_with_its_removal(server):
    await put(server, *make_wheel("Demo_Pkg", "1.0", fields=[("Requires-Dist", "other>=1")]))
    assert await shown(server) == ["demo-pkg-1.0-py_0.conda"]
    record = (await server.call("GET", f"{CHANNEL}/noarch/repodata.json")).json["packages.conda"]
    assert record["demo-pkg-1.0-py_0.conda"]["depends"] == ["python >=3", "other >=1"]
    assert record["demo-pkg-1.0-py_0.conda"]["timestamp"] > 1_700_000_000_000
    assert record["demo-pkg-1.0-py_0.conda"]["indexed_timestamp"] == record["demo-pkg-1.0-py_0.conda"]["timestamp"]
    before = await server.call("GET", f"{CHANNEL}/noarch/demo-pkg-1.0-py_0.conda")
    assert before.status == 200
    path = "/repositories/main/py/packages/demo-pkg/1.0/demo_pkg-1.0-py3-none-any.whl"
    assert (await server.call("DELETE", path)).status < 300
    assert await shown(server) == []
    assert (await server.call("GET", f"{CHANNEL}/noarch/demo-pkg-1.0-py_0.conda")).status == 404


async def test_a_yank_hides_the_package_until_it_is_taken_back(server):
    await put(server, *make_wheel("demo", "1.0"))
    assert await shown(server) == ["demo-1.0-py_0.conda"]
    assert (await server.call("POST", "/repositories/main/py/pypi/demo/1.0/yank", {"reason": "bad"})).status < 300
    assert await shown(server) == []
    assert (await server.call("GET", f"{CHANNEL}/noarch/demo-1.0-py_0.conda")).status == 200
    assert (await server.call("POST", "/repositories/main/py/pypi/demo/1.0/unyank")).status < 300
    assert await shown(server) == ["demo-1.0-py_0.conda"]


async def test_projects_whose_packages_have_one_name_leave_those_of_the_other(server):
    await put(server, *make_wheel("opencv_python", "1.0"))
    await put(server, *make_wheel("opencv_python_headless", "2.0"))
    assert await shown(server) == ["py-opencv-1.0-py_0.conda", "py-opencv-2.0-py_0.conda"]
    await put(server, *make_wheel("opencv_python", "3.0"))
    await put(server, *make_wheel("opencv_python_headless", "3.0"))
    assert await shown(server) == [f"py-opencv-{each}.0-py_0.conda" for each in (1, 2, 3)]
    assert (await reasons(server)) == {
        "opencv_python_headless-3.0-py3-none-any.whl": "the channel has another package of this name"
    }
    path = "/repositories/main/py/packages/opencv-python/1.0/opencv_python-1.0-py3-none-any.whl"
    assert (await server.call("DELETE", path)).status < 300
    assert await shown(server) == ["py-opencv-2.0-py_0.conda", "py-opencv-3.0-py_0.conda"]


async def test_what_cannot_be_converted_is_listed_with_its_reason(server):
    await put(server, *make_wheel("native", "1.0", tag="cp311-cp311-linux_x86_64"))
    await put(server, *make_wheel("marked", "1.0", fields=[("Requires-Dist", "a; sys_platform == 'win32'")]))
    taken = make_conda("taken", "1.0")
    assert (await server.call("PUT", f"{CHANNEL}/noarch/taken-1.0-py_0.conda", raw=taken)).status == 201
    await put(server, *make_wheel("taken", "1.0"))
    assert await shown(server) == ["taken-1.0-py_0.conda"]
    found = await reasons(server)
    assert found == {
        "marked-1.0-py3-none-any.whl": "a requirement holds only on some systems: 'sys_platform == \"win32\"'",
        "native-1.0-cp311-cp311-linux_x86_64.whl": "it is not for Python 3 on all platforms",
        "taken-1.0-py3-none-any.whl": "the channel has another package of this name",
    }
    assert (await server.call("GET", f"{CHANNEL}/noarch/taken-1.0-py_0.conda")).body == taken
    path = "/repositories/main/py/packages/marked/1.0/marked-1.0-py3-none-any.whl"
    assert (await server.call("DELETE", path)).status < 300
    await shown(server)
    assert "marked-1.0-py3-none-any.whl" not in await reasons(server)


async def test_the_switch_takes_converted_packages_away_and_brings_them_back(server):
    config = "/repository/main%2Fpy/config"
    await server.ok("PUT", config, {"type": "Hosted", "conda": {"from_wheels": False}})
    await put(server, *make_wheel("before", "1.0"))
    own = make_conda("own", "1.0")
    assert (await server.call("PUT", f"{CHANNEL}/noarch/own-1.0-py_0.conda", raw=own)).status == 201
    assert await shown(server) == ["own-1.0-py_0.conda"]
    await server.ok("PUT", config, ALWAYS)
    assert await shown(server) == ["before-1.0-py_0.conda", "own-1.0-py_0.conda"]
    await server.ok("PUT", config, {"type": "Hosted", "conda": {"from_wheels": False}})
    assert await shown(server) == ["own-1.0-py_0.conda"]
    await server.ok("PUT", config, ALWAYS)
    assert await shown(server) == ["before-1.0-py_0.conda", "own-1.0-py_0.conda"]


async def test_a_failure_between_publishing_and_recording_makes_no_doubles(server, monkeypatch):
    """As after a kill: what was not recorded is compared again, and is found to be there."""
    made = []
    convert = publishing.convert_wheel
    monkeypatch.setattr(publishing, "convert_wheel", lambda *args: made.append(args[1]) or convert(*args))
    await put(server, *make_wheel("demo", "1.0"))
    await shown(server)
    catalog = server.assembly.core.catalog
    await catalog.write(lambda tx: tx.execute("DELETE FROM followed_wheels"))
    await put(server, *make_wheel("other", "1.0"))
    assert await shown(server) == ["demo-1.0-py_0.conda", "other-1.0-py_0.conda"]
    assert sorted(made) == ["demo-1.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"]


async def test_wheels_that_wait_are_published_together_and_a_refused_one_hinders_no_other(server, monkeypatch):
    commands = []
    write = server.assembly.core.catalog.write

    def writing(command, *args, **kwargs):
        if len(args) > 1 and isinstance(args[1], tuple) and args[1] and isinstance(args[1][0], Release):
            commands.append([each.package_key for each in args[1]])
        return write(command, *args, **kwargs)

    config = "/repository/main%2Fpy/config"
    await server.ok("PUT", config, {"type": "Hosted", "conda": {"from_wheels": False}})
    await shown(server)
    for name in ("a", "b", "d", "e"):
        await put(server, *make_wheel(name, "1.0"))
    for tag in ("py2.py3-none-any", "py3-none-any"):
        await put(server, *make_wheel("c", "1.0", tag=tag))
    await put(server, *make_wheel("damaged", "1.0", fields=[("Requires-Dist", "a; sys_platform == 'win32'")]))
    monkeypatch.setattr(publishing, "AT_ONCE", 4)
    monkeypatch.setattr(server.assembly.core.catalog, "write", writing)
    await server.ok("PUT", config, ALWAYS)
    assert await shown(server) == [f"{name}-1.0-py_0.conda" for name in "abcde"]
    assert (await reasons(server)).keys() == {"damaged-1.0-py3-none-any.whl", "c-1.0-py3-none-any.whl"}
    assert commands == [["a", "b", "c", "c"], ["a"], ["b"], ["c"], ["c"], ["d", "e"]]  # one of the first was refused


async def test_a_wheel_whose_bytes_are_lost_hinders_no_other_and_is_tried_again(server, tmp_path):
    config = "/repository/main%2Fpy/config"
    await server.ok("PUT", config, {"type": "Hosted", "conda": {"from_wheels": False}})
    await shown(server)
    wheels = {name: make_wheel(name, "1.0") for name in "abc"}
    for each in wheels.values():
        await put(server, *each)
    lost = next(tmp_path.rglob(f"blobs/**/{hashlib.sha256(wheels['b'][1]).hexdigest()}.*"))
    content = lost.read_bytes()
    lost.unlink()
    await server.ok("PUT", config, ALWAYS)

    async def names():
        reply = await server.call("GET", f"{CHANNEL}/noarch/repodata.json")
        return [each["name"] for each in reply.json["packages.conda"].values()]

    while await names() != ["a", "c"]:
        await turn()
    lost.write_bytes(content)
    assert len(await shown(server)) == 3


async def test_the_list_of_unconverted_wheels_is_for_readers_and_only_beside_a_repository(server):
    await server.add_repository("channel", format="conda")
    assert (await server.call("GET", "/repositories/main/channel/unconverted.json")).status == 404
    assert (await server.call("GET", f"{CHANNEL}/unconverted.json?after={'x' * 2000}")).status == 400
    await server.ok("PATCH", "/repository/main%2Fpy", {"visibility": "private"})
    assert (await server.call("GET", f"{CHANNEL}/unconverted.json", who=None)).status == 401


async def test_a_search_finds_what_is_only_in_the_channel_and_a_wheel_once(server):
    async def found(query="", what="search/packages"):
        hits = await server.ok("GET", f"/{what}?q={query}")
        return sorted((each["name"], each["repository"]) for each in hits["items"])

    await put(server, *make_wheel("torch", "1.0"))
    await put(server, *make_wheel("both", "1.0"))
    for name in ("both", "only"):
        path = f"{CHANNEL}/noarch/{name}-2.0-py_0.conda"
        assert (await server.call("PUT", path, raw=make_conda(name, "2.0"))).status == 201
    assert len(await shown(server)) == 4
    expected = [("both", "main/py"), ("only", "main/py/conda"), ("torch", "main/py")]
    assert await found() == expected
    assert await found(what="activity") == expected
    assert await found("torch") == [("torch", "main/py")]  # not pytorch, as it is called in the channel
    channel = [("both", "main/py/conda"), ("only", "main/py/conda"), ("pytorch", "main/py/conda")]
    assert await found("&format=conda") == channel
    assert await found("&repository=main/py/conda") == channel
    await server.ok("PUT", "/repository/main%2Fpy/config/conda", {"from_wheels": False})
    await shown(server)
    assert await found() == [("both", "main/py"), ("both", "main/py/conda"), *expected[1:]]


async def test_nothing_is_recorded_of_a_channel_that_is_removed_meanwhile(server):
    catalog = server.assembly.core.catalog
    with pytest.raises(NotFound):
        await catalog.write(followed_wheels.put_followed, 77, Followed(1, converting=True))
    with pytest.raises(NotFound):
        await catalog.write(followed_wheels.put_unconverted, 77, [Unconverted("a.whl", "0" * 64, "a", "odd")])
