"""The parts of platforms, as RubyGems 3.6 prints them with C{Gem::Platform.new(text).to_a}."""

from __future__ import annotations

import pytest
from attrs import astuple

from pkgrepo.formats.rubygems.legacy import parse_platform


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x86_64-linux", ("x86_64", "linux", None)),
        ("x86_64-linux-musl", ("x86_64", "linux", "musl")),
        ("arm-linux-gnueabihf", ("arm", "linux", "gnueabihf")),
        ("i686-linux", ("x86", "linux", None)),
        ("x64-mingw-ucrt", ("x64", "mingw", "ucrt")),
        ("x86-mingw32", ("x86", "mingw32", None)),
        ("arm64-darwin-22", ("arm64", "darwin", "22")),
        ("universal-darwin9", ("universal", "darwin", "9")),
        ("java", (None, "java", None)),
        ("jruby", (None, "java", None)),
        ("java1.8.0", (None, "java", "1.8.0")),
        ("java-1.6", ("java", "unknown", None)),
        ("mswin32_80", ("x86", "mswin32", "80")),
        ("sparc-solaris2.8", ("sparc", "solaris", "2.8")),
        ("cpu-my_platform12", ("cpu", "my_platform", "12")),
        ("a-b-c-d", ("a", "unknown", None)),
    ],
)
def test_parts_of_a_platform(text: str, parts: tuple[str | None, str, str | None]) -> None:
    assert astuple(parse_platform(text)) == parts
