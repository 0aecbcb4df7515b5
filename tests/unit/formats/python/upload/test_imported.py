"""What of another index is no distribution at all."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.python.upload.imported import _read
from tests.support.python_packages import make_sdist, make_wheel


def read(filename: str, data: bytes):
    return _read(data, parse_filename(filename, eggs=True))


def odd_tar() -> bytes:
    """An archive that an upload would be refused for, and that every program unpacks."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("/absolute"), io.BytesIO())
    return out.getvalue()


def odd_zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("odd.py", b"")
    return out.getvalue()


@pytest.mark.parametrize(
    ("filename", "data"),
    [
        ("demo-1.0-py3-none-any.whl", b"no zip"),
        ("demo-1.0-py3-none-any.whl", make_wheel("demo", "1.0")[1][:-30]),
        ("demo-1.0-py3.11.egg", b""),
        ("demo-1.0.zip", b"no zip"),
        ("demo-1.0.tar.gz", make_sdist("demo", "1.0")[1][:-20]),
        ("demo-1.0.tar.gz", gzip.compress(b"")),
        ("demo-1.0.tar.gz", b"<html>"),
        ("demo-1.0.tar.bz2", b"BZh9"),
    ],
)
def test_what_nobody_can_unpack_is_refused(filename: str, data: bytes) -> None:
    with pytest.raises(Invalid, match="cannot be unpacked"):
        read(filename, data)


@pytest.mark.parametrize(
    ("filename", "data"),
    [("demo-1.0-py3-none-any.whl", odd_zip()), ("demo-1.0.tar.gz", odd_tar()), ("demo-1.0.zip", odd_zip())],
)
def test_what_is_only_odd_is_taken(filename: str, data: bytes) -> None:
    assert read(filename, data).odd


MIB = 1024 * 1024


def member(kind: bytes, size: int, name: str = "x") -> bytes:
    """The header of a member of a tar file, without its content."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def long_name() -> bytes:
    return member(tarfile.GNUTYPE_LONGNAME, 8 * MIB) + bytes(8 * MIB)


def old_sparse() -> bytes:
    """A sparse file whose map goes on and on."""
    info = bytearray(member(tarfile.GNUTYPE_SPARSE, 0))
    info[482] = 1
    info[148:156] = b"%06o\0 " % (sum(info) - sum(info[148:156]) + 8 * 32)
    return bytes(info) + (b"00000000001\0" * 42 + b"\x01" + bytes(7)) * (2 * MIB // 512)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("make", [long_name, old_sparse])
def test_headers_of_a_member_that_are_too_large_are_refused(
    make: Callable[[], bytes], pack: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(Invalid, match="headers of more than"):
        read("demo-1.0.tar.gz", pack(make()))


def test_members_that_are_read_are_not_kept() -> None:
    data = gzip.compress(member(tarfile.REGTYPE, 0) * 30_000, 1)
    tracemalloc.start()
    try:
        assert read("demo-1.0.tar.gz", data).odd
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


def test_a_zip_file_with_too_large_a_directory_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(300):
            info = zipfile.ZipInfo(f"{number}.py")
            info.comment = bytes(60_000)
            archive.writestr(info, b"")
    with pytest.raises(Invalid, match="a directory of more than"):
        read("demo-1.0.zip", out.getvalue())


def test_an_xz_file_that_needs_too_much_memory_is_refused() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * MIB}]
    data = lzma.compress(gzip.decompress(odd_tar()), filters=filters)
    with pytest.raises(Invalid, match=r"[Mm]emory"):
        read("demo-1.0.tar.xz", data)


def test_an_xz_file_may_have_several_streams_and_padding() -> None:
    tar = gzip.decompress(odd_tar())
    assert read("demo-1.0.tar.xz", lzma.compress(tar[:700]) + bytes(8) + lzma.compress(tar[700:])).odd
    with pytest.raises(Invalid, match="ends too early"):
        read("demo-1.0.tar.xz", lzma.compress(tar)[:-20])
