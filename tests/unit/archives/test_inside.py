"""What an archive has inside that may do something to those who install it."""

from __future__ import annotations

import gzip
import io
import re
import zipfile

import pytest
import zstandard

from pkgrepo.archives import inside
from pkgrepo.archives.inside import Inside, Signs, look_inside
from pkgrepo.archives.licence_texts import UNKNOWN
from pkgrepo.errors import Invalid
from tests.support.conda_packages import make_conda
from tests.support.gems import make_gemspec, pack_gem
from tests.support.tarballs import make_tar, make_tar_gz

NOTHING = Signs()
RUNS = frozenset({"install_script"})
ELF = b"\x7fELF" + bytes(60)
PROGRAM = {"executable", "native_binary"}


def make_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("a.txt", b"hello", set()),
        ("a", b"", set()),
        ("a", b"#!/bin/sh\n", {"executable"}),
        ("a.bat", b"echo\r\n", {"executable"}),
        ("a", ELF, PROGRAM),
        ("a.png", ELF, PROGRAM),
        ("liba.so.1.2", ELF, {"native_binary"}),
        ("a.node", ELF, {"native_binary"}),
        ("a.exe", b"MZ\x90\x00" + bytes(60), PROGRAM),
        ("a.txt", b"MZ begins this text", set()),
        ("a.a", b"!<arch>\nmore", {"native_binary"}),
        ("a.dylib", b"\xcf\xfa\xed\xfe" + bytes(60), {"native_binary"}),
        ("a", b"\xca\xfe\xba\xbe\x00\x00\x00\x02" + bytes(60), PROGRAM),
        ("A.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x34" + bytes(60), set()),
    ],
)
def test_programs_and_machine_code_are_told_by_their_first_bytes(name: str, data: bytes, found: set[str]) -> None:
    archives = {
        "x.tgz": make_tar_gz({name: data}),
        "x.whl": make_zip({name: data}),
        "y.whl": make_zip({name: data}, zipfile.ZIP_STORED),
        "x.gem": pack_gem(make_gemspec(), data=gzip.compress(make_tar([(name, data)]))),
    }
    assert {each: look_inside(body, each, NOTHING).words for each, body in archives.items()} == dict.fromkeys(
        archives, found
    )


def test_the_head_of_a_long_member_is_read_without_all_of_it() -> None:
    data = ELF + bytes(range(256)) * 40_000
    assert look_inside(make_zip({"long": data, "after": b"#!x"}), "x.whl", NOTHING).words == PROGRAM
    assert look_inside(make_tar_gz({"long": data, "after": b"text"}), "x.tgz", NOTHING).words == PROGRAM


def test_both_archives_of_a_conda_package_are_looked_into() -> None:
    found = look_inside(make_conda("x", "1", "0", payload=[("bin/x", ELF)]), "x-1-0.conda", NOTHING).words
    assert found == PROGRAM


def test_names_and_texts_say_what_a_format_knows() -> None:
    signs = Signs(
        names=[(re.compile(r"\.pth$"), "pth")],
        texts=[(re.compile(r"^p/run$"), lambda data: Inside(RUNS if data == b"yes" else frozenset()))],
    )
    assert look_inside(make_tar_gz({"p/a.pth": b"", "p/run": b"no"}), "x.tgz", signs).words == {"pth"}
    assert look_inside(make_tar_gz({"p/run": b"yes"}), "x.tgz", signs).words == {"install_script"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.tgz", b"no archive"),
        ("x.tgz", make_tar_gz({"a": b"b"})[:-20]),
        ("x.whl", make_zip({"a": ELF * 100})[:-30]),
        ("x.exe", ELF),
    ],
)
def test_nothing_is_said_of_what_cannot_be_read_to_its_end(name: str, data: bytes) -> None:
    with pytest.raises(Invalid):
        look_inside(data, name, NOTHING)


def test_licences_are_those_of_files_at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    mit = b"Permission is hereby granted, free of charge, to any person obtaining a copy"
    files = {"LICENSE": mit, "COPYING": b"mine", "deep/LICENSE": b"GNU General Public License Version 3", "a.txt": mit}
    for name, data in {"x.tgz": make_tar_gz(files), "x.whl": make_zip(files)}.items():
        assert look_inside(data, name, NOTHING).shape.licences == (UNKNOWN, "MIT")
    assert look_inside(make_tar_gz({"a": b"b"}), "x.tgz", NOTHING).shape.licences == ()
    long = {"LICENSE": mit + b"x" * 1024 * 1024, "b": b"#!"}
    found = look_inside(make_tar_gz(long), "x.tgz", NOTHING)
    assert (found.shape.licences, found.words) == (("MIT",), {"executable"})
    monkeypatch.setattr(inside, "MOST_FILES", 3)
    many = {f"LICENSE-{number}": mit for number in range(5)}
    assert look_inside(make_tar_gz(many), "x.tgz", NOTHING).shape.licences == (UNKNOWN, "MIT")


def test_a_conda_package_has_two_archives_to_unpack() -> None:
    inner = zstandard.compress(make_tar([("a", b"x")]))
    two = {f"{name}-x-1-0.tar.zst": inner for name in ("info", "pkg")}
    assert look_inside(make_zip(two, zipfile.ZIP_STORED), "x-1-0.conda", NOTHING).words == set()
    with pytest.raises(Invalid, match="more than two"):
        look_inside(make_zip({**two, "pkg-y-1-0.tar.zst": inner}, zipfile.ZIP_STORED), "x-1-0.conda", NOTHING)


def test_a_bomb_is_not_unpacked_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "MOST", 1024 * 1024)
    with pytest.raises(Invalid, match="unpacks to more than"):
        look_inside(make_tar_gz({"a": bytes(2 * 1024 * 1024), "b": b"#!"}), "x.tgz", NOTHING)
