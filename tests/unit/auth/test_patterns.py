"""Patterns of names: which are taken, and what is said of two is true of every name."""

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pkgrepo.auth.patterns import (
    LONGEST,
    check_repositories,
    covers,
    exactness,
    is_pattern,
    matcher,
    matching,
    may_meet,
)
from pkgrepo.errors import Invalid

NAMES = ["".join(each) for length in range(1, 5) for each in product("ab/", repeat=length)]
PATTERNS = st.lists(st.sampled_from([*"ab/*?", "[ab]", "[!a]", "*"]), min_size=1, max_size=5).map("".join)


@pytest.mark.parametrize(
    "text", ["*", "main/*", "*/npm-*", "MAIN/n?", "m[a-c]in/*", "m[!a]/x", "main*", "?*", "*/a.b_c-d*", "*" * LONGEST]
)
def test_a_pattern_that_can_match_a_name_is_taken_in_lower_case(text: str) -> None:
    assert check_repositories(text, "/x") == text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*" * (LONGEST + 1),
        "../*",
        "main/../*",
        "main/.*",
        "*/-x*",
        "main/*/x",
        "/main/*",
        "main/",
        "ma in/*",
        "main/*\n",
        "main/*\0",
        "main/é*",
        "main/\u0130*",
        "main\\*",
        "main/[*",
        "main/[]*",
        "main/[!]",
        "main/[a/b]*",
        "main/{a,b}",
        "main%2f*",
    ],
)
def test_one_that_matches_nothing_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_repositories(text, "/repositories/0/repository")
    assert refused.value.pointer == "/repositories/0/repository"


@given(PATTERNS, PATTERNS)
@settings(max_examples=1500, deadline=None)
def test_what_is_certain_of_two_patterns_is_so_for_every_name(one: str, other: str) -> None:
    both = [fnmatchcase(each, one) and fnmatchcase(each, other) for each in NAMES]
    if covers(one, other):
        assert [each for each in NAMES if fnmatchcase(each, other) and not fnmatchcase(each, one)] == []
    if any(both):
        assert may_meet(one, other)
        assert may_meet(other, one)


@given(PATTERNS, st.sampled_from(NAMES))
@settings(max_examples=500, deadline=None)
def test_a_pattern_matches_as_those_of_shells_do(pattern: str, name: str) -> None:
    assert bool(matcher(pattern)(name)) is fnmatchcase(name, pattern)


@given(st.lists(st.one_of(PATTERNS, st.text("ab/*?[]!", max_size=5)), max_size=8), st.sampled_from(NAMES))
@settings(max_examples=500, deadline=None)
def test_those_that_match_are_found_among_many(patterns: list[str], name: str) -> None:
    assert matching(patterns, name) == [each for each in patterns if fnmatchcase(name, each)]


def test_few_of_many_patterns_are_compiled() -> None:
    matcher.cache_clear()
    patterns = [f"main/team-{number}-*" for number in range(5000)] + [f"*/{number}-x" for number in range(5000)]
    assert matching([*patterns, "main/*"], "main/team-7-y") == ["main/team-7-*", "main/*"]
    assert matcher.cache_info().misses == 2


@pytest.mark.parametrize(
    ("wide", "narrow", "certain"),
    [
        ("*", "main/[ab]?*", True),
        ("main/*", "main/npm-*", True),
        ("*/npm-*", "main/npm-*", True),
        ("main/*", "main/py", True),
        ("main/p?", "main/py", True),
        ("main/npm-*", "main/*", False),
        ("main/?*", "main/*", False),
        ("main/*b]*", "main/[ab]x", False),  # the letters in brackets are not those of a name
        ("main/py", "main/*", False),
    ],
)
def test_one_pattern_is_within_another(wide: str, narrow: str, certain: bool) -> None:
    assert covers(wide, narrow) is certain


def test_the_more_characters_stand_for_themselves_the_more_exact_a_pattern_is() -> None:
    ordered = ["*", "*/*", "main/*", "main/npm*", "main/npm-[ab]*", "main/npm-ab*"]
    assert [exactness(each) for each in ordered] == [0, 1, 5, 8, 9, 11]
    assert [is_pattern(each) for each in ("main/py", "main/*", "main/p?", "[m]/x")] == [False, True, True, True]
    assert not may_meet("main/*", "other/*")
    assert not may_meet("*-x", "main/*-y")
