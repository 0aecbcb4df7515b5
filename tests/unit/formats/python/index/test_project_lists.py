"""The list of all projects: names as published, without those in quarantine (PEP 792)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_lists import NAME_LISTS, PROJECT_LISTS, Project
from pkgrepo.repositories.publish.package_lists import PackageList
from pkgrepo.storage.catalog.packages import packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


def add(tx: Any, repository_id: int, key: str, status: str) -> None:
    package, _ = packages.ensure_package(tx, repository_id, key=key, name=key.upper(), serial=1, now_ms=NOW)
    packages.touch_package(tx, package.id, serial=1, now_ms=NOW, meta={"status": status})


def test_projects_in_quarantine_are_not_listed(catalog: MemoryCatalog) -> None:
    repository = catalog.do(add_repository)
    for key, status in (("a", "active"), ("b", "quarantined"), ("c", "deprecated")):
        catalog.do(add, repository.id, key, status)
    names: Sequence[tuple[str, str]] = NAME_LISTS.read_all(catalog.tx, repository.id)
    assert names == [("a", "A"), ("c", "C")]
    listed: Sequence[tuple[str, Project]] = PROJECT_LISTS.read_all(catalog.tx, repository.id)
    assert listed == [("a", ("A", 1)), ("c", ("C", 1))]
    for source, found in ((NAME_LISTS, names), (PROJECT_LISTS, listed)):
        assert [source.read_one(catalog.tx, repository.id, key) for key in "abcd"] == [
            dict(found).get(key) for key in "abcd"
        ]


def test_both_forms_have_the_names() -> None:
    names = PackageList([("a", "A"), ("b", "B")])
    body = NAME_LISTS.forms[JSON_PAGE].splice(3, names).joined()
    assert body.endswith(b'"projects":[{"name":"A"},{"name":"B"}]}')
    assert b">B</a>" in NAME_LISTS.forms[HTML_PAGE].splice(3, names).joined()


def test_the_list_of_a_hosted_repository_has_serials() -> None:
    projects = PackageList([("a", ("A", 7)), ("b", ("B", 3))])
    body = PROJECT_LISTS.forms[JSON_PAGE].splice(8, projects).joined()
    assert body.endswith(b'"projects":[{"_last-serial":7,"name":"A"},{"_last-serial":3,"name":"B"}]}')
    assert b">B</a>" in PROJECT_LISTS.forms[HTML_PAGE].splice(8, projects).joined()
