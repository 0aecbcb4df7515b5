"""What paths are, and which package and version a file belongs to."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.raw.paths import (
    UNVERSIONED,
    is_prerelease,
    media_type,
    package_of,
    package_of_folder,
    parse_path,
    sort_key,
    version_of,
)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"a/b.bin", "a/b.bin"),
        (b"a//b/", "a/b"),
        (b"%C3%A9%20x/+y", "é x/+y"),
        (b"", ""),
    ],
)
def test_a_path_is_read_as_it_is(raw: bytes, path: str) -> None:
    assert parse_path(raw) == path


@pytest.mark.parametrize(
    "raw",
    [b"../x", b"a/./b", b"%2e%2e/x", b"a%2fb", b"a%5cb", b"a\\b", b"a%00b", b"%ff", b"a%0ab", b"a/...", b"a/%20/b"],
)
def test_what_could_be_another_path_is_refused(raw: bytes) -> None:
    with pytest.raises(Invalid):
        parse_path(raw)


@pytest.mark.parametrize("raw", [b"", b"a/", b"a//b"])
def test_a_file_is_put_under_a_name(raw: bytes) -> None:
    with pytest.raises(Invalid):
        parse_path(raw, written=True)


def test_paths_and_their_parts_have_limits() -> None:
    assert parse_path(b"a" * 255) == "a" * 255
    for long in (b"a" * 256, "é".encode() * 128, b"/".join([b"a" * 200] * 6)):
        with pytest.raises(Invalid):
            parse_path(long)


PATTERNS = ("releases/*", "com/*/*")


@pytest.mark.parametrize(
    ("path", "package", "version"),
    [
        ("tool/1.0/tool.bin", "tool", "1.0"),
        ("tool/1.0/docs/x", "tool", "1.0"),
        ("tool/notes", "tool", UNVERSIONED),
        ("tool", "tool", UNVERSIONED),
        ("releases/tool/2.0/x", "releases/tool", "2.0"),
        ("releases/tool/x", "releases/tool", UNVERSIONED),
        ("releases/x", "releases/x", UNVERSIONED),
        ("com/acme/tool/3/x/y", "com/acme/tool", "3"),
        ("com/acme", "com", UNVERSIONED),
    ],
)
def test_the_package_and_version_of_a_file(path: str, package: str, version: str) -> None:
    assert package_of(path, PATTERNS) == package
    assert version_of(package, path) == version


@pytest.mark.parametrize(
    ("folder", "package"),
    [("", None), ("tool", "tool"), ("releases", None), ("releases/tool", "releases/tool"), ("com/acme", None)],
)
def test_a_folder_has_one_package_or_several(folder: str, package: str | None) -> None:
    assert package_of_folder(folder, PATTERNS) == package


def test_versions_are_ordered_as_people_read_them() -> None:
    order = [
        UNVERSIONED,
        "1.0-alpha",
        "1.0-rc1",
        "1.0-rc2",
        "1.0-rc10",
        "1.0",
        "v1.0.1",
        "1.2",
        "1.10",
        "2024.01.05",
        "10000.1",
    ]
    assert sorted(set(order), key=sort_key) == order
    assert [each for each in order if is_prerelease(each)] == ["1.0-alpha", "1.0-rc1", "1.0-rc2", "1.0-rc10"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/x.tar.gz", "application/gzip"),
        ("x.json", "application/json"),
        ("x.txt", "text/plain; charset=utf-8"),
        ("x.tool", "application/octet-stream"),
        ("x.tar.xz", "application/x-xz"),
    ],
)
def test_the_media_type_follows_from_the_name(name: str, kind: str) -> None:
    assert media_type(name) == kind
