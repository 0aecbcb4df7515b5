"""What a crate says of itself, and what is no crate."""

import gzip
import io
import tarfile

import pytest

from pkgrepo.archives.one_folder import read_one_folder
from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.crate import differing, index_line, read_crate
from tests.support.crates import make_crate, make_manifest, pack

DEPENDENCIES = """
[features]
default = ["std"]
std = []
extra = ["dep:renamed", "log?/std"]

[lib]
proc-macro = true

[dependencies]
log = { version = "0.4", optional = true }
plain = "1.2"

[dependencies.renamed]
version = ">= 1, < 3"
package = "real"
optional = true
default-features = false
features = ["a"]
registry-index = "sparse+https://index.example/"

[dev-dependencies]
tested = "*"

[target.'cfg(unix)'.build-dependencies]
cc = "1"
"""


def test_the_line_of_the_index_is_that_of_its_manifest():
    crate = read_crate(make_crate("Demo", "1.0.0+b", DEPENDENCIES, rust_version="1.60", links="z"))
    assert (crate.name, crate.key, crate.version.key, crate.version.text) == ("Demo", "demo", "1.0.0", "1.0.0+b")
    line = crate.line
    assert {key: line[key] for key in ("name", "vers", "links", "rust_version", "v")} == {
        "name": "Demo",
        "vers": "1.0.0+b",
        "links": "z",
        "rust_version": "1.60",
        "v": 2,
    }
    assert line["features"] == {"default": ["std"], "std": []}
    assert line["features2"] == {"extra": ["dep:renamed", "log?/std"]}
    assert {each["name"]: (each["kind"], each["target"], each["req"]) for each in line["deps"]} == {
        "log": ("normal", None, "^0.4"),
        "plain": ("normal", None, "^1.2"),
        "renamed": ("normal", None, ">=1, <3"),
        "tested": ("dev", None, "*"),
        "cc": ("build", "cfg(unix)", "^1"),
    }
    (renamed,) = [each for each in line["deps"] if each["name"] == "renamed"]
    assert renamed["package"] == "real"
    assert renamed["registry"] == "sparse+https://index.example/"
    assert (renamed["optional"], renamed["default_features"], renamed["features"]) == (True, False, ["a"])
    assert crate.meta["dependencies"] == {"plain": "^1.2", "cc": "^1"}
    assert crate.meta["optionalDependencies"] == {"log": "^0.4", "real": ">=1, <3"}


def test_a_crate_without_new_features_has_a_line_of_the_first_version():
    assert read_crate(make_crate("demo", "1.0.0")).line == {
        "name": "demo",
        "vers": "1.0.0",
        "deps": [],
        "features": {},
    }


@pytest.mark.parametrize(
    ("more", "fields", "runs"),
    [("", {}, False), ("", {"build": "build.rs"}, True), ("\n[lib]\nproc-macro = true\n", {}, True)],
)
def test_a_build_script_and_a_macro_run_when_a_crate_is_built(more, fields, runs):
    assert read_crate(make_crate("demo", "1.0.0", more, **fields)).meta["runs"] is runs


def test_where_it_was_packed_from_is_shown_and_never_refuses_it():
    place = "demo-1.0.0/.cargo_vcs_info.json"
    sha = '{"git":{"sha1":"abc"},"path_in_vcs":"a"}'
    assert read_crate(make_crate("demo", "1.0.0", entries=[(place, sha.encode())])).meta["vcs"]["git"] == {
        "sha1": "abc"
    }
    assert "vcs" not in read_crate(make_crate("demo", "1.0.0", entries=[(place, b"[")])).meta


