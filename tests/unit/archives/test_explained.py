"""What the archive of its source does not explain of a file, and what of that is new."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pytest

from pkgrepo.archives.explained import (
    MANY,
    MOST_PLACES,
    Explained,
    digests_of_files,
    explain_files,
    names_of_tags,
    new_places,
)
from pkgrepo.formats.npm.inside import SIGNS, SOURCES
from pkgrepo.formats.python.inside import OF_SOURCE
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.tarballs import make_tar_gz

SOURCE = {"lib/a.js": b"a", "lib/b.js": b"b", "index.js": b"i", "src/c.ts": b"c"}


def digests(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: hashlib.sha256(data).digest() for path, data in files.items()}


def explained(files: Mapping[str, bytes], source: Mapping[str, bytes] = SOURCE) -> Explained:
    return explain_files(digests(files), {*digests(source).values()}, "v1")


@pytest.mark.parametrize(
    ("files", "paths", "built"),
    [
        (SOURCE, (), ()),
        ({**SOURCE, "index.js": b"evil"}, ("index.js",), ()),
        ({"moved/index.js": b"i"}, (), ()),  # the same bytes are anywhere
        ({**SOURCE, "lib/a.js": b"evil"}, ("lib/a.js",), ()),
        ({**SOURCE, "dist/x.js": b"x", "dist/deep/y.js": b"y"}, (), ("dist/*.js",)),
        ({**SOURCE, "lib/new.node": b"n"}, (), ("lib/*.node",)),  # beside code that is explained
        ({**SOURCE, "lib/sub/x.js": b"x"}, (), ("lib/sub/*.js",)),
        ({"lib/a.js": b"x", "lib/b.js": b"y"}, (), ("lib/*.js",)),
        ({"LICENSE": b"mit", "bin/run": b"r"}, ("LICENSE",), ("bin/*",)),
    ],
)
def test_built_folders_are_told_from_single_files(
    files: Mapping[str, bytes], paths: tuple[str, ...], built: tuple[str, ...]
) -> None:
    found = explained(files)
    assert (found.tag, found.paths, found.built) == ("v1", paths, built)


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ({"dist/a.js": b"1"}, {"dist/b.js": b"2", "dist/deep/c.js": b"3"}, []),
        ({"_version.py": b"1"}, {"_version.py": b"2"}, []),
        ({"_version.py": b"1"}, {"_version.py": b"2", "setup.py": b"x"}, ["setup.py"]),
        ({**SOURCE, "lib/_version.js": b"1"}, {**SOURCE, "lib/_version.js": b"2", "lib/a.js": b"evil"}, ["lib/a.js"]),
        (SOURCE, {"lib/a.js": b"x", "lib/b.js": b"y"}, ["lib/*.js"]),
        ({"dist/a.js": b"1"}, {"dist/a.js": b"2", "dist/a.sh": b"x"}, ["dist/*.sh"]),
        ({"dist/a.js": b"1"}, SOURCE, []),
    ],
)
def test_what_was_built_before_is_no_news(
    before: Mapping[str, bytes], after: Mapping[str, bytes], new: list[str]
) -> None:
    assert new_places(explained(before), explained(after)) == new


def test_too_many_places_are_told_as_that() -> None:
    few = explained({"a.js": b"1"})
    for files in (
        {f"{number}.js": b"%d" % number for number in range(MOST_PLACES + 1)},
        {f"{'x' * 300}.js": b"1"},
        {f"{'x/' * 257}y": b"evil"},
        {f"{'x/' * 257}y": b"a"},  # also of files that are explained
    ):
        many = explained(files)
        assert (many.built, many.paths, many.asked) == ((MANY,), (), few.asked)
        assert new_places(few, many) == [MANY]


def test_a_path_that_is_there_twice_is_explained_by_nothing() -> None:
    tarball = make_tar_gz({"package/a.js": b"good", "other/a.js": b"evil", "package/b.js": b"", "package/c.js": b"c"})
    found = digests_of_files(tarball, "x.tgz", SIGNS.top)
    assert found == {"a.js": b"", "c.js": hashlib.sha256(b"c").digest()}
    assert explain_files(found, {hashlib.sha256(each).digest() for each in (b"good", b"evil", b"c")}, "v1").paths == (
        "a.js",
    )


def test_what_builders_write_is_left_out() -> None:
    _, wheel = make_wheel("demo", "1.0", extra_files={"demo/x.py": b"x"})
    found = OF_SOURCE.digests(wheel, "demo-1.0-py3-none-any.whl")
    assert "demo/x.py" in found
    assert not any("dist-info" in each for each in found)
    name, sdist = make_sdist("demo", "1.0")
    assert not any(each.endswith("PKG-INFO") or "demo-1.0" in each for each in OF_SOURCE.digests(sdist, name))


def test_tags_are_those_that_people_use() -> None:
    assert names_of_tags("1.0", ["demo"]) == ["v1.0", "1.0", "demo@1.0", "demo-1.0", "demo-v1.0"]
    assert SOURCES.tags("@acme/demo", "1.0") == [
        *("@acme/demo@1.0", "@acme/demo-1.0", "@acme/demo-v1.0", "demo@1.0", "demo-1.0", "demo-v1.0", "v1.0", "1.0")
    ]
