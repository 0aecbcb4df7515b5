"""Tar archives written by Python's tarfile are read; archives with ambiguous headers are refused."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from pkgrepo.archives.source import LIMITS, ArchiveLimits, Source
from pkgrepo.archives.streams import Gunzip, PlainStream
from pkgrepo.archives.tar_archive import BLOCK, EXTENDED_SIZE, Member, Tar
from pkgrepo.errors import Invalid

LONG = "folder/" + "n" * 300 + ".txt"


def make(*entries: tuple[str, Any], format: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive. The value of an entry is its content as bytes, or a dict of header fields."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=format) as archive:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                for field, value in content.items():
                    setattr(info, field, value)
                archive.addfile(info)
    return target.getvalue()


def opened(data: bytes, limits: ArchiveLimits = LIMITS) -> Tar:
    source = Source(gzip.compress(data), "x.tgz", limits)
    return Tar(source, Gunzip(source))


def members(data: bytes, limits: ArchiveLimits = LIMITS) -> list[Member]:
    return list(opened(data, limits))


def contents(data: bytes) -> Iterator[tuple[str, bytes]]:
    archive = opened(data)
    for member in archive:
        yield member.name, archive.read(10**6)


def header(data: bytes, at: int = 0, **fields: bytes) -> bytes:
    """The archive with fields of the header at an offset changed, and its checksum corrected."""
    places = {"name": 0, "size": 124, "checksum": 148, "kind": 156, "magic": 257, "prefix": 345}
    block = bytearray(data[at : at + BLOCK])
    for field, value in fields.items():
        block[places[field] : places[field] + len(value)] = value
    if "checksum" not in fields:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return data[:at] + bytes(block) + data[at + BLOCK :]


def pax(*records: bytes, kind: bytes = b"x") -> bytes:
    """An archive with a file after an extended header with these records."""
    data = b"".join(records)
    extended = make(("pax", data), format=tarfile.USTAR_FORMAT)[: BLOCK + -(-len(data) // BLOCK) * BLOCK]
    return header(extended, kind=kind) + make(("file", b"data"), format=tarfile.USTAR_FORMAT)


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_come_in_order_with_their_content(format: int) -> None:
    data = make(("a", b""), ("b/c", b"x" * 511), ("d", b"y" * 512), ("e", b"z" * 513), format=format)
    assert list(contents(data)) == [("a", b""), ("b/c", b"x" * 511), ("d", b"y" * 512), ("e", b"z" * 513)]
    assert [member.size for member in members(data)] == [0, 511, 512, 513]  # also when none is read


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_links_apply_to_the_next_entry_only(format: int) -> None:
    link = {"type": tarfile.SYMTYPE, "linkname": "../" + "t" * 200}
    found = members(make((LONG, b"1"), ("link", link), ("plain", b"2"), format=format))
    assert found == [
        Member(LONG, 1),
        Member("link", 0, is_symbolic=True, link="../" + "t" * 200),
        Member("plain", 1),
    ]


def test_a_name_may_be_in_two_parts() -> None:
    name = "p" * 120 + "/" + "n" * 90
    assert [each.name for each in members(make((name, b""), format=tarfile.USTAR_FORMAT))] == [name]


def test_folders_and_links_are_not_files() -> None:
    found = members(
        make(
            ("folder", {"type": tarfile.DIRTYPE}),
            ("hard", {"type": tarfile.LNKTYPE, "linkname": "file"}),
            ("soft", {"type": tarfile.SYMTYPE, "linkname": "file"}),
            ("file", b"x"),
        )
    )
    assert [(each.is_folder, each.is_symbolic, each.link, each.is_file) for each in found] == [
        (True, False, "", False),
        (False, False, "file", False),
        (False, True, "file", False),
        (False, False, "", True),
    ]
    old = header(make(("old/", b""), format=tarfile.USTAR_FORMAT), kind=b"\0", name=b"old/")
    assert members(old)[0].is_folder  # formats before POSIX mark folders with a slash at the end


def test_a_pax_size_applies_to_the_next_entry() -> None:
    data = header(pax(b"9 size=4\n"), at=2 * BLOCK, size=b"00000000000\0")
    assert list(contents(data)) == [("file", b"data")]


def test_a_size_in_binary_is_read() -> None:
    data = header(make(("file", b"data")), size=b"\x80" + (4).to_bytes(11, "big"))
    assert list(contents(data)) == [("file", b"data")]


FILE = make(("file", b"data"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (FILE[:100], "is truncated"),
        (FILE[: BLOCK + 2], "is truncated"),
        (FILE[: BLOCK + 4], "is truncated"),
        (header(FILE, checksum=b"000001\0 "), "is not a tar archive, or is damaged"),
        (b"x" * BLOCK * 4, "is not a tar archive, or is damaged"),
        (header(FILE, size=b"12x"), "has an entry with a malformed size"),
        (FILE + b"hidden", "has data after the end of its tar archive"),
        (header(FILE, magic=b"\0" * 6, prefix=b"prefix"), "some readers take for a longer name"),
        (header(FILE, kind=tarfile.DIRTYPE), "has a folder or link 'file' with content"),
        (header(FILE, kind=b"3"), "that is a device"),
        (header(FILE, kind=b"4"), "that is a device"),
        (header(FILE, kind=b"6"), "that is a named pipe"),
        (header(FILE, kind=b"S"), "that is a sparse file"),
        (header(FILE, kind=b"M"), "that is the rest of a file"),
        (header(FILE, kind=b"Q"), "that is of an unknown type"),
        (header(FILE, kind=tarfile.SYMTYPE), "that is of an unknown type"),  # a link to nowhere
        (pax(b"9 size=x\n"), "has an entry with a malformed size"),
        (pax(b"29 size=" + b"1" * 20 + b"\n"), "is truncated"),
        (pax(b"29 size=" + b"1" * 21 + b"\n"), "has a malformed pax header"),
        (pax(b"30 size=" + b"1" * 21 + b"\n"), "has an entry with a malformed size"),
        (pax(b"9 path=a\n"[:-1]), "has a malformed pax header"),
        (pax(b"9 path=a\n9 path=b\n"), "say the same thing twice"),
        (pax(b"8 path a\n"), "has a malformed pax header"),
        (pax(b"9 path=ab"), "has a malformed pax header"),
        (pax(b"x path=a\n"), "has a malformed pax header"),
        (pax(b"0 path=a\n"), "has a malformed pax header"),
        (pax(b"22 GNU.sparse.major=1\n"), "is a sparse file"),
        (pax(b"9 path=a\n", kind=b"g"), "a global header that says the path"),
        (pax(b"9 size=4\n", kind=b"g"), "a global header that says the size"),
        (pax(b"14 linkpath=a\n", kind=b"g"), "a global header that says the linkpath"),
        (pax(b"8 path=\n"), "an extended header with an empty path"),
        (pax(b"13 linkpath=\n"), "an extended header with an empty linkpath"),
        (pax(b"x" * (EXTENDED_SIZE + 1)), f"more than {EXTENDED_SIZE} bytes where less is allowed"),
    ],
)
def test_an_archive_that_programs_read_differently_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(Invalid, match=f"^x.tgz .*{sentence}"):
        members(data)


def test_a_content_longer_than_allowed_is_refused() -> None:
    archive = opened(FILE)
    next(iter(archive))
    with pytest.raises(Invalid, match="more than 3 bytes"):
        archive.read(3)


def test_limits_are_exact() -> None:
    limits = ArchiveLimits(free_entries=3, entry_size=10**6)
    assert len(members(make(*((str(each), b"") for each in range(3))), limits)) == 3
    with pytest.raises(Invalid, match="more than 3 entries"):
        members(make(*((str(each), b"") for each in range(4))), limits)
    with pytest.raises(Invalid, match="more than 6 headers"):
        members(b"".join(pax(b"7 a=bc\n")[: 2 * BLOCK] for _ in range(7)) + FILE, limits)
    with pytest.raises(Invalid, match="more than 30 pax records"):
        members(pax(*[b"7 a=bc\n"] * 31), limits)
    assert members(pax(*[b"7 a=bc\n"] * 30), limits)
    with pytest.raises(Invalid, match="names of more than 5 bytes"):
        members(make(("abc", b""), ("def", b"")), ArchiveLimits(names=5))
    assert members(make(("abc", b""), ("de", b"")), ArchiveLimits(names=5))
    with pytest.raises(Invalid, match="extended headers of more than 6 bytes"):
        members(pax(b"7 a=bc\n"), ArchiveLimits(extended=6))
    with pytest.raises(Invalid, match="a name of more than 3 bytes"):
        members(make(("abcd", b"")), ArchiveLimits(longest_name=3))


def test_the_largest_packages_of_icons_fit() -> None:
    """50,000 files of about 50 bytes, with 40 bytes of tarball per file; real packages of icons have 44 and more."""
    noise = random.Random(7)
    files = [(f"package/esm/Icon{number}.js", noise.randbytes(16).hex().encode()) for number in range(50_000)]
    data = make(*files, format=tarfile.USTAR_FORMAT)
    packed = gzip.compress(data, 6)
    assert len(packed) < 45 * len(files)
    source = Source(packed, "icons.tgz")
    assert sum(1 for _ in Tar(source, Gunzip(source))) == len(files)


@pytest.mark.parametrize("packed", [True, False])
def test_members_of_any_size_are_read_in_pieces_packed_or_not(packed: bool) -> None:
    entries = [
        ("empty", b""),
        ("small", b"x" * 100),
        ("piece", bytes(LIMITS.piece)),
        ("more", random.Random(1).randbytes(2 * LIMITS.piece + 1)),
    ]
    data = make(*entries)
    archive = opened(data) if packed else plain(data)
    found = []
    for member in archive:
        pieces = list(archive.pieces())
        assert all(0 < len(piece) <= LIMITS.piece for piece in pieces)
        found.append((member.name, b"".join(pieces)))
    assert found == entries


def plain(data: bytes) -> Tar:
    source = Source(data, "x.tar")
    return Tar(source, PlainStream(source))


def test_pieces_that_were_not_read_are_skipped() -> None:
    archive = plain(make(("one", bytes(3 * LIMITS.piece)), ("two", b"2")))
    found = {member.name: next(archive.pieces()) for member in archive}
    assert found == {"one": bytes(LIMITS.piece), "two": b"2"}


def test_a_plain_archive_that_is_truncated_is_refused() -> None:
    data = make(("one", bytes(3 * LIMITS.piece)))
    archive = plain(data[: 2 * LIMITS.piece])
    with pytest.raises(Invalid, match="truncated"):
        _ = [list(archive.pieces()) for _ in archive]


def test_a_plain_archive_with_data_after_its_end_is_refused() -> None:
    with pytest.raises(Invalid, match="after the end"):
        list(plain(make(("one", b"1")) + bytes(LIMITS.piece) + b"x"))
