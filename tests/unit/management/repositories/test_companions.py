"""The conda channel of a Python repository has the rights of the repository, and is changed and removed with it."""

from functools import partial

import pytest
import pytest_twisted

from tests.support.conda_packages import make_conda

CHANNEL = "/repositories/main/py/conda"
REPODATA = f"{CHANNEL}/noarch/repodata.json"


@pytest_twisted.async_yield_fixture
async def server(stack):
    await stack.add_repository("py", visibility="private")
    yield stack


async def upload(server, name="demo", version="1.0", who="admin", channel=CHANNEL):
    reply = await server.call(
        "PUT", f"{channel}/noarch/{name}-{version}-py_0.conda", raw=make_conda(name, version), who=who
    )
    return reply.status


async def test_a_python_repository_has_a_channel_that_is_in_no_list(server):
    assert await upload(server) == 201
    found = (await server.call("GET", REPODATA)).json
    assert list(found["packages.conda"]) == ["demo-1.0-py_0.conda"]
    assert [each["name"] for each in (await server.ok("GET", "/repository"))["items"]] == ["py"]
    shown = await server.ok("GET", "/repository/main%2Fpy%2Fconda")
    assert (shown["format"], shown["type"], shown["visibility"]) == ("conda", "Hosted", "private")
    packages = await server.ok("GET", "/repository/main%2Fpy%2Fconda/packages")
    assert [each["name"] for each in packages["items"]] == ["demo"]
    for where in ("", "format=conda", "repository=main/py/conda"):
        hits = await server.ok("GET", f"/search/packages?q=demo&{where}")
        assert [each["repository"] for each in hits["items"]] == ["main/py/conda"]
    assert (await server.call("GET", "/repositories/main/py/simple/demo/")).status == 404


@pytest.mark.parametrize("path", ["/noarch/repodata.json", "/noarch/demo-1.0-py_0.conda", "", "/none"])
async def test_strangers_get_the_same_answer_as_for_a_repository_that_does_not_exist(server, path):
    await upload(server)
    await server.add_user("stranger")
    for who in (None, "stranger"):
        for method in ("GET", "PUT"):
            real = await server.call(method, f"{CHANNEL}{path}", who=who)
            none = await server.call(method, f"/repositories/main/no/conda{path}", who=who)
            assert (real.status, real.body) == (none.status, none.body.replace(b"main/no", b"main/py"))
            assert real.status == (401 if who is None else 404)
    assert (await server.call("GET", "/repositories/main/py%2Fconda/noarch/repodata.json")).status == 404
    hits = await server.ok("GET", "/search/packages?q=demo&format=conda", who="stranger")
    assert hits["items"] == []


async def test_grants_and_tokens_for_the_repository_are_for_its_channel(server):
    await upload(server)
    await server.add_user("reader")
    await server.grant("reader", "main/py", "read")
    assert (await server.call("GET", REPODATA, who="reader")).status == 200
    assert await upload(server, version="2.0", who="reader") == 403
    scoped = partial(server.token, repositories=[{"repository": "main/py", "actions": ["read", "write"]}])
    narrow = await scoped(packages=["team-*"])
    assert await upload(server, "team-a", who=narrow) == 201
    assert await upload(server, "other", who=narrow) == 403
    assert (await server.call("GET", f"{CHANNEL}/noarch/demo-1.0-py_0.conda", who=narrow)).status == 403
    assert await upload(server, "other", who=await scoped()) == 201
    own = {"name": "own", "repositories": [{"repository": "main/py/conda", "actions": ["read"]}]}
    assert (await server.api("POST", "/user/token", own)).status == 422


async def test_projects_of_the_repository_own_names_in_its_channel(server):
    await server.add_user("developer")
    await server.ok("POST", "/project", {"key": "team", "name": "Team"})
    await server.ok("POST", "/project/team/members", {"user": "developer", "role": "developer"})
    await server.ok("POST", "/project/team/bindings", {"repository": "main/py", "pattern": "team-*"})
    assert await upload(server, "team-a", who="developer") == 201
    assert await upload(server, "other", who="developer") == 403