def test_tables_of_old_manifests_are_read():
    crate = read_crate(
        make_crate("demo", "1.0.0", '\n[dev_dependencies]\na = "1"\n[build_dependencies.b]\nversion="2"\n')
    )
    assert {each["name"]: each["kind"] for each in crate.line["deps"]} == {"a": "dev", "b": "build"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b"<html>", "not"),
        (pack([("demo-1.0.0/src/lib.rs", b"")]), "has no Cargo.toml"),
        (pack([("demo-1.0.0/Cargo.toml", b"\xff")]), "cannot be used"),
        (pack([("demo-1.0.0/Cargo.toml", b"[package")]), "no TOML"),
        (pack([("demo-1.0.0/Cargo.toml", b"[package]\nversion='1.0.0'\n")]), "missing required field `name`"),
        (pack([("demo-1.0.0/Cargo.toml", b"[package]\nname='demo'\nversion='1'\n")]), "MAJOR.MINOR.PATCH"),
        (make_crate("demo", "1.0.0", folder="other-1.0.0"), "is of demo 1.0.0"),
        (make_crate("demo", "1.0.0", folder="demo-1.0.1"), "is of demo 1.0.0"),
        (make_crate("demo", "1.0.0", entries=[("elsewhere/a", b"")]), "outside of its folder"),
        (make_crate("demo", "1.0.0", entries=[("demo-1.0.0/../a", b"")]), "plain relative path"),
        (make_crate("demo", "1.0.0", entries=[("/demo-1.0.0/a", b"")]), "plain relative path"),
        (make_crate("demo", "1.0.0", entries=[("demo-1.0.0/SRC/lib.rs", b"")]), "two entries"),
        (make_crate("demo", "1.0.0", entries=[("demo-1.0.0", b"")]), "outside of its folder"),
        (make_crate("demo", "1.0.0", '\n[dependencies]\n"a b" = "1"\n'), "invalid crate name"),
        (make_crate("demo", "1.0.0", "\n[dependencies]\na = 1\n"), "cannot be used"),
        (make_crate("demo", "1.0.0", "\n[features]\na = 'b'\n"), "cannot be used"),
        (pack([("demo-1.0.0/Cargo.toml", make_manifest("demo", "1.0.0").encode() + b"#" * 2**20)]), "more than"),
    ],
)
def test_what_is_no_crate_is_refused_with_the_reason(data, why):
    with pytest.raises(Invalid) as refused:
        read_crate(data)
    assert why in str(refused.value)


def with_link(target: str, kind: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("demo-1.0.0/link")
        info.type, info.linkname = kind, target
        tar.addfile(info)
    return gzip.compress(out.getvalue())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_links_are_refused(kind):
    with pytest.raises(Invalid, match="link"):
        read_crate(with_link("/etc/passwd", kind))


def test_a_bomb_is_refused_before_it_is_in_memory():
    data = make_crate("demo", "1.0.0", entries=[("demo-1.0.0/zeros", bytes(80 * 2**20))])
    with pytest.raises(Invalid, match="would unpack to more"):
        read_crate(data)


def test_only_what_is_wanted_is_read_of_a_folder():
    data = pack([("a/b", b"1"), ("a/c", b"22"), ("a/d/b", b"3")])
    assert read_one_folder(Source(data, "it"), {"b": 1, "c": 9, "e": 9}.get) == ("a", {"b": b"1", "c": b"22"})
    with pytest.raises(Invalid, match="more than 1 bytes"):
        read_one_folder(Source(data, "it"), {"c": 1}.get)
    with pytest.raises(Invalid, match="more than 2 bytes together"):
        read_one_folder(Source(data, "it"), {"b": 9, "c": 9}.get, most=2)
    with pytest.raises(Invalid, match="has a file 'a/c' of more than 1 bytes"):
        read_one_folder(Source(data, "it"), {}.get, largest=1)


def line(**more):
    base = {
        "name": "a",
        "req": "^1",
        "features": ["x", "y"],
        "optional": False,
        "default_features": True,
        "target": 'cfg(target_os="linux")',
        "kind": "normal",
        "registry": None,
    }
    return index_line("demo", "1.0.0", [{**base, **more}], {"f": ["a", "b"]}, None, None)


def test_lines_that_mean_the_same_do_not_differ():
    other = line(target='cfg(target_os = "linux")', features=["y", "x"], registry="sparse+https://i.example/")
    assert differing(other, line()) == []


@pytest.mark.parametrize(
    "more", [{"req": "^2"}, {"kind": "dev"}, {"optional": True}, {"target": None}, {"package": "b"}, {"features": []}]
)
def test_another_dependency_differs(more):
    assert differing(line(**more), line()) == ["dependencies"]


def test_other_fields_differ_by_name():
    sent = index_line("demo", "1.0.0", [], {"f": ["dep:a"]}, "z", "1.60")
    assert differing(sent, index_line("demo", "1.0.0", [], {}, None, None)) == ["features", "links", "rust-version"]


def test_a_crate_has_a_bounded_number_of_dependencies_and_features():
    with pytest.raises(Invalid, match="more than"):
        index_line("demo", "1.0.0", [{}] * 2001, {}, None, None)
    with pytest.raises(Invalid, match="more than"):
        index_line("demo", "1.0.0", [], {"f": ["a"] * 10_000}, None, None)
