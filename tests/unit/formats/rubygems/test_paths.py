"""The grammar of request paths."""

from __future__ import annotations

import pytest

from pkgrepo.formats.rubygems import paths
from pkgrepo.formats.rubygems.paths import (
    ApiPath,
    CompactPath,
    GemPath,
    InfoPath,
    QuickPath,
    RootPath,
    SpecsPath,
    read_path,
)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"", RootPath()),
        (b"//", RootPath()),
        (b"names", CompactPath("names")),
        (b"versions", CompactPath("versions")),
        (b"/versions/", CompactPath("versions")),
        (b"info/a", InfoPath("a")),
        (b"info/Beta%5fX.y", InfoPath("Beta_X.y")),
        (b"specs.4.8.gz", SpecsPath("specs.4.8.gz")),
        (b"prerelease_specs.4.8.gz", SpecsPath("prerelease_specs.4.8.gz")),
        (b"quick/Marshal.4.8/a-1.0-x86-linux.gemspec.rz", QuickPath("a-1.0-x86-linux")),
        (b"gems/a-1.0-x86_64-linux.gem", GemPath("a-1.0-x86_64-linux")),
        (b"/api/v1/gems", ApiPath(("v1", "gems"))),
        (b"/api//v1/gems/", ApiPath(("v1", "gems"))),
        (b"api/v1/gems/a%2Db/owners.yaml", ApiPath(("v1", "gems", "a-b", "owners.yaml"))),
        (b"api", ApiPath(())),
    ],
)
def test_what_paths_mean(raw: bytes, path: object) -> None:
    assert read_path(raw) == path


@pytest.mark.parametrize(
    "raw",
    [
        b"other",
        b"info",
        b"info/",
        b"info/-a",
        b"info/a/b",
        b"info/..",
        b"info/%2e%2e",
        b"info/a%2fb",
        b"info/a%00",
        b"info/a%0a",
        b"info/%ff",
        b"specs.4.8",
        b"Marshal.4.8.Z",
        b"yaml",
        b"gems/a-1.0",
        b"gems/.gem",
        b"gems/a/b.gem",
        b"gems/a%2f..%2fb.gem",
        b"gems/..%5cb.gem",
        b"gems/.yanked.gem",
        b".yanked/gems/a-1.0.gem",
        b"gems/%c3%a4-1.gem",
        b"quick/Marshal.4.9/a-1.gemspec.rz",
        b"quick/Marshal.4.8/.gemspec.rz",
        b"quick/a-1.gemspec.rz",
        b"gems/" + b"a" * 600 + b".gem",
    ],
)
def test_paths_that_mean_nothing(raw: bytes) -> None:
    assert read_path(raw) is None


def test_files_of_yanked_versions_are_hidden_and_shown_again() -> None:
    path = paths.gem_path("a-1.0")
    hidden = paths.hidden_path(path)
    assert path == "gems/a-1.0.gem"
    assert paths.hidden_path(hidden) == hidden != path
    assert paths.public_path(hidden) == path == paths.public_path(path)


def test_places_in_the_readable_layout() -> None:
    path = paths.quick_path("a-1.0-java")
    places = paths.readable_places("a", "1.0-java")
    for each in (path, paths.hidden_path(path), paths.gem_path("a-1.0-java")):
        assert paths.readable_path(each) in places
    assert paths.readable_path(paths.gem_path("a-1.0")) == "gems/a-1.0.gem"
    assert paths.readable_path(paths.hidden_path(paths.gem_path("a-1.0"))) == "yanked/gems/a-1.0.gem"
    assert paths.readable_folder("gems") == "specs/gems"
