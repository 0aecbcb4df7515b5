"""Names, versions, platforms and their order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.names import (
    check_file_name,
    check_full_version,
    check_name,
    check_platform,
    check_version,
    full_version,
    is_prerelease,
    order_key,
    sort_key,
    spelling,
)


@pytest.mark.parametrize("name", ["a", "A.b_c-d", "7zip", "x" * 255, "a--b", "ruby.gems"])
def test_names_of_gems(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1",
        "1.2-3",
        ".a",
        "-a",
        "_a",
        "a.",
        "a-",
        "a b",
        "a/b",
        "a\n",
        "ä",
        "a.gem",
        "a.json",
        "a.html",
        "a.gemspec",
        "x" * 256,
        "..",
        "a%2f",
    ],
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="name"):
        check_name(name)


@pytest.mark.parametrize("version", ["0", "1.0", "1.0.a", "1.0.0.rc1", "2024.01.01"])
def test_version_numbers(version: str) -> None:
    assert check_version(version) == version


@pytest.mark.parametrize(
    "version", ["", "a", "1.", ".1", "1..2", "1-1", "1.0 ", "1.0\n", "1_0", "v1", "1." + "0" * 255]
)
def test_what_is_no_version_number_is_refused(version: str) -> None:
    with pytest.raises(Invalid, match="version"):
        check_version(version)


@pytest.mark.parametrize("platform", ["ruby", "java", "x86_64-linux-gnu", "x64-mingw-ucrt", "universal-darwin-8.0.0"])
def test_platforms(platform: str) -> None:
    assert check_platform(platform) == platform


@pytest.mark.parametrize("platform", ["", "x/y", "-x", "x-", "x y", "x\ny", "x" * 101])
def test_what_is_no_platform_is_refused(platform: str) -> None:
    with pytest.raises(Invalid, match="platform"):
        check_platform(platform)


def test_a_full_version_names_the_platform_unless_it_is_ruby() -> None:
    assert full_version("1.0", "ruby") == "1.0"
    assert full_version("1.0", "x86-linux") == "1.0-x86-linux"
    assert check_full_version("1.0-x86-linux") == "1.0-x86-linux"
    with pytest.raises(Invalid):
        check_full_version("1.0-")


def test_files_have_names_that_every_disk_can_hold() -> None:
    check_file_name("x" * 223, "1.0")
    with pytest.raises(Invalid, match="together"):
        check_file_name("x" * 226, "1.0")


def test_names_that_differ_in_case_and_separators_are_one_spelling() -> None:
    assert spelling("Foo_Bar-x") == spelling("foo-bar_X")
    assert spelling("foo.bar") != spelling("foo-bar")


@pytest.mark.parametrize(("number", "expected"), [("1.0", False), ("1.0.rc1", True), ("1.0.0a", True)])
def test_letters_make_a_prerelease(number: str, expected: bool) -> None:
    assert is_prerelease(number) is expected


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
