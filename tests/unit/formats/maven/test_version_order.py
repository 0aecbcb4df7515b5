"""Sort keys of versions, against an order that Maven's own class gave (tests/data/maven)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.maven.version_order import sort_key

ORDER = Path(__file__).parents[3] / "data" / "maven" / "version-order-3.8.7.txt"


def classes_of_equals() -> list[list[str]]:
    lines = ORDER.read_text(encoding="utf-8").splitlines()
    return [line.split(" ") for line in lines if not line.startswith("#")]


def test_versions_sort_as_mavens_class_sorts_them():
    keys = [{sort_key(version) for version in equals} for equals in classes_of_equals()]
    assert [len(each) for each in keys] == [1] * len(keys)
    flat = [min(each) for each in keys]
    assert flat == sorted(flat)
    assert len(set(flat)) == len(flat) > 50


@pytest.mark.parametrize(
    "ascending",
    [
        ("1-alpha", "1", "1.sp.1"),
        ("1.0.0.Beta-redhat-1", "1.0.0-alpha", "1.0.0", "1.0.0-1"),
        ("2-0-SNAPSHOT", "2", "2-jre"),
    ],
)
def test_versions_that_maven_orders_in_a_circle_have_an_order(ascending: tuple[str, ...]):
    """Each beginning compares with "nothing" as in Maven, so pre-releases stay below releases."""
    keys = [sort_key(version) for version in ascending]
    outside = [key for version, key in zip(ascending, keys, strict=True) if version != "1.0.0.Beta-redhat-1"]
    assert outside == sorted(outside)
    assert sort_key("1.0.0.Beta-redhat-1") < sort_key("1.0.0")


@pytest.mark.parametrize("other", ["1.0", "1.0.0", "1-ga", "1.FINAL", "1-0", "01", "1.", "1-", "1.0-release"])
def test_equal_versions_have_equal_keys(other: str):
    assert sort_key(other) == sort_key("1")


def test_numbers_of_any_length_compare_by_value():
    numbers = ["1" * count for count in (1, 9, 10, 18, 19, 254, 255, 256, 5000)]
    keys = [sort_key(number) for number in numbers]
    assert keys == sorted(set(keys))


def test_digits_of_other_scripts_are_numbers():
    assert sort_key("1.\u0663") == sort_key("1.3")
    # A digit beyond the first plane is two characters to Java, which are no digits.
    assert sort_key("1.\U0001d7d1") < sort_key("1.0.1")


def test_words_compare_by_utf16_units_as_in_java():
    assert sort_key("1-\U0001f600") < sort_key("1-\ue000")


def texts() -> st.SearchStrategy[str]:
    pieces = st.sampled_from([*"0129.-_ax+", "alpha", "SNAPSHOT", "ga", "sp", "10", "00", "é", "\u0663", "\U0001f600"])
    return st.lists(pieces, max_size=40).map("".join) | st.text(st.characters(min_codepoint=1), max_size=255)


@given(texts())
def test_any_text_has_a_key_of_bounded_size(text: str):
    key = sort_key(text)
    assert len(key) <= 5 * len(text.encode("utf-8", "surrogatepass")) + 1
    assert sort_key(text + ".0") == key or text[-1:] not in set("0123456789")


@given(st.lists(texts(), min_size=2, max_size=5))
def test_no_key_is_a_prefix_of_another(versions: list[str]):
    for one, other in itertools.permutations({sort_key(version) for version in versions}, 2):
        assert not other.startswith(one)
