"""Files that are what their names say, and sentences that are not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib

import pytest
import zstandard

from pkgrepo.archives.kinds import HEAD, check_kind
from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from tests.support.gems import make_gem

SENTENCE = b"Access denied by policy. Please log in to the portal.\n"
PAGE = b"<!DOCTYPE html>\n<html><body>Log in</body></html>\n"


def make_zip(prefix: bytes = b"", comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    out.write(prefix)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr("a", b"x" * 1000)
        archive.comment = comment
    return out.getvalue()


def make_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("package/package.json"))
    return out.getvalue()


ZIP = make_zip()
POM = b"<project><modelVersion>4.0.0</modelVersion></project>"

RIGHT = [
    *[(f"a-1.0{ending}", ZIP) for ending in (".jar", ".war", ".aar", ".whl", ".egg", ".zip", ".conda", ".JAR")],
    ("a.jar", make_zip(prefix=b"#!/bin/sh\nexec java -jar $0\n")),
    ("a.jar", make_zip(comment=b"c" * 0xFFFF)),
    ("a.jar", b"PK\x05\x06" + bytes(18)),
    ("a-1.0.tgz", gzip.compress(make_tar())),
    ("a-1.0.tgz", make_tar()),
    ("a-1.0.tar.gz", gzip.compress(b"x")),
    ("a-1.0.tar.bz2", bz2.compress(b"x")),
    ("a-1.0.tar.xz", lzma.compress(b"x")),
    ("a.tar.zst", zstandard.compress(b"x")),
    ("a-1.0.gem", make_gem("a")),
    ("a-1.0.gemspec.rz", zlib.compress(b"x", 9)),
    ("a-1.0.pom", POM),
    ("a-1.0.pom", b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- <html> -->\n<!DOCTYPE project>\n<m:project xmlns:m="x"/>'),
    ("a-1.0.pom", POM.decode().encode("utf-16")),
    ("a-1.0.pom", b"<!--" + b"a" * HEAD + b"-->" + POM),
    ("ivy.xml", b"<ivy-module/>"),
    ("a-1.0.jar.asc", b"-----BEGIN PGP SIGNATURE-----\n"),
    ("a-1.0.module", b'{"formatVersion": "1.1"}'),
    ("a.whl.provenance", b' {"version": 1}'),
    ("a.whl.metadata", b"Metadata-Version: 2.1\nName: a\n"),
    ("a-1.0.txt", SENTENCE),
    ("a", b"x"),
]
NAMES = sorted({name.lower() for name, _ in RIGHT} - {"a", "a-1.0.txt"})


@pytest.mark.parametrize(("name", "content"), RIGHT)
def test_what_a_name_says_is_taken(name: str, content: bytes) -> None:
    check_kind(Source(content, "its file"), name)


@pytest.mark.parametrize("content", [SENTENCE, PAGE, b'"Forbidden"', b"\x00", SENTENCE * 10_000], ids=len)
@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_is_refused(name: str, content: bytes) -> None:
    with pytest.raises(Invalid, match=r"its file is not .*, as its name says"):
        check_kind(Source(content, "its file"), name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jar", ZIP[:-30]),
        ("a.jar", ZIP[-23:]),  # the end record without what it names
        ("a.jar", b"PK\x03\x04" + SENTENCE),
        ("a.pom", b"<html><body/></html>"),
        ("a.pom", b"<projects/>"),
        ("a.pom", b'<?xml version="1.0"?>'),
    ],
)
def test_what_only_looks_like_it_is_refused(name: str, content: bytes) -> None:
    with pytest.raises(Invalid):
        check_kind(Source(content, "its file"), name)


@pytest.mark.parametrize("name", [*NAMES, "a.txt", "a"])
def test_no_file_is_empty(name: str) -> None:
    with pytest.raises(Invalid, match="its file is empty"):
        check_kind(Source(b"", "its file"), name)


def test_large_files_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    path = tmp_path / "large.jar"
    with path.open("wb") as file:
        file.truncate(1_000_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"PK\x05\x06" + bytes(18))
    read = 0
    pread = os.pread

    def counting(descriptor: int, count: int, offset: int) -> bytes:
        nonlocal read
        read += count
        return pread(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counting)
    with path.open("rb") as file:
        check_kind(Source(file.fileno(), "its file"), "large.jar")
    assert 0 < read <= 0x10000 + 22
