"""What formats share of semantic versions: the grammar, and the bounds of comparators. npm's tests try the order."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import (
    Bound,
    all_hold,
    bounds_of,
    builds,
    find_version,
    highest_version,
    is_prerelease,
    parse_version,
)


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "v1.2.3", "=1.2.3", " 1.2.3", "1.2.3 ", "01.2.3", "1.2.3-01", "1.2.3-"]
)
def test_a_version_is_spelled_as_the_standard_says(text):
    assert find_version(text) is None
    with pytest.raises(Invalid, match=r"MAJOR\.MINOR\.PATCH"):
        parse_version(text)


def test_a_version_without_its_build_metadata_is_its_key():
    found = parse_version("1.2.3-rc.1+b-2")
    assert (found.text, found.key, found.is_prerelease, found.largest) == ("1.2.3-rc.1+b-2", "1.2.3-rc.1", True, 3)
    assert found.sort == parse_version("1.2.3-rc.1+other").sort
    assert not is_prerelease("1.2.3+b-2")


def test_numbers_of_64_bits_are_the_largest():
    assert parse_version(f"{2**64 - 1}.0.0").sort > parse_version("9.9.9").sort
    assert find_version(f"{2**64}.0.0") is None


@pytest.mark.parametrize(
    ("comparator", "bounds"),
    [
        (("^", "1", "2", "3", None), ">=1.2.3 <2.0.0-0"),
        (("^", "0", "2", "3", None), ">=0.2.3 <0.3.0-0"),
        (("^", "0", "0", "3", None), ">=0.0.3 <0.0.4-0"),
        (("^", "0", "0", None, None), ">=0.0.0 <0.1.0-0"),
        (("~", "1", "2", "3", "rc.1"), ">=1.2.3-rc.1 <1.3.0-0"),
        (("=", "1", "2", None, None), ">=1.2.0 <1.3.0-0"),
        (("", "1", "2", "3", None), "=1.2.3"),
        ((">", "1", None, None, None), ">=2.0.0"),
        (("<=", "1", "*", None, None), "<2.0.0-0"),
        (("<", "*", None, None, None), "<0.0.0-0"),
        (("^", "*", None, None, None), ""),
    ],
)
def test_a_comparator_stands_for_bounds(comparator, bounds):
    assert " ".join(f"{each.sign}{each.text}" for each in bounds_of(*comparator)) == bounds


def test_a_prerelease_is_accepted_where_one_of_its_numbers_is_named():
    bounds = list(bounds_of("^", "1", "2", "3", "rc.1"))
    assert all_hold(bounds, parse_version("1.2.3-rc.2"))
    assert not all_hold(bounds, parse_version("1.3.0-rc.2"))
    assert all_hold(bounds, parse_version("1.3.0"))
    assert not all_hold([Bound("<", "1.0.0")], parse_version("1.0.0"))


def test_the_highest_is_a_release_if_there_is_one():
    assert highest_version([]) is None
    assert highest_version(["1.0.0", "1.1.0-rc.1"]).text == "1.0.0"
    assert highest_version(["1.0.0-a", "1.0.0-b"]).text == "1.0.0-b"


def test_builds_of_a_part_are_those_of_all_versions_that_begin_so():
    low, high = builds("1.2")
    assert low <= parse_version("1.2.9").sort < high
    assert not low <= parse_version("1.2.0-rc.1").sort
    assert builds("1.2.x")[0] <= parse_version("1.2.0-rc.1").sort
    with pytest.raises(Invalid):
        builds("one")
