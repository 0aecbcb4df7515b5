"""Groups, artifacts and versions."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.names import (
    Coordinates,
    is_literal_snapshot,
    is_snapshot,
    package_directory,
    parse_package_key,
    parse_version,
)


@pytest.mark.parametrize(
    "version",
    ["1.1-SNAPSHOT", "1.1-snapshot", "1-Snapshot", "SNAPSHOT", "1.1-20240102.030405-6", "x-y-20240102.030405-123"],
)
def test_snapshots(version: str) -> None:
    assert is_snapshot(version)


@pytest.mark.parametrize(
    "version",
    [
        "1.0",
        "1.0-SNAPSHOT-2",
        "SNAPSHOT-1",
        "1.0SNAPSHOT",
        "20240102.030405-6",
        "1-2024012.030405-6",
        "1-20240102.030405",
    ],
)
def test_releases(version: str) -> None:
    assert not is_snapshot(version)


def test_a_build_is_no_literal_snapshot() -> None:
    assert is_literal_snapshot("1.1-SNAPSHOT")
    assert not is_literal_snapshot("1.1-20240102.030405-6")


def test_key_and_directory_of_coordinates() -> None:
    coordinates = Coordinates("com.example", "my.app", "1.0")
    assert coordinates.package_key == "com.example:my.app"
    assert coordinates.directory == "com/example/my.app/1.0"
    assert package_directory("a:b") == "a/b"


@pytest.mark.parametrize("name", ["com.example:app", "a:b", "a.b-c_d.e2:f.g-h_2.13"])
def test_names_of_packages(name: str) -> None:
    assert parse_package_key(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "app", ":app", "a:", "a..b:c", ".a:b", "a.:b", "a:b:c", "a/b:c", "a:..", "a:b\n", "a: b", "a\\b:c", "a:\0"],
)
def test_other_texts_are_no_names(name: str) -> None:
    with pytest.raises(Invalid):
        parse_package_key(name)


@pytest.mark.parametrize("text", ["", "..", "a/b", "a:b", " 1", "1\x7f", "1" * 1025])
def test_texts_that_are_no_versions(text: str) -> None:
    with pytest.raises(Invalid):
        parse_version(text)
    assert parse_version("1.0+build 2~é") == "1.0+build 2~é"
