"""Reading members of archives of which not all bytes are there."""

from __future__ import annotations

from random import Random

import pytest

from pkgrepo.archives.source import PartialSource, PartMissing
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from tests.support.python_packages import make_zip

DATA = bytes(range(100))


def test_parts_are_joined_and_the_first_missing_one_is_named() -> None:
    source = PartialSource(100, "some.zip")
    source.add(10, DATA[10:20])
    source.add(15, DATA[15:30])
    source.add(40, DATA[40:])
    assert source.read(12, 15) == DATA[12:27]
    assert source.read(40, 60) == DATA[40:]
    assert source.read(5, 0) == b""
    for wanted, missing in (((0, 5), (0, 5)), ((5, 10), (5, 10)), ((25, 30), (30, 40)), ((30, 2), (30, 32))):
        with pytest.raises(PartMissing) as caught:
            source.read(*wanted)
        assert (caught.value.start, caught.value.end) == missing
    with pytest.raises(Invalid):
        source.read(90, 11)


def test_selected_member_is_read_without_the_others() -> None:
    members = {f"f{number}": Random(number).randbytes(5000) for number in range(50)}
    data = make_zip(members)
    source = PartialSource(len(data), "some.zip")
    missing: list[tuple[int, int]] = []
    while True:
        try:
            found = ZipArchive(source, lambda _: ["f10"]).read("f10", 5000)
        except PartMissing as error:
            missing.append((error.start, error.end))
            source.add(error.start, data[error.start : error.end])
        else:
            break
    assert found == members["f10"]
    assert min(missing)[0] > 0, "the members before it are not read"
    assert sum(end - start for start, end in missing) < len(data) // 2


def test_local_header_of_the_selected_member_is_checked() -> None:
    data = make_zip({"first": b"1", "second": b"2"})
    broken = data.replace(b"PK\x03\x04", b"PK\x00\x00", 1)  # of the first
    assert ZipArchive(full(broken), lambda _: ["second"]).read("second", 10) == b"2"
    with pytest.raises(Invalid):
        ZipArchive(full(broken), lambda _: ["first"])


def full(data: bytes) -> PartialSource:
    source = PartialSource(len(data), "some.zip")
    source.add(0, data)
    return source
