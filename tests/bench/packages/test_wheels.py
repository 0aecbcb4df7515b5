"""The synthetic wheels are what they claim to be."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.python.upload.inspection import inspect
from tests.bench.packages.filler import BLOCK
from tests.bench.packages.wheels import Wheel, wheels

SIZES = [0, 8000, BLOCK, 2 * BLOCK + 17]


@pytest.mark.parametrize("padding", SIZES)
def test_a_wheel_is_a_zip_whose_record_lists_the_true_digest_of_every_member(padding: int) -> None:
    archive = zipfile.ZipFile(io.BytesIO(Wheel("bench-a", "1.0.1", padding).read()))
    assert archive.testzip() is None
    record = "bench_a-1.0.1.dist-info/RECORD"
    rows = {name: (digest, size) for name, digest, size in csv.reader(archive.read(record).decode().splitlines())}
    assert set(rows) == set(archive.namelist())
    for name in set(rows) - {record}:
        data = archive.read(name)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert rows[name] == (f"sha256={digest}", str(len(data)))


@pytest.mark.parametrize("padding", SIZES)
def test_size_and_digest_are_those_of_the_bytes(padding: int) -> None:
    wheel = Wheel("bench-a", "1.0.1", padding)
    data = wheel.read()
    assert (wheel.size, wheel.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_the_server_accepts_a_wheel_and_reads_its_metadata(tmp_path: Path) -> None:
    wheel = Wheel("bench-a", "1.0.1", 8000)
    descriptor = os.open(wheel.ensure(tmp_path), os.O_RDONLY)
    try:
        inspected = inspect(descriptor, parse_filename(wheel.filename))
    finally:
        os.close(descriptor)
    assert inspected.metadata_bytes == wheel.metadata


def test_sizes_that_need_zip64_are_found_by_a_reader_of_zips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1000)
    archive = zipfile.ZipFile(io.BytesIO(Wheel("bench-a", "1.0.1", 50_000).read()))
    assert archive.testzip() is None
    assert archive.getinfo("bench_a/padding.bin").file_size == 50_000


def test_wheels_of_one_project_differ_in_version_and_content() -> None:
    made = wheels("bench-a", 3)
    assert [wheel.version for wheel in made] == ["1.0.0", "1.0.1", "1.0.2"]
    assert len({wheel.sha256 for wheel in made}) == 3


def test_a_file_that_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    wheel = Wheel("bench-a", "1.0.1")
    path = wheel.ensure(tmp_path)
    before = path.stat()
    assert wheel.ensure(tmp_path).stat().st_ino == before.st_ino
    path.write_bytes(b"cut short")
    assert wheel.ensure(tmp_path).read_bytes() == wheel.read()
