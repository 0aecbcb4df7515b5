"""The last transaction of a promotion: also what came since the repository was prepared is as if published here."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.model import SYSTEM, NewFile, Repository, VersionState
from pkgrepo.replication.files import adopt_facts
from pkgrepo.replication.promotion import _not_kept, promote
from pkgrepo.replication.source import RemoteVersion
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.catalog.packages.events import events_after
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.server.repositories import get_repository
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

ORIGIN = {"route": "there"}


def nothing(*_: object) -> None:
    """No documents."""


def make_release(attrs: Mapping[str, object]) -> Release:
    return Release(
        package_key="demo",
        package_name="demo",
        version_key="1",
        version_text="1.0",
        sort=b"1",
        files=(NewFile(path="demo.whl", blob=make_blob(b"x"), attrs=attrs),),
        meta={},
    )


def make_hosted(catalog: MemoryCatalog, repository: Repository) -> Repository:
    return catalog.do(
        promote,
        repository,
        indexer=nothing,
        companions=Companions({}),
        config={"type": "Hosted"},
        settings={},
        actor=SYSTEM,
        now_ms=NOW,
    )


def test_what_was_fetched_since_is_the_repositorys_own_and_the_layout_is_told() -> None:
    catalog = MemoryCatalog()
    made = catalog.do(add_repository)
    catalog.do(lambda tx: tx.execute("UPDATE repository SET type = 'Proxy'"))
    proxy = catalog.peek(get_repository, made.id)
    release = make_release({"upstream": ORIGIN, "a": 1})
    catalog.do(publish_release, proxy, release, admitted(proxy), nothing, NOW)
    assert make_hosted(catalog, proxy).type == "Hosted"
    file = catalog.peek(files.find_file, made.id, "demo.whl")
    assert file.attrs == {"replicated": ORIGIN, "a": 1}
    last = catalog.peek(events_after, 0, 100, made.id)[-2]  # before that of the repository
    assert (last.kind, last.package_key, last.version_key, last.data) == ("rewritten", "demo", "1", {"version": "1.0"})
    with pytest.raises(Conflict, match="no proxy any more"):
        make_hosted(catalog, proxy)


def test_what_is_missing_before_a_promotion_is_what_was_never_fetched() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    release = make_release({})
    catalog.do(publish_release, repository, release, admitted(repository), nothing, NOW)

    def missing(package_key: str, paths: list[str], texts: list[str]) -> object:
        return catalog.peek(_not_kept, repository.id, package_key, paths, texts)

    assert missing("demo", ["demo.whl", "demo.whl.metadata"], ["1.0"]) == []
    assert missing("demo", ["demo.whl", "other.whl"], ["1.0", "2.0"]) == ["other.whl", "demo 2.0"]
    assert missing("none", [], ["1.0"]) == ["none 1.0"]
    assert missing("demo", ["other.whl"], []) == ["other.whl"]
    assert missing("", ["other.whl"], ["1.0"]) == ["other.whl"], "what is of no package has no versions"


def test_a_version_that_was_not_kept_has_no_state_to_take_over() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    release = make_release({})
    catalog.do(publish_release, repository, release, admitted(repository), nothing, NOW)
    remote = RemoteVersion(version="1.0", files=[], state="yanked", reason="broken")
    for package_key, key in (("demo", "2"), ("none", "1"), ("demo", "1")):
        catalog.do(adopt_facts, repository, package_key, key, remote, nothing, NOW)
    (version,) = catalog.peek(versions.list_versions, catalog.peek(find_package, repository.id, "demo").id)
    assert (version.state, version.reason) == (VersionState.YANKED, "broken")
