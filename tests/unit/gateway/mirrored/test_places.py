"""Where a hosted repository has what a lock file names."""

from __future__ import annotations

from pkgrepo.gateway.mirrored.places import Listed, _stored
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish


def test_files_of_a_stored_package_are_listed_with_all_their_digests() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    file = catalog.do(publish, repository, "demo/1.0/demo-1.0.whl")
    catalog.do(publish, repository, "other/1.0/other-1.0.whl", package="other")
    (listed,) = catalog.peek(_stored, repository.id, "demo")
    assert listed == Listed("demo/1.0/demo-1.0.whl", "1.0", {**file.digests, "sha256": file.sha256})
    assert listed.name == "demo-1.0.whl"
    assert catalog.peek(_stored, repository.id, "nothing") == []
    assert catalog.peek(_stored, repository.id + 1, "demo") == []
