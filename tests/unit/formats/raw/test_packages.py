"""Patterns of packages are one for a repository, its stages and what joins it, so that rules ask the same name."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import Invalid
from pkgrepo.formats.raw.imported import TAKING
from pkgrepo.formats.raw.mirrored import MIRRORED, read_list
from pkgrepo.gateway.imported.items import Item, SourcePackage
from tests.support.memory_server import Stack

DATA = b"hello\n"
DEEP = {"type": "Hosted", "packages": ["releases/*"]}
JOINS = {"type": "Virtual", "members": ["main/deep"]}


@pytest_twisted.async_yield_fixture
async def world(stack: Stack) -> Any:
    """A server with a repository whose packages are two parts deep, a version of one of which is blocked."""
    await stack.add_repository("deep", format="raw", config=DEEP)
    for version in ("1.0", "2.0"):
        made = await stack.call("PUT", f"/repositories/main/deep/releases/tool/{version}/x", raw=DATA)
        assert made.status == 201
    blocked = {"repository": "main/deep", "package": "releases/tool", "versions": "2.0"}
    await stack.ok("POST", "/policy/blocks", blocked)
    yield stack


async def served(stack: Stack, base: str, status: int) -> None:
    """Check the status of what is blocked, and that no folder or archive has it."""
    for path in ("releases/tool/2.0/x", "releases/tool/2.0/x.sha256", "releases/tool/2.0/"):
        assert (await stack.call("GET", f"{base}/{path}")).status == status, path
    assert (await stack.call("GET", f"{base}/releases/tool/1.0/x")).status == 200
    assert b"2.0" not in (await stack.call("GET", f"{base}/releases/tool/")).body
    packed = await stack.call("GET", f"{base}/releases/?archive=tar.gz")
    with tarfile.open(fileobj=io.BytesIO(packed.body)) as archive:
        assert archive.getnames() == ["tool/1.0/x"]


async def test_rules_hold_through_a_repository_that_joins_others(world: Stack) -> None:
    await world.add_repository("all", format="raw", config={**JOINS, "packages": DEEP["packages"]})
    await served(world, "/repositories/main/deep", 403)
    await served(world, "/repositories/main/all", 403)


@pytest.mark.parametrize("packages", [None, ["*/*"], ["releases/*", "*/*"]])
async def test_members_name_packages_as_the_repository_that_joins_them(world: Stack, packages: Any) -> None:
    body = {"name": "all", "storage": "main", "format": "raw", "visibility": "public"}
    refused = await world.api("POST", "/repository", {**body, "config": {**JOINS, "packages": packages}})
    assert (refused.status, refused.pointer) == (422, "/config/members/0")


@pytest.mark.parametrize("pattern", ["", "/", "a/", "/a", "a//b", ".", "a/../b", "a/ ./b", "a\n", "a/b\0", "a" * 1025])
async def test_what_is_no_pattern_of_a_path_is_refused(stack: Stack, pattern: str) -> None:
    body = {"name": "odd", "storage": "main", "format": "raw", "visibility": "public"}
    for kind in ("Hosted", "Virtual"):
        config = {"type": kind, "packages": ["a b.c/*", pattern], **({"members": []} if kind == "Virtual" else {})}
        refused = await stack.api("POST", "/repository", {**body, "config": config})
        assert (refused.status, refused.pointer) == (422, "/config/packages/1"), refused


@pytest.mark.parametrize("packages", [None, [], ["*/*"]])
async def test_patterns_of_packages_stay(world: Stack, packages: Any) -> None:
    refused = await world.api("PUT", "/repository/main%2Fdeep/config", {**DEEP, "packages": packages})
    assert refused.status == 409
    await served(world, "/repositories/main/deep", 403)
    await world.ok("PUT", "/repository/main%2Fdeep/config", {**DEEP, "page": "Releases."})


async def test_rules_hold_in_a_stage(world: Stack) -> None:
    stage = await world.ok("POST", "/repository/main%2Fdeep/stages", {})
    await served(world, "/" + stage["url"].split("/", 3)[3], 403)


async def test_versions_are_not_promoted_to_where_they_have_another_package(world: Stack) -> None:
    await world.add_repository("plain", format="raw", config={"type": "Hosted"})
    body = {"to": "main/plain"}
    path = "/package/main%2Fdeep/releases%2Ftool/versions/1.0/promote"
    refused = await world.api("POST", path, body)
    assert refused.status == 409, refused.body
    assert (await world.call("GET", "/repositories/main/plain/releases/tool/1.0/x")).status == 404


async def test_imports_name_packages_as_the_repository_does(stack: Stack) -> None:
    await stack.add_repository("deep", format="raw", config=DEEP)
    core = stack.assembly.core
    repository = core.registry.find("main", "deep")
    assert repository is not None
    place: Any = None

    def of(*paths: str) -> SourcePackage:
        items, name = [Item(name=each, path=each, place=place) for each in paths], paths[0].partition("/")[0]
        return SourcePackage(name=name, key=name, fingerprint="", items=items)

    taken = of("tool/1.0/x", "tool/y")
    assert await core.catalog.scan(TAKING.settle, repository.id, taken) is taken
    with pytest.raises(Invalid, match="files of releases/tool"):
        await core.catalog.scan(TAKING.settle, repository.id, of("releases/tool/1.0/x"))


async def test_mirrors_name_packages_as_the_repository_does(world: Stack) -> None:
    repository = world.assembly.core.registry.find("main", "deep")
    assert repository is not None
    assert MIRRORED.places is not None
    services: Any = None
    lines = "".join(f"{'0' * 64}  {path}\n" for path in ("releases/tool/1.0/x", "other/1.0/x", "a/.. /x"))
    places = await MIRRORED.places(services, repository, read_list(lines).wanted)
    assert [(each.key, each.path) for each in places] == [
        ("releases/tool", "releases/tool/1.0/x"),
        ("other", "other/1.0/x"),
    ]
