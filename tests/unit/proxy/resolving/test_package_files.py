"""Which file of a package is served: the one that is kept, as long as the document that clients have says so."""

from __future__ import annotations

import pytest

from pkgrepo.errors import UpstreamFailed
from pkgrepo.model import File, Repository
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog import upstream_documents
from tests.support.proxy_world import ProxyWorld, kinds
from tests.support.upstreams.faults import failing

PATH = "left/-/left-1.0.0.tgz"


async def find(world: ProxyWorld, repository: Repository) -> tuple[File | RemoteFile, list[str]]:
    trace = Trace()
    found = await world.files.find(world.now(repository), "left", PATH, trace)
    return found.file, [each for each in kinds(trace.steps) if " file_" in each]


async def keep(world: ProxyWorld, repository: Repository) -> File:
    found, _ = await find(world, repository)
    assert isinstance(found, RemoteFile)
    kept = await world.proxies.fetching.finish(found)
    await world.settle()
    return kept


async def test_kept_file_is_served_until_a_client_has_a_document_with_another_one(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    everything = await world.virtual("all", proxy)
    old = await keep(world, proxy)
    up.add("left", pad=10)
    for repository in (proxy, everything):
        found, steps = await find(world, repository)
        assert isinstance(found, File)
        assert (found.sha256, steps) == (old.sha256, ["mirror file_kept"])
    world.clock.advance(301)
    assert isinstance((await find(world, proxy))[0], File), "no client has another document"
    await world.get(proxy, "left")
    for repository in (proxy, everything):
        found, steps = await find(world, repository)
        assert isinstance(found, RemoteFile)
        assert steps[-1] == "mirror a file_listed"
    new = await keep(world, everything)
    assert new.sha256 != old.sha256
    found, _ = await find(world, proxy)
    assert isinstance(found, File)
    assert found.sha256 == new.sha256


async def test_kept_file_is_served_if_what_was_said_of_it_is_lost_and_the_upstream_fails(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    everything = await world.virtual("all", proxy)
    old = await keep(world, proxy)
    key = world.format.proxied.document_request("left").key
    document = await world.core.catalog.look(upstream_documents.find_document, proxy.id, key)
    assert document is not None
    store = await world.core.stores.of(world.core.registry.storages()[0])
    await store.delete(document.locator)
    await world.restart()
    up.misbehave("*", failing(500), repeat=True)
    with pytest.raises(UpstreamFailed):
        await world.versions(proxy, "left")
    for repository in (proxy, everything):
        found, _ = await find(world, repository)
        assert isinstance(found, File)
        assert found.sha256 == old.sha256
