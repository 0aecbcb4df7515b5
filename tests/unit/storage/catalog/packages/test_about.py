"""What packages say of themselves: the text that searches read, how it is kept, and what is found by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pkgrepo.model import SYSTEM, VersionState
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.descriptions import find_described
from pkgrepo.storage.catalog.packages import packages, text_index, versions
from pkgrepo.storage.catalog.packages.search.words import SIZES, Sizes, search_packages
from pkgrepo.storage.catalog.packages.text_index import LONGEST_ABOUT, about_text
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version

PACKAGES: Mapping[str, tuple[Mapping[str, Any], int]] = {
    "left": ({"summary": "Pads texts on the left", "keywords": ["string", "100%"]}, 2),
    "padder": ({"summary": "Makes everything longer"}, 0),
    "tool": ({"summary": "A tool for STRINGS and pads"}, 5),
    "web": ({"description": "An HTTP client", "keywords": "fetch,requests"}, 0),
}


@pytest.fixture
def catalog() -> Any:
    catalog: Any = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    for key, (meta, count) in PACKAGES.items():
        add(catalog, key, meta, count)
    catalog.do(repositories.add_usage, catalog.repository.id, Usage(packages=len(PACKAGES)))
    return catalog


def add(catalog: Any, key: str, meta: Mapping[str, Any], count: int = 0, *, version: str = "1") -> int:
    """Add a version with this metadata to a package, and return the id of the package."""
    repository_id = catalog.repository.id
    package, _ = catalog.do(packages.ensure_package, repository_id, key=key, name=key, serial=1, now_ms=NOW)
    catalog.do(
        ensure_version,
        package.id,
        key=version,
        text=version,
        sort=version.encode(),
        meta=meta,
        publisher=SYSTEM,
        now_ms=NOW,
    )
    catalog.do(text_index.put_about, package.id, key)
    one = usage_counts.Download(count, repository_id, package.id, key, None, None, NOW)
    catalog.do(usage_counts.record_downloads, [one] * count)
    identifier: int = package.id
    return identifier


def search(
    catalog: Any, *words: str, limit: int = 10, repository_ids: Sequence[int] | None = None, sizes: Sizes = SIZES
) -> list[str]:
    """The keys that a search finds."""
    where = [catalog.repository.id] if repository_ids is None else repository_ids
    found = catalog.peek(search_packages, catalog.peek(find_described), where, words, limit, sizes=sizes)
    return [each.key for _, each in found]


@pytest.mark.parametrize(
    "sizes", [Sizes(), Sizes(indexed=-1), Sizes(indexed=-1, small=0)], ids=["index", "all", "used"]
)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pad"], ["padder", "tool", "left"]),  # the name first, and then the texts by downloads
        (["string"], ["tool", "left"]),
        (["string", "left"], ["left"]),
        (["tool", "string"], ["tool"]),  # one is in the name
        (["http", "fetch"], ["web"]),
        (["0%"], ["left"]),
        (["t_xt"], []),
        (["a"], ["left", "padder", "tool", "web"]),
        (["nothing"], []),
    ],
)
def test_texts_are_searched_after_names(catalog: Any, sizes: Sizes, words: list[str], expected: list[str]) -> None:
    found = search(catalog, *words, sizes=sizes)
    assert found == expected if words != ["a"] else set(found) == set(expected)
    assert search(catalog, *words, limit=1, sizes=sizes) == found[:1]
    assert search(catalog, *words, repository_ids=[99], sizes=sizes) == []


def test_a_large_repository_is_searched_in_part(catalog: Any) -> None:
    assert search(catalog, "string", sizes=Sizes(indexed=-1, small=0, read=1)) == [
        "tool"
    ]  # that with the most downloads


def test_the_text_is_that_of_the_highest_live_version(catalog: Any) -> None:
    package_id = add(catalog, "web", {"summary": "A browser"}, version="2")
    assert (search(catalog, "browser"), search(catalog, "client")) == (["web"], [])
    add(catalog, "web", {"summary": "Something else"}, version="0")
    assert search(catalog, "browser") == ["web"]
    version = catalog.peek(versions.find_version, package_id, "2")
    catalog.do(versions.set_state, version.id, VersionState.YANKED, "")
    catalog.do(text_index.put_about, package_id, "web")
    assert (search(catalog, "browser"), search(catalog, "client")) == ([], ["web"])
    catalog.do(packages.remove_package, package_id)
    assert search(catalog, "client") == []
    assert catalog.peek(lambda r: r.one("SELECT 1 FROM package_about WHERE package_id = ?", (package_id,))) is None
    catalog.tx.execute("INSERT INTO about_text (about_text, rank) VALUES ('integrity-check', 1)")


def test_packages_without_a_text_get_one(catalog: Any) -> None:
    catalog.tx.execute("DELETE FROM package_about")
    assert search(catalog, "client") == []
    first = catalog.peek(text_index.without_about, 0, 2)
    assert len(first) == 2
    rest = catalog.peek(text_index.without_about, first[-1], 9)
    catalog.do(text_index.fill_abouts, [*first, *rest, 999])
    assert catalog.peek(text_index.without_about, 0, 9) == []
    assert search(catalog, "client") == ["web"]


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({}, "x.y"),
        ({"summary": " Two\n words ", "description": "long"}, "x.y two words"),
        ({"summary": "", "description": "D"}, "x.y d"),
        ({"description": "D", "keywords": ["B", 7, "c d"]}, "x.y b c d d"),
        ({"summary": "S", "keywords": "a,b"}, "x.y a,b s"),
        ({"summary": 7, "description": ["x"], "keywords": {"a": 1}}, "x.y"),
    ],
)
def test_a_text_has_name_keywords_and_summary(meta: Mapping[str, Any], text: str) -> None:
    assert about_text("X.Y", meta) == text


def test_a_text_is_bounded() -> None:
    meta = {"summary": "s" * 10**6, "keywords": ["k" * 10**6] * 10_000}
    assert len(about_text("x", meta)) == LONGEST_ABOUT
    assert len(about_text("x", {"summary": " " * 10**6 + "s"})) <= LONGEST_ABOUT
