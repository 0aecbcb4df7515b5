"""The last transaction of a promotion: also what came since the repository was prepared is as if published here."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.model import SYSTEM, NewFile, Repository
from pkgrepo.replication.promotion import promote
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.events import events_after
from pkgrepo.storage.catalog.server.repositories import get_repository
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob

ORIGIN = {"route": "there"}


def nothing(*_: object) -> None:
    """No documents."""


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
    release = Release(
        package_key="demo",
        package_name="demo",
        version_key="1",
        version_text="1.0",
        sort=b"1",
        files=(NewFile(path="demo.whl", blob=make_blob(b"x"), attrs={"upstream": ORIGIN, "a": 1}),),
        meta={},
    )
    catalog.do(publish_release, proxy, release, admitted(proxy), nothing, NOW)
    assert make_hosted(catalog, proxy).type == "Hosted"
    file = catalog.peek(files.find_file, made.id, "demo.whl")
    assert file.attrs == {"replicated": ORIGIN, "a": 1}
    last = catalog.peek(events_after, 0, 100, made.id)[-2]  # before that of the repository
    assert (last.kind, last.package_key, last.version_key, last.data) == ("rewritten", "demo", "1", {"version": "1.0"})
    with pytest.raises(Conflict, match="no proxy any more"):
        make_hosted(catalog, proxy)
