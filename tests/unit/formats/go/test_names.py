"""Module paths, versions, and the paths of requests."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.go.names import (
    Path,
    bound_key,
    check_module,
    check_pair,
    check_version,
    escape,
    file_path,
    newest,
    pseudo_time,
    read_path,
    sort_key,
    unescape,
)

PSEUDO = "v0.0.0-20240102030405-abcdefabcdef"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("github.com/BurntSushi/toml", "github.com/!burnt!sushi/toml"),
        ("v1.0.0-RC1", "v1.0.0-!r!c1"),
        ("example.com/x", "example.com/x"),
    ],
)
def test_upper_case_letters_are_escaped(text: str, escaped: str) -> None:
    assert (escape(text), unescape(escaped)) == (escaped, text)


@pytest.mark.parametrize("text", ["example.com/Demo", "example.com/!Demo", "example.com/!1", "a!", "!"])
def test_what_is_not_escaped_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        unescape(text)


@pytest.mark.parametrize(
    "path",
    [
        "example.com/demo",
        "github.com/BurntSushi/toml",
        "example.com/demo/v2",
        "example.com/v2demo",
        "gopkg.in/yaml.v3",
        "a.b/c-d_e~f.g",
        "golang.org/x/text",
        "example.com",
    ],
)
def test_module_paths(path: str) -> None:
    assert check_module(path) == path


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "demo", "Example.com/x", "example.com/", "/example.com", "example.com//x", "example.com/../x"),
        *("example.com/.x", "example.com/x.", "example.com/a b", "example.com/a@b", "example.com/ü", "-a.com/x"),
        *("example.com/v1", "example.com/v0", "example.com/v02", "example.com/v2.0", "example.com/con"),
        *("gopkg.in/yaml", "gopkg.in/team/yaml", "gopkg.in/yaml/v3", "gopkg.in/yaml.v03"),
        *("example.com/NUL.txt", "example.com/progra~1", f"example.com/{'a' * 250}", "example.com/a\\b"),
    ],
)
def test_what_is_no_module_path_is_refused(path: str) -> None:
    with pytest.raises(Invalid, match="no module path"):
        check_module(path)


@pytest.mark.parametrize("version", ["v0.0.0", "v1.2.3", "v1.2.3-rc.1", "v2.0.0+incompatible", PSEUDO])
def test_versions(version: str) -> None:
    assert check_version(version) == version


@pytest.mark.parametrize(
    "version",
    [
        *("1.2.3", "v1", "v1.2", "v1.2.3.4", "v01.2.3", "v1.2.3-", "v1.2.3-01", "v1.2.3+meta", "", "vx.y.z"),
        *("v1.2.3+incompatible.1", "v1.2.3 ", f"v1.2.3-{'a' * 300}", "v1.2.3\n"),
    ],
)
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(Invalid, match="version"):
        check_version(version)


@pytest.mark.parametrize(
    ("module", "version", "fits"),
    [
        ("example.com/x", "v1.0.0", True),
        ("example.com/x", "v0.1.0", True),
        ("example.com/x", "v2.0.0", False),
        ("example.com/x", "v2.0.0+incompatible", True),
        ("example.com/x", "v1.0.0+incompatible", False),
        ("example.com/x/v2", "v2.1.0", True),
        ("example.com/x/v2", "v3.0.0", False),
        ("example.com/x/v2", "v2.0.0+incompatible", False),
        ("example.com/x/v10", "v10.0.0", True),
        ("gopkg.in/yaml.v3", "v3.0.1", True),
        ("gopkg.in/yaml.v3", "v2.0.0", False),
        ("gopkg.in/yaml.v3", "v3.0.0+incompatible", False),
        ("gopkg.in/team/yaml.v2-unstable", "v2.1.0", True),
        ("example.com/x", PSEUDO, True),
        ("example.com/x/v2", "v2.0.0-20240102030405-abcdefabcdef", True),
    ],
)
def test_the_major_version_is_that_of_the_path(module: str, version: str, fits: bool) -> None:
    if fits:
        assert check_pair(module, version) == (module, version)
        return
    with pytest.raises(Invalid, match="major version"):
        check_pair(module, version)


def test_versions_are_in_the_order_of_semantic_versioning() -> None:
    order = [
        PSEUDO,
        "v0.9.0",
        "v1.0.0-alpha",
        "v1.0.0-alpha.1",
        "v1.0.0-beta.2",
        "v1.0.0-beta.11",
        "v1.0.0",
        "v1.0.1-0.20240102030405-abcdefabcdef",
        "v1.0.1",
        "v1.10.0",
        "v2.0.0+incompatible",
    ]
    assert sorted(order, key=sort_key) == order


@pytest.mark.parametrize(("text", "same"), [("1.2.3", "v1.2.3"), ("v1.2", "v1.2.0"), ("1", "v1.0.0"), ("0", "v0.0.0")])
def test_bounds_of_ranges_may_lack_parts(text: str, same: str) -> None:
    assert bound_key(text) == sort_key(same)


@pytest.mark.parametrize(
    ("versions", "latest"),
    [
        (["v1.0.0", "v1.1.0", "v1.2.0-rc.1"], "v1.1.0"),
        (["v1.0.0-alpha", "v1.0.0-beta"], "v1.0.0-beta"),
        (["v1.0.0-alpha", PSEUDO], "v1.0.0-alpha"),
        ([PSEUDO, "v0.0.0-20250102030405-000000000000", "v0.0.0-20230102030405-ffffffffffff"],
         "v0.0.0-20250102030405-000000000000"),
        (["v1.0.0", "v2.0.0+incompatible"], "v2.0.0+incompatible"),
        ([], None),
    ],
)  # fmt: skip
def test_the_newest_version(versions: list[str], latest: str | None) -> None:
    assert newest(versions) == newest(versions[::-1]) == latest


@pytest.mark.parametrize(
    ("version", "time"),
    [
        (PSEUDO, "20240102030405"),
        ("v1.2.4-0.20240102030405-abcdefabcdef", "20240102030405"),
        ("v1.2.3-rc.0.20240102030405-abcdefabcdef", "20240102030405"),
        ("v2.0.1-0.20240102030405-abcdefabcdef+incompatible", "20240102030405"),
        ("v1.2.3-20240102030405-abcdefabcdef", ""),
        ("v1.2.3", ""),
        ("v1.2.3-rc.1", ""),
    ],
)
def test_pseudo_versions(version: str, time: str) -> None:
    assert pseudo_time(version) == time


X, V = "example.com/X", "v1.0.0"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"example.com/!x/@v/list", Path("list", X, "", "example.com/!x/@v/list")),
        (b"example.com/%21x/%40v/list", Path("list", X, "", "example.com/!x/@v/list")),
        (b"example.com/!x/@latest", Path("latest", X, "", "example.com/!x/@latest")),
        (b"example.com/!x/@v/v1.0.0.zip", Path("zip", X, V, "example.com/!x/@v/v1.0.0.zip")),
        (b"example.com/!x/@v/v1.0.0.mod", Path("mod", X, V, "example.com/!x/@v/v1.0.0.mod")),
        (b"example.com/!x/@v/v1.0.0-!r!c1.info", Path("info", X, "v1.0.0-RC1", "example.com/!x/@v/v1.0.0-!r!c1.info")),
        (
            b"a.b/x/@v/v2.0.0+incompatible.mod",
            Path("mod", "a.b/x", "v2.0.0+incompatible", "a.b/x/@v/v2.0.0+incompatible.mod"),
        ),
        (b"a.b/x/@v/main.info", Path("query", "a.b/x", "main", "a.b/x/@v/main.info")),
        (b"a.b/x/@v/v1.info", Path("query", "a.b/x", "v1", "a.b/x/@v/v1.info")),
        (b"a.b/x/@v/v2.0.0.info", Path("query", "a.b/x", "v2.0.0", "a.b/x/@v/v2.0.0.info")),
        (b"a.b/@v/x/@v/list", None),
        (b"sumdb/sum.example/supported", Path("sumdb", "", "", "sumdb/sum.example/supported")),
        (b"sumdb/sum.example/latest", Path("sumdb", "", "", "sumdb/sum.example/latest")),
        (
            b"sumdb/sum.example/tile/8/0/x001/234.p/5",
            Path("sumdb", "", "", "sumdb/sum.example/tile/8/0/x001/234.p/5"),
        ),
        (b"sumdb/sum.example/tile/8/data/000", Path("sumdb", "", "", "sumdb/sum.example/tile/8/data/000")),
        (
            b"sumdb/sum.example/lookup/example.com/!x@v1.0.0",
            Path("sumdb", X, "", "sumdb/sum.example/lookup/example.com/!x@v1.0.0"),
        ),
        (b"upload", Path("upload", "", "", "upload")),
    ],
)
def test_paths(raw: bytes, path: Path | None) -> None:
    if path is None:
        with pytest.raises(Invalid):
            read_path(raw)
    else:
        assert read_path(raw) == path


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"x", b"a.b/x", b"a.b/x/@v/", b"a.b/x/@v/v1.0.0", b"a.b/x/@v/v1.0.0.tar", b"a.b/x/@v/a/b.info"),
        *(b"sumdb/sum.example/other", b"sumdb/sum.example/tile/8/0/1", b"sumdb/sum.example", b"a.b/x/@v/..%2f.info"),
    ],
)
def test_what_means_nothing(raw: bytes) -> None:
    assert read_path(raw) is None


@pytest.mark.parametrize(
    "raw",
    [b"a.b/X/@v/list", b"demo/@v/list", b"a.b/x/@v/v1.zip", b"a.b/x/@v/v2.0.0.zip", b"a.b/x/@v/V1.0.0.info"],
)
def test_paths_of_what_cannot_be(raw: bytes) -> None:
    with pytest.raises(Invalid):
        read_path(raw)


def test_a_file_has_the_path_that_clients_ask_for() -> None:
    assert file_path(X, "v1.0.0-RC1", "zip") == "example.com/!x/@v/v1.0.0-!r!c1.zip"
