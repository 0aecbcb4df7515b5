"""Yanks travel also where the files of what was yanked do not: gems, of which nobody gets a yanked one."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pkgrepo.archives.bundle_file import Facts, PackageFacts, VersionFacts
from pkgrepo.client.transfers.bundles import Bundling, add_listed
from pkgrepo.errors import NotFound
from pkgrepo.gateway.imported.described import Described
from pkgrepo.gateway.imported.files import _set_facts
from pkgrepo.gateway.imported.items import Fact, Item, SourcePackage
from pkgrepo.importing.bundles import BundleSource
from pkgrepo.model import VersionState
from pkgrepo.storage.catalog.packages import versions
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, publish

YANKED = VersionState.YANKED, "it loses data"


class Gems:
    """A gem server with one version of ``demo``, and none of a gem whose versions were all yanked."""

    async def names(self) -> AsyncIterator[str]:
        yield "demo"

    async def package(self, name: str) -> SourcePackage:
        if name != "demo":
            raise NotFound("gem", name)
        place: Any = None
        item = Item(name="demo-1.0.gem", path="gems/demo-1.0.gem", place=place, version="1.0")
        return SourcePackage(name=name, key=name, fingerprint="1", items=[item])


async def test_what_an_api_says_of_versions_without_files_is_taken_over() -> None:
    known = {"": Fact(), "1.0": Fact(), "1.1": Fact(state=YANKED)}

    async def facts(name: str) -> dict[str, Fact]:
        return known if name == "demo" else {"": Fact(), "1.1": Fact(state=YANKED)}

    source = Described(Gems(), facts)
    assert (await source.package("demo")).states == {"1.1": YANKED}
    gone = await source.package("gone")
    assert (gone.key, gone.items, gone.states) == ("gone", [], {"1.1": YANKED})


@pytest.mark.parametrize("said", [{}, {"": Fact()}, {"1.0": Fact(), "1.1": Fact(state=YANKED)}])
async def test_a_package_that_is_not_there_is_none_unless_all_of_it_was_yanked(said: dict[str, Fact]) -> None:
    async def facts(name: str) -> dict[str, Fact]:
        return said

    with pytest.raises(NotFound):
        await Described(Gems(), facts).package("gone")


async def test_a_bundle_yanks_what_it_has_no_files_of() -> None:
    yanked = VersionFacts(state="yanked", reason="it loses data")
    facts = Facts(
        format="ruby",
        packages={
            "demo": PackageFacts(versions={"1.0": VersionFacts(), "1.1": yanked}),
            "gone": PackageFacts(versions={"1.1": yanked}),
            "elsewhere": PackageFacts(versions={"1.0": VersionFacts()}),
        },
    )
    source = BundleSource(Gems(), facts)
    assert [each async for each in source.names()] == ["demo", "gone"]
    for name in ("demo", "gone"):
        assert (await source.package(name)).states == {"1.1": YANKED}


GEM = hashlib.sha256(b"gem").hexdigest()


class Server:
    """A gem server with two versions, of which the second was yanked."""

    async def items(self, *_path: str) -> AsyncIterator[Any]:
        known = {"kind": "file", "package": "demo", "publisher": "ada", "sha256": GEM, "size": 3}
        yield {**known, "version": "1.0", "path": "gems/demo-1.0.gem", "state": "live"}
        hidden = {"path": ".yanked/gems/demo-1.1.gem", "address": "gems/demo-1.1.gem", "withheld": True}
        yield {**known, "version": "1.1", "state": "yanked", **hidden}

    async def fetch(self, path: str, write: Any) -> None:
        assert path == "/repositories/main/gems/gems/demo-1.0.gem"
        write(b"gem")


class Written:
    """A bundle that is written."""

    def has(self, sha256: str) -> bool:
        return False

    def add_file(self, sha256: str, size: int, data: Any) -> Any:
        return size


async def test_a_bundle_has_the_state_of_a_yanked_gem_without_its_files() -> None:
    writer: Any = Written()
    server: Any = Server()
    work = Bundling(server, "main/gems", writer, Facts(format="ruby"), {})
    await add_listed(work, server.items(), is_chosen=False)
    assert (list(work.files), work.withheld) == (["gems/demo-1.0.gem"], [])
    states = {text: each.state for text, each in work.facts.packages["demo"].versions.items()}
    assert states == {"1.0": "", "1.1": "yanked"}


@pytest.mark.parametrize("said", [(VersionState.LIVE, ""), (VersionState.DEPRECATED, "old")])
def test_what_was_yanked_here_is_not_taken_back_by_what_a_source_says(said: tuple[VersionState, str]) -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    made = catalog.do(publish, repository, "demo-1.0.whl")
    catalog.do(lambda tx: versions.set_state(tx, made.version_id, *YANKED))
    source_package = SourcePackage(name="demo", key="demo", fingerprint="1", items=[], states={"1.0": said})
    facts = (repository, source_package, lambda *_: True, admitted(repository), lambda *_: None, NOW)
    assert catalog.do(_set_facts, *facts)[0] == 0
    found = catalog.peek(versions.find_by_keys, repository.id, "demo", "1.0")
    assert (found.state, found.reason) == YANKED
