"""The in-memory search index: matches, order and cost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.repositories import search_index as module
from pkgrepo.repositories.search_index import Entry, Query, SearchIndex, _lines_with, facet, facet_with, join_text


def entry(
    name: str, description: str = "", *keywords: str, downloads: int = 0, deprecated: bool = False, facets: str = ""
) -> Entry:
    return Entry(name, join_text(name, keywords, description), facets, deprecated, downloads)


def make(*entries: Entry) -> SearchIndex:
    index = SearchIndex()
    for each in entries:
        index.put(each)
    return index


def names(index: SearchIndex, *words: str, start: int = 0, size: int = 10_000) -> list[str]:
    return [key for key, _ in index.find(Query(words), start, size).keys]


MANY = [entry(f"{n:04d}-of-many", f"the one numbered {n}", downloads=5000 - n) for n in range(2000)]


def test_the_name_counts_most_and_the_description_least() -> None:
    index = make(
        entry("other", "has pad in it"),
        entry("worded", "", "pad"),
        entry("notepad"),
        entry("@scope/padding"),
        entry("pad"),
        entry("@scope/pad", downloads=1),
        entry("nothing"),
    )
    assert names(index, "pad") == ["@scope/pad", "pad", "@scope/padding", "notepad", "worded", "other"]


def test_equal_scores_are_ordered_by_downloads_and_deprecated_packages_come_last() -> None:
    index = make(entry("pad-a"), entry("pad-b", downloads=5), entry("pad-c", downloads=9, deprecated=True))
    assert names(index, "pad") == ["pad-b", "pad-a", "pad-c"]
    assert names(index) == ["pad-b", "pad-a", "pad-c"]


def test_the_best_matches_come_first_among_very_many() -> None:
    index = make(*MANY, entry("@x/many"), entry("many"), entry("many-more"), entry("x", "many"))
    found = index.find(Query(("many",)), 0, 4)
    assert [key for key, _ in found.keys] == ["@x/many", "many", "many-more", "0000-of-many"]
    assert found.total == 2004
    assert names(index, "many", "numbered")[:2] == ["0000-of-many", "0001-of-many"]
    assert names(index)[:2] == ["0000-of-many", "0001-of-many"]


@pytest.mark.parametrize("words", [(), ("many",), ("many", "one"), ("n",), ("numbered",)])
def test_pages_have_every_match_once(words: tuple[str, ...]) -> None:
    index = make(*MANY, entry("late-many", "the one that is numbered last", deprecated=True))
    pages = [names(index, *words, start=start, size=250) for start in range(0, 2250, 250)]
    found = [key for page in pages for key in page]
    assert sorted(found) == sorted([*(each.key for each in MANY), "late-many"])
    assert names(index, *words) == found


def test_the_number_of_scored_packages_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[str] = []
    fits = module._score
    monkeypatch.setattr(module, "_score", lambda words, text: scored.append(text) or fits(words, text))
    make(*MANY).find(Query(("n",)), 0, 20)
    assert len(scored) == module.SCORED


def test_facets_and_patterns_narrow_down() -> None:
    index = make(
        entry("a", facets=facet("tag", "x") + facet("author", "ann other")),
        entry("b", facets=facet("tag", "xy") + facet("author", "bob")),
        entry("c"),
    )
    assert index.keys(Query(facets=((facet("tag", "x"), facet("tag", "z")),))) == ["a"]
    assert index.keys(Query(patterns=(facet_with("author", "oth"),))) == ["a"]
    assert index.keys(Query(patterns=(facet_with("author", "tag:x"),))) == []


def test_a_changed_package_is_found_by_its_new_text() -> None:
    index = make(entry("a", "first"), *MANY)
    assert names(index, "first") == ["a"]
    index.put(entry("a", "second"))
    assert (names(index, "first"), names(index, "second")) == ([], ["a"])
    index.remove("a")
    index.remove("a")
    assert names(index, "second") == []
    assert len(names(index)) == len(index) == len(MANY)


def test_slots_of_removed_packages_are_reused() -> None:
    index = SearchIndex()
    for n in range(100):
        index.put(entry(f"p{n}", "ä" * 100))
        index.remove(f"p{n}")
    assert (index.size, len(index), len(index._texts)) == (0, 0, 1)


def test_texts_and_facets_are_truncated() -> None:
    index = make(Entry("a", join_text("a", ["k" * 9999] * 50, "d"), facet("k", "v" * 9999), deprecated=False))
    assert index.size < module.MAX_TEXT + module.MAX_FACET + 500


def test_a_page_can_be_restricted_to_visible_packages() -> None:
    index = make(entry("pad"), entry("padding"), entry("notepad"))
    found = index.page(Query(("pad",)), ["notepad", "gone", "pad"], 0, 1)
    assert ([key for key, _ in found.keys], found.total) == (["pad"], 2)


def test_results_are_cached_until_the_index_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    index = make(entry("a"), entry("b"))
    assert names(index, "a") == ["a"]
    monkeypatch.setattr(index, "_matching", None)
    assert names(index, "a") == ["a"]
    monkeypatch.undo()
    index.put(entry("aa"))
    assert names(index, "a") == ["a", "aa"]


WORDS = st.text(st.sampled_from("abc/@-"), min_size=1, max_size=3)
TEXTS = st.lists(st.tuples(st.text(st.sampled_from("abc"), min_size=1, max_size=3), WORDS, WORDS), max_size=40)


@given(TEXTS, st.lists(WORDS, max_size=3), st.integers(0, 5), st.randoms(use_true_random=False))
def test_any_order_of_puts_and_removals_finds_the_present_packages(
    texts: list[tuple[str, str, str]], words: list[str], scored: int, rng: random.Random
) -> None:
    index, there = SearchIndex(scored=scored, stride=4), dict[str, str]()
    for name, keyword, description in texts:
        if rng.random() < 0.3:
            index.remove(name)
            there.pop(name, None)
        else:
            index.put(entry(name, description, keyword))
            there[name] = f"{name}\n{keyword}\n{description}"
        found = index.find(Query(tuple(words)), 0, 100)
        expected = sorted(key for key, text in there.items() if all(word in text for word in words))
        assert sorted(key for key, _ in found.keys) == expected
        assert found.total == len(expected)


def test_a_page_has_only_visible_packages_even_if_slots_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    index = make(entry("open"), entry("other"))
    rank = index._rank

    def change_and_rank(*args: object) -> object:
        index.remove("open")
        index.put(entry("hidden"))
        return rank(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "_rank", change_and_rank)
    assert "hidden" not in [key for key, _ in index.page(Query(), ["open", "other"], 0, 10).keys]


@given(st.lists(st.text("ab/", max_size=5), min_size=1), st.text("ab", min_size=1, max_size=2))
def test_lines_are_found_as_by_a_search_line_by_line(names: list[str], word: str) -> None:
    joined = "\n".join(["", *names, ""])
    for before, behind in (("\n", "\n"), ("/", "\n"), ("\n", ""), ("/", ""), ("", "")):
        wanted = f"{before}{word}{behind}"
        assert list(_lines_with(wanted, joined)) == [at for at, name in enumerate(names) if wanted in f"\n{name}\n"]
