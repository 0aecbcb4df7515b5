"""Stages of Java plugins: an approval joins the list of a group's plugins with the one that the repository has."""

from __future__ import annotations

import io
import re
import zipfile

import pytest
from twisted.internet.defer import Deferred, gatherResults

from tests.support.maven_files import make_pom
from tests.support.memory_server import Stack

from .test_stages import Staging, place

pytestmark = pytest.mark.server

LIST = "/com/example/maven-metadata.xml"
BUNDLES = "/repositories/main/release/deploy?wait=true&publishing_type="


def files_of(name: str) -> dict[str, bytes]:
    """The files of version 1.0 of a plugin, by path."""
    jar = io.BytesIO()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(
            "META-INF/maven/plugin.xml", f"<plugin><name>{name}</name><goalPrefix>{name}</goalPrefix></plugin>"
        )
    artifact = f"{name}-maven-plugin"
    at = f"com/example/{artifact}/1.0/{artifact}-1.0"
    pom = make_pom("com.example", artifact, "1.0", "<packaging>maven-plugin</packaging>")
    return {f"{at}.pom": pom, f"{at}.jar": jar.getvalue()}


def listing(*names: str) -> bytes:
    """The list of plugins that a client writes."""
    plugins = "".join(
        f"<plugin><name>{name}</name><prefix>{name}</prefix><artifactId>{name}-maven-plugin</artifactId></plugin>"
        for name in names
    )
    return f"<metadata><plugins>{plugins}</plugins></metadata>".encode()


async def deploy(staging: Staging, at: str, name: str, *listed: str) -> None:
    """What ``mvn deploy`` sends."""
    for path, content in files_of(name).items():
        assert (await staging.send("PUT", f"/{path}", content, at=at)).status == 201
    assert (await staging.send("PUT", LIST, listing(*listed), at=at)).status in (200, 201)


async def send_bundle(staging: Staging, name: str, kind: str) -> str:
    """The id of a deployment of a plugin."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        for path, content in files_of(name).items():
            bundle.writestr(path, content)
    headers = {"Content-Type": "application/zip"}
    reply = await staging.stack.call("POST", f"{BUNDLES}{kind}", raw=archive.getvalue(), headers=headers)
    assert reply.status == 201, reply.body
    return reply.body.decode()


async def prefixes(staging: Staging, at: str = "release") -> list[str]:
    status, body = await staging.read(at, LIST)
    return sorted(re.findall(r"<prefix>(\w+)</prefix>", body.decode())) if status == 200 else []


@pytest.fixture
def staging(stack: Stack) -> Staging:
    return Staging(stack, "maven")


async def test_an_approval_adds_the_plugins_of_the_stage(staging: Staging) -> None:
    await staging.begin()
    await deploy(staging, "release", "one", "one")
    stage = await staging.open()
    await deploy(staging, place(stage), "two", "one", "two", "gone")  # which was read from the repository, and removed
    assert await prefixes(staging) == ["one"]
    assert (await staging.end(stage, "approve")).status == 200
    assert await prefixes(staging) == ["one", "two"]


async def test_the_first_plugin_of_a_group_is_published_with_its_list(staging: Staging) -> None:
    await staging.begin()
    stage = await staging.open()
    await deploy(staging, place(stage), "one", "one")
    assert (await staging.end(stage, "approve")).status == 200
    assert await staging.read("release", LIST) == (200, listing("one"))


@pytest.mark.parametrize("how", ["approve", "publish"])
async def test_a_bundle_with_a_plugin_is_found_by_its_prefix_in_its_stage_and_afterwards(
    staging: Staging, how: str
) -> None:
    await staging.begin()
    await send_bundle(staging, "one", "AUTOMATIC")
    uid = await send_bundle(staging, "two", "USER_MANAGED")
    stage = await staging.stack.ok("GET", f"/stages/{uid}")
    assert (await prefixes(staging), await prefixes(staging, place(stage))) == (["one"], ["one", "two"])
    if how == "approve":
        assert (await staging.end(stage, "approve")).status == 200
    else:
        assert (await staging.stack.call("POST", f"/repositories/main/release/deploy/{uid}")).status == 200
    assert await prefixes(staging) == ["one", "two"]
    assert (await staging.stack.ok("GET", f"/stages/{uid}"))["state"] == "approved"


async def test_stages_that_are_approved_at_once_lose_no_plugin(staging: Staging) -> None:
    await staging.begin()
    await deploy(staging, "release", "one", "one")
    stages = []
    for name in ("two", "three", "four"):
        stages.append(await staging.open())
        await deploy(staging, place(stages[-1]), name, "one", name)
    ends = await gatherResults([Deferred.fromCoroutine(staging.end(each, "approve")) for each in stages])
    assert [each.status for each in ends] == [200, 200, 200]
    assert await prefixes(staging) == ["four", "one", "three", "two"]