async def test_a_channel_is_changed_and_removed_only_with_its_repository(server):
    path = "/repository/main%2Fpy%2Fconda"
    config = await server.ok("GET", f"{path}/config")
    for method, below, body in [
        ("PATCH", "", {"visibility": "public"}),
        ("PUT", "/config", {**config, "policy": {"allow_overwrite": True}}),
        ("PUT", "/config/policy", {"allow_overwrite": True}),
        ("DELETE", "?confirm=py/conda", None),
    ]:
        reply = await server.api(method, f"{path}{below}", body)
        assert (method, below, reply.status) == (method, below, 409)
        assert b"main/py" in reply.body
    await server.add_user("reader")
    grant = {"repositories": [{"repository": "main/py/conda", "actions": ["read"]}]}
    assert (await server.api("PUT", "/users/reader/permissions", grant)).status == 422
    assert (await server.api("POST", "/repository", {"name": "py/conda", "format": "conda"})).status == 422


async def test_changes_of_the_repository_are_changes_of_its_channel(server):
    await upload(server)
    for _ in range(2):
        assert "private" in (await server.call("GET", REPODATA)).headers["cache-control"]
    await server.ok("PATCH", "/repository/main%2Fpy", {"visibility": "public"})
    for _ in range(2):
        reply = await server.call("GET", REPODATA, who=None)
        assert (reply.status, "private" in reply.headers["cache-control"]) == (200, False)
    await server.ok("PUT", "/repository/main%2Fpy/config", {"type": "Hosted", "auth": {"enabled": True}})
    assert (await server.call("GET", REPODATA, who=None)).status == 401
    await server.ok("PUT", "/repository/main%2Fpy/config", {"type": "Hosted", "policy": {"allow_overwrite": True}})
    policy = await server.ok("GET", "/repository/main%2Fpy%2Fconda/config/policy")
    assert policy["allow_overwrite"] is True
    await server.ok("PATCH", "/repository/main%2Fpy", {"active": False})
    assert (await server.call("GET", REPODATA, who=None)).status == 503
    assert await upload(server, version="2.0") == 503


@pytest.mark.parametrize("purge", ["", "&purge=true"])
async def test_a_channel_is_removed_with_its_repository_and_its_name_is_free(server, purge):
    await upload(server)
    await server.ok("DELETE", f"/repository/main%2Fpy?confirm=py{purge}")
    assert (await server.call("GET", REPODATA)).status == 404
    assert (await server.api("GET", "/repository/main%2Fpy%2Fconda")).status == 404
    await server.add_repository("py")
    assert (await server.call("GET", REPODATA)).json["packages.conda"] == {}


async def test_nothing_is_uploaded_to_the_channel_of_a_proxy(server):
    routes = {"routes": [{"url": "http://127.0.0.1:9/simple"}]}
    await server.add_repository("mirror", config={"type": "Proxy", "proxy": routes})
    channel = "/repositories/main/mirror/conda"
    assert (await server.call("GET", f"{channel}/noarch/repodata.json")).status == 200
    assert await upload(server, channel=channel) == 405


async def test_a_repository_of_an_earlier_release_gets_its_channel_at_the_next_start(stack):
    await stack.add_repository("py")
    catalog = stack.assembly.core.catalog

    def remove(tx):
        tx.execute("DELETE FROM followed_wheels")
        tx.execute("DELETE FROM repository WHERE parent_id IS NOT NULL")

    await catalog.write(remove)
    await stack.assembly.core.companions.ensure_all(catalog, 0)
    await stack.assembly.core.companions.ensure_all(catalog, 0)
    found = await catalog.scan(lambda r: r.all("SELECT name FROM repository ORDER BY id"))
    assert [name for (name,) in found] == ["py", "py/conda"]


async def test_a_virtual_python_repository_has_a_channel_of_those_of_its_members(server):
    await server.add_repository("more")
    config = {"type": "Virtual", "members": ["main/py", "main/more"], "publish_to": "main/more"}
    await server.add_repository("all", config=config)
    assert await upload(server, "own") == 201
    assert await upload(server, "other", channel="/repositories/main/all/conda") == 201
    found = (await server.call("GET", "/repositories/main/all/conda/noarch/repodata.json")).json
    assert set(found["packages.conda"]) == {"own-1.0-py_0.conda", "other-1.0-py_0.conda"}
    assert (await server.call("GET", "/repositories/main/more/conda/noarch/other-1.0-py_0.conda")).status == 200
    assert (await server.call("GET", "/repositories/main/all/conda/noarch/own-1.0-py_0.conda")).status == 200
    shown = await server.ok("GET", "/repository/main%2Fall%2Fconda")
    assert (shown["format"], shown["type"]) == ("conda", "Virtual")
