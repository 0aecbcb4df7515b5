"""Names of packages, tags and tarballs, and request paths."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.paths import ApiPath, PackagePath, RootPath, TarballPath, VersionPath, read_path, split_name


@pytest.mark.parametrize(
    "name",
    [
        *("x", "2048", "socket.io", "lodash.get", "base-64", "a_b", "@sc/x", "@0/2048", "@sc/fs", "a" * 214),
        *("@sc/_x", "@sc/-x", "@_team/x", "@-team/x", "@sc/__", "@sc/--"),
    ],
)
def test_good_names_pass(name: str) -> None:
    names.check_new_name(name)
    assert names.is_readable(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "X",
        "Jquery",
        ".x",
        "_x",
        "-x",
        " x",
        "x ",
        "x y",
        "x~",
        "x!",
        "x(",
        "x/y",
        "@/x",
        "@sc/",
        "@sc",
        "@sc/x/y",
        "@sc/.x",
        "@.sc/x",
        "@sc/-",
        "@-/x",
        "@sc/-\n",
        "@sc/_X",
        "@Sc/x",
        "é",
        "x\x00",
        "..",
        "../x",
        "@../x",
        "@sc/..",
        "fs",
        "http2",
        "node_modules",
        "favicon.ico",
        "@sc/node_modules",
        "__proto__",
        "constructor",
        "@sc/constructor",
        "a" * 215,
        "%2e%2e",
        "x\\y",
        "x\n",
    ],
)
def test_bad_names_are_refused_for_new_packages(name: str) -> None:
    with pytest.raises(Invalid, match="invalid package name") as caught:
        names.check_new_name(name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["Base64", "JSONStream", "_", "x~", "-x", "@Sc/X", "fs"])
def test_old_names_can_be_read(name: str) -> None:
    assert names.is_readable(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "-", "@sc", "@sc/", "@/x", "@sc/..", "x/y", "a b", "é", "__proto__", "a\\b", "x" * 215]
)
def test_texts_that_were_never_names_are_not_readable(name: str) -> None:
    assert not names.is_readable(name)


@given(st.from_regex(r"(@[a-z0-9._-]{1,5}/)?[a-z0-9._-]{1,8}", fullmatch=True))
def test_new_names_are_readable_names(name: str) -> None:
    try:
        names.check_new_name(name)
    except Invalid:
        return
    assert names.is_readable(name)


@pytest.mark.parametrize(
    ("name", "filename", "version"),
    [
        ("x", "x-1.0.0.tgz", "1.0.0"),
        ("x", "x-1.0.0-beta.1.tgz", "1.0.0-beta.1"),
        ("x", "x-1.0.0-rc.1+build.5.tgz", "1.0.0-rc.1+build.5"),
        ("base-64", "base-64-1.0.0.tgz", "1.0.0"),
        ("x-1.0.0", "x-1.0.0-2.0.0.tgz", "2.0.0"),
        ("@sc/x", "x-1.0.0.tgz", "1.0.0"),
    ],
)
def test_tarball_name_is_split_by_the_name(name: str, filename: str, version: str) -> None:
    found = names.find_tarball_version(name, filename)
    assert found is not None
    assert found.text == version
    assert names.tarball_name(name, version) == filename


@pytest.mark.parametrize(
    "filename", ["x-1.0.0.tar.gz", "y-1.0.0.tgz", "x-v1.0.0.tgz", "x-1.0.tgz", "x-.tgz", "x.tgz", "@sc/x-1.0.0.tgz", ""]
)
def test_other_file_names_are_no_tarballs(filename: str) -> None:
    assert names.find_tarball_version("x", filename) is None


@pytest.mark.parametrize("tag", ["latest", "beta", "next", "v1-lts", "release-1.x", "2048-preview"])
def test_good_tags_pass(tag: str) -> None:
    names.check_tag(tag)


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "1.x",
        "1",
        "v1",
        "v1.2.3",
        "^1",
        "*",
        "x",
        "1.2.3*",
        "v*1.2.3",
        "1.2.3-1a-10",
        "a b",
        "a/b",
        "..",
        "é",
        "__proto__",
        "constructor",
        "toString",
        "a" * 129,
        "a\n",
    ],
)
def test_bad_tags_are_refused(tag: str) -> None:
    with pytest.raises(Invalid, match="invalid tag") as caught:
        names.check_tag(tag)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("path", "readings"),
    [
        ("", [RootPath()]),
        ("x", [PackagePath("x")]),
        ("x/", [PackagePath("x")]),
        ("@sc/x", [PackagePath("@sc/x")]),
        ("@sc%2fx", [PackagePath("@sc/x")]),
        ("@sc%2Fx", [PackagePath("@sc/x")]),
        ("%40sc%2fx", [PackagePath("@sc/x")]),
        ("%40sc/x", [PackagePath("@sc/x")]),
        ("x/1.0.0", [VersionPath("x", "1.0.0")]),
        ("x/latest", [VersionPath("x", "latest")]),
        ("@sc%2fx/1.0.0", [VersionPath("@sc/x", "1.0.0")]),
        ("@sc/x/1.0.0", [VersionPath("@sc/x", "1.0.0")]),
        ("x/-/x-1.0.0.tgz", [TarballPath("x", "x-1.0.0.tgz")]),
        ("x/-/x-1.0.0+a.tgz", [TarballPath("x", "x-1.0.0+a.tgz")]),
        ("x/-/x-1.0.0%2Ba.tgz", [TarballPath("x", "x-1.0.0+a.tgz")]),
        ("@sc/x/-/x-1.0.0.tgz", [TarballPath("@sc/x", "x-1.0.0.tgz")]),
        ("@sc%2fx/-/x-1.0.0.tgz", [TarballPath("@sc/x", "x-1.0.0.tgz")]),
        ("@sc/x/-/@sc/x-1.0.0.tgz", [TarballPath("@sc/x", "x-1.0.0.tgz")]),
        ("@sc/x/-/@sc%2fx-1.0.0.tgz", [TarballPath("@sc/x", "x-1.0.0.tgz")]),
        ("x/-/1.0.0/x-1.0.0.tgz", [TarballPath("x", "x-1.0.0.tgz", selector="1.0.0")]),
        ("x/-rev/5-ab", [PackagePath("x", "5-ab")]),
        ("@sc%2fx/-rev/5-ab", [PackagePath("@sc/x", "5-ab")]),
        ("x/-/x-1.0.0.tgz/-rev/5-ab", [TarballPath("x", "x-1.0.0.tgz", revision="5-ab")]),
        ("-/whoami", [ApiPath(("whoami",))]),
        ("-/package/@sc%2fx/dist-tags/beta", [ApiPath(("package", "@sc/x", "dist-tags", "beta"))]),
        ("-/user/org.couchdb.user:bob", [ApiPath(("user", "org.couchdb.user:bob"))]),
        ("package", [PackagePath("package")]),
        ("package/x", [PackagePath("x"), VersionPath("package", "x")]),
        ("package/@sc%2fx", [PackagePath("@sc/x")]),
        ("package/@sc/x/1.0.0", [VersionPath("@sc/x", "1.0.0")]),
        ("package/x/1.0.0", [VersionPath("x", "1.0.0")]),
        ("package/x/1.0.0/x-1.0.0.tgz", [TarballPath("x", "x-1.0.0.tgz", selector="1.0.0")]),
        ("package/-/package-1.0.0.tgz", [TarballPath("package", "package-1.0.0.tgz")]),
        ("package/x/-/x-1.0.0.tgz", []),
        ("package/x/1.0.0/a/b", []),
        ("package/x/1.0.0/a%2fb", []),
        ("-", [ApiPath(())]),
    ],
)
def test_paths_are_read_in_every_spelling(path: str, readings: list[object]) -> None:
    assert list(read_path(path.encode())) == readings


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "x/..",
        "%2e%2e",
        "x/%2e%2e",
        "x%00",
        "x/a%00b",
        "x/a%0ab",
        "x%5cy",
        "x//y",
        "//",
        "%ff",
        "x%2fy",
        "@sc%2f..",
        "@sc",
        "@sc/x/y/z",
        "x/-/../y.tgz",
        "x/-/%2e%2e%2fy.tgz",
        "x/-/a%2fb.tgz",
        "x/-",
        "x/1.0.0/y",
        "@sc%2fx%2fy",
        "-/a/../b",
        "x/a%2fb",
        "x/-/@sc/x-1.0.0.tgz",
        "@sc/x/-/@other%2fx-1.0.0.tgz",
        "%2540sc/x",
        "x/-rev",
        "x/1.0.0/-rev/5",
    ],
)
def test_unsafe_and_unknown_paths_have_no_meaning(path: str) -> None:
    assert list(read_path(path.encode())) == []


def test_empty_parts_name_no_package() -> None:
    assert split_name([]) is None
    assert split_name(["@sc", "x", "dist-tags"]) == ("@sc/x", ["dist-tags"])


@given(st.binary(max_size=40) | st.text("x@/-.%2fe0:_", max_size=30).map(str.encode))
def test_any_path_gives_valid_names_or_nothing(raw: bytes) -> None:
    for reading in read_path(raw):
        if not isinstance(reading, RootPath | ApiPath):
            assert names.is_readable(reading.name)
        if isinstance(reading, TarballPath):
            assert "/" not in reading.filename
            assert reading.filename.strip(".")
        if isinstance(reading, ApiPath):
            assert all(part.strip(".") and "\\" not in part and part.isprintable() for part in reading.parts)


@given(st.sampled_from(["x", "@sc/x", "Old~Name"]), st.from_regex(r"[a-z0-9.]{1,6}-[0-9]\.tgz", fullmatch=True))
def test_encoded_names_are_decoded(name: str, filename: str) -> None:
    assert list(read_path(f"{quote(name, safe='')}/-/{quote(filename)}".encode())) == [TarballPath(name, filename)]
