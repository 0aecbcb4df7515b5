"""Versions of npm: grammar, keys and order."""

import re
from functools import cmp_to_key
from itertools import pairwise, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.semver import find_version, is_range, parse_version

NUMBERS = st.integers(0, 2**53 - 1) | st.integers(0, 300)
PRE_IDS = NUMBERS.map(str) | st.from_regex(
    re.compile(r"[0-9]{0,3}[A-Za-z-][0-9A-Za-z-]{0,4}", re.ASCII), fullmatch=True
)
VERSIONS = st.tuples(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.lists(PRE_IDS, max_size=3))


def written(version: tuple[tuple[int, int, int], list[str]]) -> str:
    core, pre = version
    return ".".join(map(str, core)) + (f"-{'.'.join(pre)}" if pre else "")


def precedence(a: tuple[tuple[int, int, int], list[str]], b: tuple[tuple[int, int, int], list[str]]) -> int:
    """The order of semantic versioning 2.0.0 section 11, word for word."""
    if a[0] != b[0]:
        return -1 if a[0] < b[0] else 1
    if not a[1] or not b[1]:
        return bool(b[1]) * 1 - bool(a[1]) * 1
    for left, right in zip_longest(a[1], b[1]):
        if left == right:
            continue
        if left is None or right is None:
            return -1 if left is None else 1
        if left.isdigit() and right.isdigit():
            return -1 if int(left) < int(right) else 1
        if left.isdigit() or right.isdigit():
            return -1 if left.isdigit() else 1
        return -1 if left < right else 1
    return 0


@given(VERSIONS, VERSIONS)
def test_sort_keys_compare_as_versions_do(a, b) -> None:
    left, right = parse_version(written(a)).sort, parse_version(written(b)).sort
    assert (left > right) - (left < right) == precedence(a, b)


@given(st.lists(VERSIONS, max_size=8))
def test_sorting_by_key_is_sorting_by_precedence(versions) -> None:
    by_key = sorted(versions, key=lambda version: parse_version(written(version)).sort)
    assert by_key == sorted(versions, key=cmp_to_key(precedence))


def test_order_of_the_specification_holds() -> None:
    texts = (
        "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.10.0"
    )
    keys = [parse_version(text).sort for text in texts.split()]
    assert all(left < right for left, right in pairwise(keys))


@given(VERSIONS, st.sampled_from(["", "v", "=", " v", "= v", "v="]), st.sampled_from(["", " ", "\n"]))
def test_prefixes_that_npm_strips_are_stripped(version, before: str, after: str) -> None:
    text = written(version)
    found = parse_version(before + text + after)
    assert (found.text, found.key) == (text, text)
    assert found.is_prerelease == bool(version[1])


def test_build_metadata_makes_no_other_version() -> None:
    a, b, plain = (parse_version(f"1.0.0-rc.1{build}") for build in ("+a", "+b.007", ""))
    assert a.text == "1.0.0-rc.1+a"
    assert a.key == b.key == plain.key == "1.0.0-rc.1"
    assert a.sort == b.sort == plain.sort


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "01.0.0",
        "1.00.0",
        "1.0.0-",
        "1.0.0-01",
        "1.0.0-a..b",
        "1.0.0+",
        "1.0.0+a+b",
        "1.0.0-a_b",
        "-1.0.0",
        "1.0.x",
        "latest",
        "1.0.0/..",
        "1.0.0\x00",
        "1. 0.0",
        "١.0.0",
        f"{2**53}.0.0",
        "1.0.0-" + "a" * 251,
    ],
)
def test_invalid_versions_are_refused(text: str) -> None:
    assert find_version(text) is None
    with pytest.raises(Invalid, match="invalid version") as caught:
        parse_version(text)
    assert str(caught.value).isprintable()


def test_longest_version_and_largest_number_pass() -> None:
    assert len(parse_version("1.0.0-" + "a" * 250).text) == 256
    with pytest.raises(Invalid, match="invalid version: it is 300 characters long, and 256 are the most"):
        parse_version("1.0.0-" + "a" * 294)
    assert parse_version(f"{2**53 - 1}.0.0").sort > parse_version("9.9.9").sort
    assert parse_version("1.0.0-20260101123456789012").sort > parse_version("1.0.0-3").sort


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "x",
        "X",
        "1",
        "1.x",
        "1.2.*",
        "v1",
        "=1",
        "v1.2.3",
        "1.2.3",
        "^1",
        "~1.2",
        "~>1",
        ">=1",
        ">= 1.0",
        "<2",
        ">x",
        "1 - 2",
        "1.0.0 - 2.x",
        "1 || 2",
        "||",
        ">=1 <2",
        ">1.0.0-rc.1 <=2",
        "^1.0.0-beta.2+build",
        "1.2.3-1a-10",
        "~1.2.3-01a",
        "= 1",
        "=v1.2",
    ],
)
def test_ranges_are_recognised(text: str) -> None:
    assert is_range(text)


@pytest.mark.parametrize(
    "text",
    [
        "latest",
        "beta",
        "next-1",
        "v1-lts",
        "1.x-lts",
        "1.2.3.4",
        "v",
        "^",
        ">=",
        "1-",
        "x1",
        "release-1.x",
        "1 || beta",
        "1,2",
        "a" * 300,
    ],
)
def test_words_are_no_ranges(text: str) -> None:
    assert not is_range(text)
