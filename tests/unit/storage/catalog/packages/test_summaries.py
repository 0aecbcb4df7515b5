"""Summaries of packages and versions, and the counts of lists."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.model import SYSTEM, TokenKind, VersionState
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.packages import packages, summaries, versions
from pkgrepo.storage.catalog.people import tokens, users
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version, publish


@pytest.fixture
def catalog() -> Any:
    catalog: Any = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    for version in ("1", "2", "3"):
        catalog.do(publish, catalog.repository, f"demo/{version}/a", b"x" * int(version), version=version)
    catalog.do(publish, catalog.repository, "demo/1/b", b"y" * 10, version="1")
    catalog.do(publish, catalog.repository, "a_b/1/a", package="a_b")
    return catalog


def demo(catalog: Any) -> summaries.PackageSummary:
    found = catalog.peek(summaries.find_package_summary, catalog.repository.id, "demo")
    assert found is not None
    return found


def test_a_package_counts_its_versions_and_files(catalog: Any) -> None:
    summary = demo(catalog)
    assert (summary.versions, summary.files, summary.size) == (3, 4, 1 + 2 + 3 + 10)
    assert (summary.withdrawn, summary.deprecated, summary.downloads) == (0, 0, 0)
    assert catalog.peek(summaries.find_package_summary, catalog.repository.id, "none") is None


def test_the_latest_is_what_the_format_says_or_the_highest_live_version(catalog: Any) -> None:
    package = catalog.peek(packages.find_package, catalog.repository.id, "demo")
    assert demo(catalog).latest == "3"
    highest = catalog.peek(versions.find_version, package.id, "3")
    catalog.do(versions.set_state, highest.id, VersionState.YANKED, "")
    assert (demo(catalog).latest, demo(catalog).withdrawn) == ("2", 1)
    catalog.do(packages.touch_package, package.id, serial=9, now_ms=NOW, latest="1")
    assert demo(catalog).latest == "1"


def test_downloads_are_added_up(catalog: Any) -> None:
    package = catalog.peek(packages.find_package, catalog.repository.id, "demo")
    one = usage_counts.Download(1, catalog.repository.id, package.id, "demo/1/a", None, None, NOW)
    catalog.do(usage_counts.record_downloads, [one, one])
    assert demo(catalog).downloads == 2


def test_packages_are_paged_by_key_or_by_number(catalog: Any) -> None:
    def keys(**how: Any) -> list[str]:
        return [each.key for each in catalog.peek(summaries.list_package_summaries, catalog.repository.id, **how)]

    assert keys() == ["a_b", "demo"]
    assert keys(limit=1) == ["a_b"]
    assert keys(after=("a_b",)) == ["demo"]
    assert keys(skip=1) == ["demo"]
    assert keys(search="_") == ["a_b"]
    assert keys(search="DEM") == ["demo"]


@pytest.mark.parametrize("order", summaries.PACKAGE_ORDERS)
def test_the_pages_of_every_order_of_packages_are_the_whole_list(catalog: Any, order: str) -> None:
    repository_id = catalog.repository.id
    for number, key in enumerate(("p", "q", "r", "s")):
        package, _ = catalog.do(
            packages.ensure_package, repository_id, key=key, name=key, serial=1, now_ms=NOW + number % 2
        )
        one = usage_counts.Download(number, repository_id, package.id, key, None, None, NOW)
        catalog.do(usage_counts.record_downloads, [one] * (number % 3))
    every = catalog.peek(summaries.list_package_summaries, repository_id, order=order)
    positions = [summaries.PACKAGE_ORDERS[order].position(each) for each in every]
    assert positions == sorted(positions, reverse=order.startswith("-"))
    paged: list[str] = []
    after: tuple[Any, ...] = ()
    while found := catalog.peek(summaries.list_package_summaries, repository_id, after=after, limit=1, order=order):
        paged.append(found[0].key)
        after = summaries.PACKAGE_ORDERS[order].position(found[0])
    assert paged == [each.key for each in every]
    assert len(set(paged)) == 6


@pytest.mark.parametrize("order", summaries.VERSION_ORDERS)
def test_the_pages_of_every_order_of_versions_are_the_whole_list(catalog: Any, order: str) -> None:
    package = catalog.peek(packages.find_package, catalog.repository.id, "demo")
    for number, key in enumerate(("x", "y", "z")):
        version, _ = catalog.do(
            ensure_version, package.id, key=key, text=key, sort=b"z", meta={}, publisher=SYSTEM, now_ms=NOW
        )
        catalog.do(versions.set_published_at, version.id, NOW + number % 2)
    every = catalog.peek(summaries.list_version_summaries, package.id, order=order)
    positions = [summaries.VERSION_ORDERS[order].position(each) for each in every]
    assert positions == sorted(positions, reverse=order.startswith("-"))
    paged: list[str] = []
    after: tuple[Any, ...] = ()
    while found := catalog.peek(summaries.list_version_summaries, package.id, after=after, limit=1, order=order):
        paged.append(found[0].key)
        after = summaries.VERSION_ORDERS[order].position(found[0])
    assert paged == [each.key for each in every]
    assert len(set(paged)) == 6
    found = catalog.peek(summaries.list_version_summaries, package.id, search="Y", order=order)
    assert [each.key for each in found] == ["y"]


def test_the_packages_that_changed_last_come_first(catalog: Any) -> None:
    repository_id = catalog.repository.id
    for number, key in enumerate(("b", "c", "a")):
        catalog.do(packages.ensure_package, repository_id, key=key, name=key, serial=1, now_ms=NOW + 1 + number)
    found = catalog.peek(summaries.last_changed_packages, [repository_id, 99], 2)
    assert found == [(repository_id, "a"), (repository_id, "c")]


def test_versions_are_paged_from_the_highest_down(catalog: Any) -> None:
    package = catalog.peek(packages.find_package, catalog.repository.id, "demo")
    found = catalog.peek(summaries.list_version_summaries, package.id, limit=2)
    assert [(each.text, each.files, each.size, each.publisher) for each in found] == [
        ("3", 1, 3, "system"),
        ("2", 1, 2, "system"),
    ]
    last = found[-1]
    rest = catalog.peek(summaries.list_version_summaries, package.id, after=(last.sort, last.key))
    assert [(each.text, each.files) for each in rest] == [("1", 2)]


def test_versions_with_the_same_sort_are_all_paged(catalog: Any) -> None:
    package, _ = catalog.do(
        packages.ensure_package, catalog.repository.id, key="same", name="same", serial=1, now_ms=NOW
    )
    for key in ("a", "b", "c"):
        catalog.do(ensure_version, package.id, key=key, text=key, sort=b"s", meta={}, publisher=SYSTEM, now_ms=NOW)
    seen: list[str] = []
    after: tuple[Any, ...] = ()
    while found := catalog.peek(summaries.list_version_summaries, package.id, after=after, limit=1):
        seen.append(found[0].key)
        after = summaries.VERSION_ORDERS["-version"].position(found[0])
    assert seen == ["c", "b", "a"]


def test_the_package_and_version_of_a_file_are_found(catalog: Any) -> None:
    file = catalog.do(publish, catalog.repository, "demo/3/c", version="3")
    assert catalog.peek(summaries.package_and_version_of_file, file.id) == ("demo", "3")
    assert catalog.peek(summaries.package_and_version_of_file, 999) is None


def test_counts_equal_the_lengths_of_lists(catalog: Any) -> None:
    package = catalog.peek(packages.find_package, catalog.repository.id, "demo")
    assert catalog.peek(summaries.count_packages, catalog.repository.id) == 2
    assert catalog.peek(summaries.count_packages, catalog.repository.id, "EM") == 1
    assert catalog.peek(versions.count_versions, package.id) == 3
    assert [catalog.peek(summaries.count_versions, package.id, text) for text in ("", "2", "x")] == [3, 1, 0]
    user = catalog.do(users.add_user, username="Ada", email="ada@x.example", now_ms=NOW)
    catalog.do(users.add_user, username="bob", now_ms=NOW)
    assert [catalog.peek(users.count_users, text) for text in ("", "ADA", "x.ex", "%")] == [2, 1, 1, 0]
    catalog.do(tokens.add_token, user_id=user.id, hash=b"h", shown="", kind=TokenKind.CI, name="t", now_ms=NOW)
    assert catalog.peek(tokens.count_tokens, user.id) == 1
