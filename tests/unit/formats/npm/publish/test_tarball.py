"""Inspection of valid, malformed and hostile tarballs."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from pkgrepo.archives.source import ArchiveLimits
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.limits import MANIFEST_VALUES
from pkgrepo.formats.npm.publish.tarball import TarballContents, differing_fields, inspect_tarball, read_tarball
from pkgrepo.formats.npm.semver import parse_version
from tests.support.npm_packages import make_manifest, make_tarball
from tests.support.tarballs import make_tar_gz

MANIFEST = json.dumps(make_manifest("x", "1.0.0")).encode()


def look(data: bytes, name: str = "x", version: str = "1.0.0") -> TarballContents:
    return inspect_tarball(data, "x-1.0.0.tgz", name, parse_version(version))


def with_link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> bytes:
    target_file = io.BytesIO()
    with tarfile.open(fileobj=target_file, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = target
        archive.addfile(info)
    return target_file.getvalue()


def test_files_are_counted_and_the_manifest_is_read() -> None:
    contents = look(make_tarball("x", "1.0.0", files={"lib/a.js": b"a" * 1000, "lib/package.json": b"{}"}))
    index = b'module.exports = "x@1.0.0";\n'
    indented = json.dumps(make_manifest("x", "1.0.0"), indent=2).encode()
    assert contents.manifest == make_manifest("x", "1.0.0")
    assert contents.file_count == 4
    assert contents.unpacked_size == len(indented) + len(index) + 1000 + 2
    assert not contents.has_gyp
    assert not contents.has_shrinkwrap


@pytest.mark.parametrize("folder", ["package", "x", "types-node", ".", "weird folder"])
def test_the_folder_may_be_called_anything(folder: str) -> None:
    data = make_tar_gz({f"{folder}/package.json": MANIFEST, f"{folder}/binding.gyp": b"{}", f"{folder}/lib/a.js": b""})
    contents = look(data)
    assert contents.file_count == 3
    assert contents.has_gyp


@pytest.mark.parametrize("version", ["1.0.0", "v1.0.0", "=1.0.0", " 1.0.0 ", "1.0.0+build.5"])
def test_version_may_have_prefixes_that_npm_strips(version: str) -> None:
    assert look(make_tarball("x", "1.0.0", manifest={"name": "x", "version": version}))


def test_descriptor_stays_open_at_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(make_tarball("x", "1.0.0"))
    with path.open("rb") as opened:
        opened.seek(7)
        assert inspect_tarball(opened.fileno(), "x-1.0.0.tgz", "x", parse_version("1.0.0")).file_count == 2
        assert opened.tell() == 7


def test_byte_order_mark_before_the_manifest_is_ignored() -> None:
    assert look(make_tar_gz({"package/package.json": b"\xef\xbb\xbf" + MANIFEST})).manifest["name"] == "x"


def test_gyp_and_shrinkwrap_count_only_beside_the_manifest() -> None:
    nested = {"lib/binding.gyp": b"", "node_modules/y/npm-shrinkwrap.json": b"{}"}
    contents = look(make_tarball("x", "1.0.0", files=nested))
    assert not contents.has_gyp
    assert not contents.has_shrinkwrap
    contents = look(make_tarball("x", "1.0.0", files={"npm-shrinkwrap.json": b"{}"}))
    assert contents.has_shrinkwrap


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is truncated"),
        (b"PK\x03\x04" + bytes(100), "not a gzip archive"),
        (gzip.compress(b"hello" * 300), "is not a tar archive"),
        (make_tarball("x", "1.0.0")[:-20], "is truncated"),
        (make_tarball("y", "1.0.0"), "is of package 'y', not 'x'"),
        (make_tarball("x", "1.0.1"), r"is of version '1\.0\.1', not '1\.0\.0'"),
        (make_tarball("x", "1.0.0", manifest={"version": "1.0.0"}), "is of package nothing"),
        (make_tarball("x", "1.0.0", manifest={"name": "x"}), "is of version nothing"),
        (make_tarball("x", "1.0.0", manifest={"name": "x", "version": 1}), "is of version nothing"),
        (make_tar_gz({"package/index.js": b""}), "has no package.json"),
        (make_tar_gz({"package.json": MANIFEST}), "has no package.json"),
        (make_tar_gz({"package/lib/package.json": MANIFEST}), "has no package.json"),
        (make_tar_gz({"./package/package.json": MANIFEST}), "has no package.json"),
        (make_tar_gz({"package/package.json": b"{"}), "cannot be read: it is not JSON"),
        (make_tar_gz({"package/package.json": b"[]"}), "cannot be read: it is not what it should be"),
        (make_tar_gz({"package/package.json": b"\xff"}), "cannot be read"),
        (make_tar_gz({"package/package.json": b'{"a":' * 9000 + b"1" + b"}" * 9000}), "nested too deeply"),
        (make_tar_gz({"package/package.json": MANIFEST, "other/package.json": MANIFEST}), "must have one package.json"),
        (with_link("package/package.json", "a.json"), "must have one package.json"),
        (make_tar_gz({"package/package.json": MANIFEST, "package/../../etc/passwd": b""}), "not a plain relative path"),
        (make_tar_gz({"package/package.json": MANIFEST, "/etc/passwd": b""}), "not a plain relative path"),
        (make_tar_gz({"package/package.json": MANIFEST, "package/..\\x": b""}), "backslash"),
        (with_link("package/dev", "", tarfile.CHRTYPE), "that is a device"),
    ],
)
def test_malformed_tarball_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        look(data)
    assert str(caught.value).startswith("x-1.0.0.tgz ")
    assert str(caught.value).isprintable()


def test_long_manifest_is_refused_before_it_is_read() -> None:
    with pytest.raises(Invalid, match="more than 8388608 bytes"):
        look(make_tar_gz({"package/package.json": b" " * 8_388_609}))


def test_manifest_of_many_values_is_refused_before_it_is_parsed() -> None:
    manifest = {"name": "x", "version": "1.0.0", "files": ["a"] * (MANIFEST_VALUES - 10)}
    assert look(make_tarball("x", "1.0.0", manifest=manifest)).manifest == manifest
    with pytest.raises(Invalid, match="cannot be read: it has more than 250000 values"):
        look(make_tarball("x", "1.0.0", manifest={**manifest, "exports": ["b"] * 20}))


def test_bomb_is_refused_while_it_unpacks() -> None:
    data = make_tarball("x", "1.0.0", files={"zeros": bytes(8 * 1024 * 1024)})
    with pytest.raises(Invalid, match="would unpack to more than"):
        read_tarball(data, "x-1.0.0.tgz", limits=ArchiveLimits(free_size=1024 * 1024))


def contents(**fields: object) -> TarballContents:
    has_gyp = bool(fields.pop("has_gyp", False))
    return TarballContents(
        manifest={"name": "@sc/x", **fields}, file_count=1, unpacked_size=1, has_gyp=has_gyp, has_shrinkwrap=False
    )


@pytest.mark.parametrize(
    ("published", "inside", "fields"),
    [
        ({"dependencies": {"a": "1"}}, {"dependencies": {"a": "1"}}, []),
        ({"dependencies": {"a": "1"}}, {"dependencies": {"a": "2"}}, ["dependencies"]),
        ({}, {"scripts": {"postinstall": "evil"}}, ["scripts"]),
        ({}, {"bin": "evil.js"}, ["bin"]),
        ({"bin": {"x": "cli.js"}}, {"bin": "./cli.js"}, []),
        ({"bin": {"x": "cli.js"}}, {"bin": {"x": "./cli.js"}}, []),
        ({"dependencies": {"a": "1"}, "optionalDependencies": {"a": "1"}}, {"optionalDependencies": {"a": "1"}}, []),
        ({"scripts": {"install": "node-gyp rebuild"}}, {"has_gyp": True}, []),
        ({"scripts": {"install": "node-gyp rebuild"}}, {}, ["scripts"]),
        ({"bin": 1, "scripts": [], "dependencies": None}, {}, []),
    ],
)
def test_differing_fields_are_found(published: dict[str, object], inside: dict[str, object], fields: list[str]) -> None:
    assert differing_fields({"name": "@sc/x", **published}, contents(**inside)) == fields
