"""Module zips and go.mod files: what is read of them, and what is refused."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping

import pytest

from pkgrepo.archives.module_zip import h1_of_mod
from pkgrepo.errors import Invalid
from pkgrepo.formats.go import archive
from pkgrepo.formats.go.archive import read_module
from tests.support.go_modules import go_mod, make_module, module_files, raw_zip

X, V = "example.com/Demo/lib", "v1.0.0"
TOP = f"{X}@{V}/"
MOD = go_mod(X)


def test_the_hashes_are_those_of_the_go_command() -> None:
    # as go 1.26 wrote them into go.sum
    files = {
        "go.mod": b"module example.com/Demo/lib\n\ngo 1.20\n",
        "lib.go": b'package lib\n\nfunc Hello() string { return "hi" }\n',
    }
    found = read_module(make_module(X, V, files))
    assert (found.module, found.version, found.go_mod) == (X, V, files["go.mod"])
    assert found.h1 == found.meta["h1"] == "h1:T2EUUOIFH4ZDdaGdCZmI/tHAGzURiHTDu3oV657YW/c="
    assert h1_of_mod(found.go_mod) == "h1:g8lUzu/Upv66hUrCs5Ni7s0AY5Sq6FUvOkRW4KJFeig="


def test_the_hash_depends_on_content_alone() -> None:
    files = module_files(X)
    turned = dict(reversed(files.items()))
    assert read_module(make_module(X, V, files)).h1 == read_module(make_module(X, V, turned, stored=True)).h1


def test_a_module_without_go_mod_gets_one() -> None:
    found = read_module(make_module("example.com/old", "v2.0.0+incompatible", {"old.go": b"package old\n"}))
    assert found.go_mod == b"module example.com/old\n"
    assert found.version == "v2.0.0+incompatible"


def test_licence_and_readme_are_found() -> None:
    files = {**module_files(X), "README.md": b"# Demo\n", "docs/README.md": b"other"}
    assert read_module(make_module(X, V, files, licence="MIT")).meta == {
        "go": "1.20",
        "h1": read_module(make_module(X, V, files, licence="MIT")).h1,
        "readme": "# Demo\n",
        "license": "MIT",
    }


def test_folders_are_no_files() -> None:
    entries: list[tuple[str | zipfile.ZipInfo, bytes]] = [(f"{TOP}go.mod", MOD), (f"{TOP}sub/", b""), (TOP, b"")]
    assert read_module(raw_zip(entries)).h1 == read_module(raw_zip(entries[:1])).h1


def linked() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(f"{TOP}link.go")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"go.mod": go_mod("example.com/other")}, "go.mod of 'example.com/other'"),
        ({"go.mod": b"go 1.20\n"}, "names no module"),
        ({"go.mod": MOD, "sub/go.mod": go_mod(f"{X}/sub")}, "only go.mod"),
        ({"GO.MOD": MOD}, "only go.mod"),
        ({"go.mod": MOD, "A.go": b"a", "a.go": b"b"}, "one name without case"),
        ({"go.mod": MOD, "A/x.go": b"a", "a/y.go": b"b"}, "one name without case"),
        ({"go.mod": MOD, "a": b"a", "a/y.go": b"b"}, "one name without case"),
        ({"go.mod": MOD, "a:b.go": b"a"}, "not all systems"),
        ({"go.mod": MOD, "aux.go": b"a"}, "not all systems"),
        ({"go.mod": MOD, "a./b.go": b"a"}, "not all systems"),
        ({"go.mod": MOD, "a*.go": b"a"}, "not all systems"),
        ({"go.mod": MOD, "../../x.go": b"a"}, "not a plain relative path"),
    ],
)
def test_zips_that_clients_would_refuse(files: Mapping[str, bytes], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        read_module(make_module(X, V, files))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "zip"),
        (b"<html>", "zip"),
        (make_module(X, V)[:-30], "zip"),
        (raw_zip([("go.mod", MOD)]), "below MODULE@VERSION"),
        (raw_zip([(f"{TOP}go.mod", MOD), ("example.com/other@v1.0.0/x.go", b"")]), "not below"),
        (raw_zip([(f"{TOP}go.mod", MOD), ("/etc/passwd", b"")]), "not a plain relative path"),
        (raw_zip([(f"{TOP}go.mod", MOD), (linked(), b"/etc/passwd")]), "link"),
        (make_module(X, "v2.0.0"), "major version"),
        (make_module(X, "1.0.0"), "no version"),
        (make_module("demo", V), "no module path"),
        (make_module(f"{X}/v2", "v2.0.0", {"x.go": b""}), "has no go.mod"),
        (make_module(X, "v2.0.0+incompatible"), "not \\+incompatible"),
    ],
)
def test_what_is_no_module_zip(data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        read_module(data)


def test_two_entries_of_one_name_are_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        data = raw_zip([(f"{TOP}go.mod", MOD), (f"{TOP}a.go", b"1"), (f"{TOP}a.go", b"2")])
    with pytest.raises(Invalid):
        read_module(data)


def test_bombs_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_module(X, V, {"go.mod": MOD, "zeros": bytes(100 * 1024 * 1024)})
    with pytest.raises(Invalid, match="unpack"):
        read_module(data)
    monkeypatch.setattr(archive, "LARGEST", 1000)
    with pytest.raises(Invalid, match="more than 1000 bytes"):
        read_module(make_module(X, V, {"go.mod": MOD, "large": bytes(2000)}))


def test_a_damaged_entry_is_refused() -> None:
    data = bytearray(make_module(X, V, {"go.mod": MOD, "a.go": b"package lib // some text"}, stored=True))
    at = data.index(b"some text")
    data[at : at + 4] = b"evil"
    with pytest.raises(Invalid, match="damaged"):
        read_module(bytes(data))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as broken:
        assert broken.testzip() is not None


def test_what_a_go_mod_says_is_the_metadata_of_its_version() -> None:
    more = "\nrequire a.b/c v1.0.0\nretract (\n\tv0.5.0 // broken\n)\n"
    content = b"// Deprecated: use another\n" + go_mod(X, more=more)
    meta = read_module(make_module(X, V, {"go.mod": content})).meta
    assert {key: value for key, value in meta.items() if key != "h1"} == {
        "dependencies": {"a.b/c": "v1.0.0"},
        "go": "1.20",
        "deprecated": "use another",
        "retract": ["v0.5.0 (broken)"],
    }
