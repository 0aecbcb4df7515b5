"""What of another index is no distribution at all."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

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
