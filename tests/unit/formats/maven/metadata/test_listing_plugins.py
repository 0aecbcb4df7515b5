"""Plugins are added to the list of a group by what it lists at that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import Forbidden
from pkgrepo.formats.maven.metadata.plugins import PluginChange, change_plugins, group_metadata
from pkgrepo.formats.maven.metadata.reading import Plugin
from pkgrepo.formats.maven.metadata.uploads import listed_plugins, store_metadata
from pkgrepo.formats.maven.paths import ALGORITHMS
from pkgrepo.gateway.responses.content import Files
from pkgrepo.model import Repository
from tests.support.admission import admitted
from tests.support.catalogs import publish
from tests.support.proxy_world import ProxyWorld

GROUP = "org.acme.tools"  # of which the folder is also that of the artifact org.acme:tools
OURS, THEIRS = Plugin("run", "ours-maven-plugin", "Ours"), Plugin("run", "theirs-maven-plugin", "Theirs")
UPLOAD = b"""<metadata><plugins>
  <plugin><prefix>run</prefix><artifactId>ours-maven-plugin</artifactId></plugin>
</plugins></metadata>"""


@pytest_twisted.async_yield_fixture
async def world(tmp_path: Path) -> AsyncIterator[ProxyWorld]:
    made = ProxyWorld(tmp_path)
    await made.start()
    yield made
    await made.settle()
    await made.stop()


async def make_repository(world: ProxyWorld, *, artifact: bool) -> tuple[Any, Repository]:
    """The services, and a repository, in which the metadata of the group may be those of an artifact."""
    repository = await world.hosted("java", format="maven")
    if artifact:
        path = "org/acme/tools/1.0/tools-1.0.jar"
        await world.core.catalog.write(publish, repository, path, package="org.acme:tools", version="1.0")
    core = world.core
    files = Files(registry=core.registry, stores=core.stores, first_reads=core.first_reads)
    return SimpleNamespace(catalog=core.catalog, content=core.content, files=files, pools=core.pools), repository


async def listed(services: Any, repository: Repository) -> Sequence[Plugin]:
    found: Sequence[Plugin] = await services.catalog.look(listed_plugins, repository.id, group_metadata(GROUP))
    return found


@pytest.mark.parametrize("artifact", [True, False])
async def test_a_prefix_that_another_plugin_took_meanwhile_is_judged_anew(world: ProxyWorld, artifact: bool) -> None:
    services, repository = await make_repository(world, artifact=artifact)
    judged: list[Sequence[Plugin]] = []

    async def check(change: PluginChange) -> None:
        judged.append(change.listed)
        if THEIRS in change.listed:
            raise Forbidden("the prefix is that of another project's plugin")
        await change_plugins(services, repository, GROUP, admitted(repository), added=[THEIRS])

    with pytest.raises(Forbidden):
        await change_plugins(services, repository, GROUP, admitted(repository), added=[OURS], check=check)
    assert judged == [(), (THEIRS,)]
    assert await listed(services, repository) == (THEIRS,)


@pytest.mark.parametrize("artifact", [True, False])
async def test_an_upload_of_the_list_is_judged_anew_when_that_was_changed(world: ProxyWorld, artifact: bool) -> None:
    services, repository = await make_repository(world, artifact=artifact)

    async def judge(_read: object, present: object) -> None:
        if present == (THEIRS,):
            raise Forbidden("the prefix is that of another project's plugin")
        await change_plugins(services, repository, GROUP, admitted(repository), added=[THEIRS])

    target = group_metadata(GROUP)
    async with services.content.stage(repository) as staged:
        blob = await staged.store(UPLOAD, ALGORITHMS)
        with pytest.raises(Forbidden):
            await store_metadata(services, repository, target, staged, blob, admitted(repository), judge)
    assert await listed(services, repository) == (THEIRS,)
