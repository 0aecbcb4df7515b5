"""The order of versions. The chain was sorted by ``Gem::Version`` of RubyGems 3.3.15."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pkgrepo.formats.rubygems.names import order_key, sort_key

CHAIN = [
    "0.a",
    "0.b",
    "0",
    "0.0.0.1",
    "0.0.1.A",
    "0.0.1.a",
    "0.0.1",
    "0.1",
    "1.A",
    "1.a.0.b",
    "1.a.0.0.b",
    "1.a",
    "1.a.0.0.1",
    "1.a.0.1",
    "1.a.1",
    "1.ab",
    "1.b",
    "1.b.1",
    "1.b.10",
    "1",
    "1.0.1.pre.1",
    "1.0.1",
    "1.2",
    "1.10.beta",
    "1.10",
    "2",
    "256",
    "65536",
    "20240101000000000000000000000000",
]


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(CHAIN)))
def test_versions_sort_as_in_ruby(lower: str, higher: str) -> None:
    assert order_key(lower) < order_key(higher)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1.0.0", "1"),
        ("1.0.a", "1.a"),
        ("1.a1", "1.a.1"),
        ("1.0a", "1.a"),
        ("01", "1"),
        ("1.a.0", "1.a"),
        ("1.0-beta", "1.0.pre.beta"),
    ],
)
def test_versions_that_ruby_takes_for_equal_have_one_key(one: str, other: str) -> None:
    assert order_key(one) == order_key(other)


def test_platforms_of_one_version_stay_together() -> None:
    keys = [sort_key("1.0", "java"), sort_key("1.0", "ruby"), sort_key("1.0.1.a", "ruby"), sort_key("1.0.1", "java")]
    assert keys == sorted(keys)
