"""What versions need, and which packages need a name."""

from typing import Any

import pytest

from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release, publish_releases
from pkgrepo.storage.catalog.descriptions import describe_packages, find_described
from pkgrepo.storage.catalog.packages import text_index
from pkgrepo.storage.catalog.packages.dependencies import (
    DEPENDENT_ORDER,
    count_dependents,
    list_dependents,
    needs_of,
    put_dependencies,
    read_dependencies,
    spelling_of,
)
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish
from tests.support.quota_walk import no_documents


@pytest.mark.parametrize(
    ("meta", "wanted"),
    [
        (
            {"dependencies": {"@a/b": "^1"}, "peerDependencies": {"c": "*"}},
            [("@a/b", "@a/b ^1", "runtime"), ("c", "c *", "peer")],
        ),
        (
            {"requires_dist": ["six>=1", 'x[y]; extra == "z"']},
            [("six", "six>=1", "runtime"), ("x", 'x[y]; extra == "z"', "optional")],
        ),
        ({"requires_dist": ["org.acme:core:1.0 (test)"]}, [("org.acme:core", "org.acme:core:1.0 (test)", "test")]),
        ({"requires_dist": ["rack (>= 1)"]}, [("rack", "rack (>= 1)", "runtime")]),
        ({"dependencies": [{"name": "x"}]}, []),
        ({}, []),
    ],
    ids=["npm", "python", "maven", "ruby", "unknown", "none"],
)
def test_requirements_are_read_from_the_metadata_of_every_format(meta: Any, wanted: Any) -> None:
    assert [(each.name, each.text, each.kind) for each in read_dependencies(meta)] == wanted


def dependents(catalog: MemoryCatalog, name: str, ids: list[int], **page: Any) -> list[tuple[str, str, str]]:
    page = {"limit": 9, "order": DEPENDENT_ORDER.name, **page}
    found = catalog.peek(list_dependents, catalog.peek(find_described), spelling_of(name), ids, **page)
    return [(each.package, each.needed.text, each.needed.kind) for each in found]


def test_packages_that_need_a_name_are_found_a_page_at_a_time() -> None:
    catalog = MemoryCatalog()
    one, two = (catalog.do(add_repository, name) for name in ("one", "two"))
    meta = {"requires_dist": ["Left_Pad>=1", "left.pad; extra == 'x'", "other"]}
    for repository, package in ((one, "b"), (one, "a"), (two, "a"), (two, "c")):
        file = catalog.do(publish, repository, f"{package}.whl", package=package)
        catalog.do(put_dependencies, file.package_id, needs_of(meta))
    both = [one.id, two.id]
    rows = [("a", "Left_Pad>=1", "runtime"), ("a", "left.pad; extra == 'x'", "optional")]
    assert dependents(catalog, "left-pad", both)[:4] == rows * 2
    assert dependents(catalog, "left-pad", [two.id])[:2] == rows
    assert dependents(catalog, "left-pad", []) == dependents(catalog, "pad", both) == []
    first = catalog.peek(list_dependents, catalog.peek(find_described), "left-pad", both, limit=3, order="name")
    rest = dependents(catalog, "left-pad", both, after=DEPENDENT_ORDER.position(first[-1]))
    assert [name for name, _, _ in rest] == ["a", "b", "b", "c", "c"]
    assert catalog.peek(count_dependents, catalog.peek(find_described), "left-pad", both) == 8
    assert catalog.peek(count_dependents, catalog.peek(find_described), "left-pad", []) == 0


def test_what_the_highest_live_version_no_longer_needs_is_forgotten() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    file = catalog.do(publish, repository, "a.whl", package="a")
    for meta, needed in (({"dependencies": {"x": "1", "y": "1"}}, 1), ({"dependencies": {"y": "2"}}, 0), ({}, 0)):
        catalog.do(put_dependencies, file.package_id, needs_of(meta))
        assert len(dependents(catalog, "x", [repository.id])) == needed
    catalog.do(put_dependencies, file.package_id, needs_of({"dependencies": {"x": "1"}}))
    catalog.do(text_index.put_about, file.package_id, "a")  # of the stored version, which needs nothing
    assert dependents(catalog, "x", [repository.id]) == []


def release(version: str, needed: dict[str, str]) -> Release:
    file = NewFile(f"web-{version}", BlobInfo(f"{version:0>64}", 1, version, {}), "text/plain", {})
    return Release("web", "web", version, version, version.encode(), (file,), meta={"dependencies": needed})


def test_a_package_that_comes_with_two_versions_needs_what_the_higher_one_does() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    many = {f"d{number}": "1" for number in range(250)}
    needed = {"1": {"old": "1"}, "3": many, "2": {"x": "1"}}
    releases = [release(version, each) for version, each in needed.items()]
    catalog.do(publish_releases, repository, releases, admitted(repository), no_documents, 2)
    catalog.do(describe_packages)
    found = {name: len(dependents(catalog, name, [repository.id])) for name in ("old", "x", "d0", "d249")}
    assert found == {"old": 0, "x": 0, "d0": 1, "d249": 1}


def test_a_new_package_needs_what_its_only_version_does() -> None:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    catalog.do(publish_releases, repository, [release("1", {"x": "1"})], admitted(repository), no_documents, 2)
    catalog.do(describe_packages)
    assert len(dependents(catalog, "x", [repository.id])) == 1
