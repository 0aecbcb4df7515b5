"""Searches for packages by words: the same results by the index of trigrams, by reading all keys, and by downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.descriptions import find_described
from pkgrepo.storage.catalog.packages import packages, summaries, text_index
from pkgrepo.storage.catalog.packages.search.matching import Match, count_packages, matching_packages
from pkgrepo.storage.catalog.packages.search.words import Sizes, search_packages
from pkgrepo.storage.catalog.rows import like
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version

DOWNLOADS = {"my-pad": 0, "pad-a": 1, "pad": 2, "pad-b": 3, "left-pad": 4, "a_pad": 0, "axpad": 0, "pa": 1, "100%": 0}


@pytest.fixture
def catalog() -> Any:
    catalog: Any = MemoryCatalog()
    catalog.repository = catalog.do(add_repository)
    for number, (key, count) in enumerate(DOWNLOADS.items()):
        add(catalog, key, number, count)
    catalog.do(repositories.add_usage, catalog.repository.id, Usage(packages=len(DOWNLOADS)))
    return catalog


def add(catalog: Any, key: str, number: int = 99, count: int = 0) -> int:
    """Add a package with a version, and return its id."""
    repository_id = catalog.repository.id
    package, _ = catalog.do(packages.ensure_package, repository_id, key=key, name=key, serial=1, now_ms=NOW + number)
    catalog.do(ensure_version, package.id, key="1", text="1", sort=b"1", meta={}, publisher=SYSTEM, now_ms=NOW)
    one = usage_counts.Download(number, repository_id, package.id, key, None, None, NOW)
    catalog.do(usage_counts.record_downloads, [one] * count)
    identifier: int = package.id
    return identifier


def search(catalog: Any, *words: str, limit: int = 10, **how: Any) -> list[str]:
    """The keys that a search finds."""
    described = catalog.peek(find_described)
    found: Sequence[Any] = catalog.peek(search_packages, described, [catalog.repository.id, 99], words, limit, **how)
    return [each.key for _, each in found]


WAYS = {
    "index": Sizes(),
    "all-keys": Sizes(indexed=-1),
    "by-downloads": Sizes(indexed=-1, small=0),
    "by-downloads-from-many": Sizes(indexed=-1, small=0, few=0),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Sizes:
    """Sizes with which each search is answered in one of the ways, whatever it finds."""
    return WAYS[request.param]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pad"], ["pad", "pad-b", "pad-a", "left-pad", "a_pad", "axpad", "my-pad"]),
        (["pad", "my"], ["my-pad"]),
        (["a_p"], ["a_pad"]),
        (["a_pad"], ["a_pad"]),
        (["%"], ["100%"]),
        (["a"], ["a_pad", "axpad", "left-pad", "pad-b", "pad", "pa", "pad-a", "my-pad"]),
        (["pa", "t-p"], ["left-pad"]),
        (["nothing"], []),
        (["\\"], []),
        ([], ["left-pad", "pad-b", "pad", "pa", "pad-a", "100%", "a_pad", "axpad", "my-pad"]),
    ],
    ids=[
        "word",
        "words",
        "wildcard",
        "long-wildcard",
        "percent",
        "short",
        "short-and-long",
        "none",
        "backslash",
        "all",
    ],
)
def test_a_search_finds_equals_then_beginnings_then_others_each_by_downloads(
    catalog: Any, way: Sizes, words: list[str], expected: list[str]
) -> None:
    assert search(catalog, *words, sizes=way) == expected
    assert search(catalog, *words, limit=2, sizes=way) == expected[:2]


def test_short_words_in_a_large_repository_are_looked_for_in_some_of_its_packages(catalog: Any) -> None:
    sizes = Sizes(small=0, read=1, few=3)
    # Those that begin with it are "pa", "pad" and "pad-a" by key; "pad-b" is one too many. "left-pad" is the most
    # downloaded one. The first one without downloads, "100%", has no such word, and "a_pad" after it is not read.
    assert search(catalog, "pa", sizes=sizes) == ["pa", "pad", "pad-a", "left-pad"]
    assert search(catalog, "pa", limit=2, sizes=sizes) == ["pa", "pad"]
    assert search(catalog, "zz", sizes=sizes) == []


def test_capitals_are_found(catalog: Any, way: Sizes) -> None:
    add(catalog, "org.Example:PadCore")
    assert search(catalog, "padcore", sizes=way) == ["org.Example:PadCore"]
    assert search(catalog, "org.example", sizes=way) == ["org.Example:PadCore"]


def test_packages_made_from_others_are_left_out(catalog: Any, way: Sizes) -> None:
    catalog.do(packages.set_derived, add(catalog, "pad-z", count=9), True)
    assert search(catalog, "pad", limit=2, sizes=way) == ["pad", "pad-z"]
    assert search(catalog, "pad", limit=2, derived=False, sizes=way) == ["pad", "pad-b"]


def test_packages_without_downloads_are_read_only_until_there_are_enough(catalog: Any) -> None:
    plans: list[str] = []

    class Planned:
        """A reader that asks for the plan of each query, too."""

        def __init__(self, reader: Any) -> None:
            self._reader = reader

        def __getattr__(self, name: str) -> Any:
            return getattr(self._reader, name)

        def all(self, sql: str, parameters: Any) -> Any:
            plan = " ".join(str(row[3]) for row in self._reader.all(f"EXPLAIN QUERY PLAN {sql}", parameters))
            plans.extend([plan] if "downloads = 0" in sql else [])
            return self._reader.all(sql, parameters)

    sizes = WAYS["by-downloads"]
    catalog.peek(
        lambda r: search_packages(Planned(r), find_described(r), [catalog.repository.id], ["pad"], 10, sizes=sizes)
    )
    assert plans
    assert "package_downloads (repository_id=? AND downloads=?)" in plans[0]
    assert "TEMP B-TREE" not in plans[0]


def test_the_index_follows_packages_that_come_and_go(catalog: Any) -> None:
    added = add(catalog, "xylophone")
    assert search(catalog, "lopho") == ["xylophone"]
    catalog.do(packages.remove_package, added)
    assert search(catalog, "lopho") == []
    add(catalog, "xylophone")
    assert search(catalog, "lopho") == ["xylophone"]
    catalog.tx.execute("INSERT INTO package_text (package_text, rank) VALUES ('integrity-check', 1)")


@pytest.mark.parametrize("others", [0, text_index.FEW], ids=["few", "many"])
def test_lists_and_matches_are_the_same_with_and_without_the_index(catalog: Any, others: int) -> None:
    repository_id = catalog.repository.id
    catalog.repository = catalog.do(add_repository, name="other")
    for number in range(others):
        add(catalog, f"a_pad-pad{number}")
    listed = catalog.peek(summaries.list_package_summaries, repository_id, search="PAD", limit=3, order="-name")
    assert [each.key for each in listed] == ["pad-b", "pad-a", "pad"]
    after = summaries.PACKAGE_ORDERS["-name"].position(listed[-1])
    rest = catalog.peek(summaries.list_package_summaries, repository_id, search="PAD", after=after, order="-name")
    assert [each.key for each in rest] == ["my-pad", "left-pad", "axpad", "a_pad"]
    assert catalog.peek(summaries.count_packages, repository_id, "a_pa") == 1
    match = Match(keys=("%-pad%",), best="my%")
    assert catalog.peek(matching_packages, [repository_id], match, 0, 9) == ["my-pad", "left-pad"]
    assert catalog.peek(count_packages, [repository_id], match) == 2


@pytest.mark.parametrize(
    ("pattern", "term"),
    [
        ("%pad%", "%pad%"),
        (r"%left\_pad%", "%left%"),
        (r"%a\_b-c%", "%a_b-c%"),
        (r"%a\_b%", None),
        ("%ab%", None),
        ("%:%", None),
        (r"%a\\b-c%", "%a_b-c%"),
        (r"%a\%b-c%", "%a_b-c%"),
    ],
    ids=["word", "part", "underscore", "too-short-parts", "short", "colon", "backslash", "percent"],
)
def test_a_pattern_of_the_index_has_no_escapes(catalog: Any, pattern: str, term: str | None) -> None:
    assert catalog.peek(text_index.find_terms, [pattern]) == ([] if term is None else [term])


@pytest.mark.parametrize(
    ("few", "patterns", "terms"),
    [
        (9, ["%pad%", "%left%"], ["%left%"]),
        (1, ["%-pad%", "%axp%"], ["%axp%"]),
        (1, ["%pad-%", "%-pad%"], ["%pad-%", "%-pad%"]),
        (0, ["%pad%", "%left%"], []),
        (9, ["%left-pad-1234%"], ["%1234%"]),
        (1, ["%left-pad%"], ["%left%"]),
    ],
    ids=["longest", "rarest", "together", "none", "number", "part"],
)
def test_of_several_words_one_is_looked_up_if_few_packages_have_it(
    catalog: Any, few: int, patterns: list[str], terms: list[str]
) -> None:
    assert catalog.peek(text_index.find_terms, patterns, few=few) == terms


def test_of_a_long_word_the_index_is_asked_for_the_beginning(catalog: Any) -> None:
    long = "pad-" + "x1_%" * 40
    add(catalog, long)
    assert search(catalog, long) == [long]
    assert search(catalog, long + "y") == []
    terms = catalog.peek(text_index.find_terms, [like("demo" * 8000), like("x" * 8000)])
    assert terms
    assert max(map(len, terms)) <= text_index.LONGEST_TERM + 2
