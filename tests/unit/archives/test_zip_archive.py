"""Zip archives that all programs read alike are read; all others are refused."""

import io
import os
import random
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pkgrepo.archives.source import LIMITS, ArchiveLimits, Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from tests.support.python_packages import make_zip

MEMBERS = {"a.txt": b"first" * 100, "b/c.txt": b"second" * 100}


@pytest.fixture(params=["file", "memory"])
def open_zip(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., ZipArchive]]:
    descriptors: list[int] = []

    def open_(data: bytes, limits: ArchiveLimits = LIMITS) -> ZipArchive:
        if request.param == "memory":
            return ZipArchive(Source(data, "x.zip", limits))
        path = tmp_path / "x.zip"
        path.write_bytes(data)
        descriptors.append(os.open(path, os.O_RDONLY))
        return ZipArchive(Source(descriptors[-1], "x.zip", limits))

    yield open_
    for descriptor in descriptors:
        os.close(descriptor)


Open = Callable[..., ZipArchive]


def patch(data: bytes, signature: bytes, offset: int, value: bytes, *, last: bool = False) -> bytes:
    """Overwrite a field of the first (or last) record with that signature."""
    at = (data.rindex(signature) if last else data.index(signature)) + offset
    return data[:at] + value + data[at + len(value) :]


def raw_zip(*members: tuple[str, bytes], **info: int) -> bytes:
    """A zip file of these members, even with equal names; ``info`` sets fields of every ZipInfo."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members:
            entry = zipfile.ZipInfo("placeholder")
            entry.filename = name
            for field, value in info.items():
                setattr(entry, field, value)
            archive.writestr(entry, content)
    return target.getvalue()


class Unseekable(io.BytesIO):
    """A file object that makes zipfile write data descriptors."""

    def seekable(self) -> bool:
        return False

    def seek(self, *args: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
PLAIN = make_zip(MEMBERS)


def test_plain_archive_is_read(open_zip: Open) -> None:
    archive = open_zip(PLAIN)
    assert list(archive.entries) == list(MEMBERS)
    for name, content in MEMBERS.items():
        assert archive.read(name, len(content)) == content
    assert archive.read("missing", 10) is None


def test_empty_archive_is_read(open_zip: Open) -> None:
    assert open_zip(make_zip({})).entries == {}


def test_folders_stored_members_and_unicode_names_are_read(open_zip: Open) -> None:
    archive = open_zip(raw_zip(("d/", b""), ("d/ä€.txt", b"x" * 10), ("d/empty", b"")))
    assert archive.entries["d/"].is_folder
    assert archive.read("d/ä€.txt", 10) == b"x" * 10
    assert archive.read("d/empty", 0) == b""


@pytest.mark.parametrize("zip64", [False, True])
def test_archive_with_descriptors_is_read(open_zip: Open, zip64: bool) -> None:
    target = Unseekable()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS.items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(content)
    read = open_zip(target.getvalue())
    assert {name: read.read(name, 1000) for name in read.entries} == MEMBERS


def test_archive_with_zip64_headers_is_read(open_zip: Open) -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in MEMBERS.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(content)
    read = open_zip(target.getvalue())
    assert {name: read.read(name, 1000) for name in read.entries} == MEMBERS


def test_comment_of_an_archive_is_ignored(open_zip: Open) -> None:
    assert set(open_zip(PLAIN[:-2] + struct.pack("<H", 5) + b"hello").entries) == set(MEMBERS)


FIRST_SIZE = len(MEMBERS["a.txt"])

MENDED = b"x" + make_zip({"a": b""})
MENDED = patch(patch(MENDED, END, 16, struct.pack("<I", MENDED.index(CENTRAL))), CENTRAL, 42, struct.pack("<I", 1))
TWICE = patch(make_zip({"a": b"", "b": b""}), LOCAL, 30, b"a", last=True)

HOSTILE: dict[str, dict[str, bytes]] = {
    "is not a zip archive": {"text": b"x" * 100, "nothing": b"", "truncated": PLAIN[: len(PLAIN) // 2]},
    "has data after the end": {"a byte": PLAIN + b"x"},
    "has data before": {"a byte, offsets mended": MENDED},
    "directory that is not where": {
        "two archives": PLAIN + PLAIN,
        "data before": b"#!/bin/sh\n" + PLAIN,
        "end record in the comment": PLAIN[:-2] + struct.pack("<H", 22) + END + b"\x00" * 18,
        "elsewhere": patch(PLAIN, END, 16, struct.pack("<I", 5)),
        "zip64 without its record": patch(PLAIN, END, 16, struct.pack("<I", 0xFFFFFFFF)),
    },
    "in several": {
        "end record": patch(PLAIN, END, 4, b"\x01\x00"),
        "counts": patch(PLAIN, END, 8, b"\x01\x00"),
        "entry": patch(PLAIN, CENTRAL, 34, b"\x01\x00"),
    },
    "goes on after": {"count too low": patch(PLAIN, END, 8, struct.pack("<HH", 1, 1))},
    "ends too early": {"count too high": patch(PLAIN, END, 8, struct.pack("<HH", 3, 3))},
    "malformed central": {"no signature": patch(PLAIN, CENTRAL, 0, b"QK", last=True)},
    "more than 67108864 bytes": {"size": patch(PLAIN, END, 12, struct.pack("<I", 0x7FFFFFFF))},
    "is encrypted": {"both": patch(patch(PLAIN, CENTRAL, 8, b"\x01\x00"), LOCAL, 6, b"\x01\x00")},
    "says otherwise": {
        "name": patch(PLAIN, LOCAL, 30, b"z"),
        "size": patch(PLAIN, LOCAL, 22, struct.pack("<I", FIRST_SIZE + 1)),
        "crc": patch(PLAIN, LOCAL, 14, b"\x00\x00\x00\x01"),
        "method": patch(PLAIN, LOCAL, 8, b"\x00\x00"),
        "descriptor": patch(PLAIN, LOCAL, 6, b"\x08\x00"),
        "encryption": patch(PLAIN, LOCAL, 6, b"\x01\x00"),
        "no header": patch(PLAIN, LOCAL, 0, b"QK"),
    },
    "overlap": {"same offset": patch(PLAIN, CENTRAL, 42, b"\x00\x00\x00\x00", last=True)},
    "neither stored nor": {"bzip2": patch(patch(PLAIN, CENTRAL, 10, b"\x0c\x00"), LOCAL, 8, b"\x0c\x00")},
    "two sizes": {"stored": patch(patch(PLAIN, CENTRAL, 10, b"\x00\x00"), LOCAL, 8, b"\x00\x00")},
    "two entries of the name": {"duplicate": patch(TWICE, CENTRAL, 46, b"a", last=True)},
    "with content": {"folder": raw_zip(("d/", b"x"))},
    "link or a device": {
        "link": raw_zip(("a", b"/etc/passwd"), external_attr=(stat.S_IFLNK | 0o777) << 16),
        "device": raw_zip(("a", b""), external_attr=(stat.S_IFCHR | 0o600) << 16),
        "folder": raw_zip(("a/", b""), external_attr=(stat.S_IFLNK | 0o777) << 16),
    },
    "plain relative path": {
        repr(name): raw_zip((name, b"x"))
        for name in ("", "/", "/etc/passwd", "../a", "a/../b", "a/..", "..", ".", "./a", "a//b")
    },
    "drive letter or control": {
        "drive": raw_zip(("C:/a", b"x")),
        "backslash": raw_zip(("a\\b", b"x")),
        "line": raw_zip(("a\nb", b"x")),
        "NUL": patch(patch(PLAIN, LOCAL, 31, b"\x00"), CENTRAL, 47, b"\x00"),
    },
    "more than 4096 bytes": {"name": raw_zip(("a" * 5000, b""))},
}


@pytest.mark.parametrize(
    ("why", "data"),
    [pytest.param(why, data, id=f"{why}: {case}") for why, cases in HOSTILE.items() for case, data in cases.items()],
)
def test_hostile_archive_is_refused_with_a_sentence(open_zip: Open, why: str, data: bytes) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        open_zip(data)
    assert str(caught.value).startswith("x.zip ")
    assert str(caught.value).isprintable()


def wide(
    data: bytes = PLAIN, *, fields: tuple[int, ...] = (), shift: int = 0, length: int = 44, disks: int = 1
) -> bytes:
    """The archive with a zip64 end record; ``fields`` replace its counts, size and start."""
    at = data.index(END)
    _, _, count, full, size, start = struct.unpack_from("<4H2I", data, at + 4)
    counts = fields or (count, full, size, start)
    record = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", length, 45, 45, 0, 0, *counts)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at + shift, disks)
    return data[:at] + record + locator + data[at:]


def with_extra(local: bytes, central: bytes) -> bytes:
    """A zip file of one stored member ``a`` with these extra fields."""
    data = raw_zip(("a", b"x"))
    data = patch(patch(data, LOCAL, 28, struct.pack("<H", len(local))), CENTRAL, 30, struct.pack("<H", len(central)))
    at, end = data.index(CENTRAL), data.index(END)
    data = data[:31] + local + data[31 : at + 47] + central + data[end:]
    sizes = struct.pack("<II", 47 + len(central), at + len(local))
    return patch(data, END, 12, sizes)


def test_zip64_end_record_is_read(open_zip: Open) -> None:
    assert set(open_zip(wide()).entries) == set(MEMBERS)
    full = patch(patch(wide(), END, 8, b"\xff\xff" * 2), END, 12, b"\xff" * 8)
    with pytest.raises(Invalid, match="in several"):
        open_zip(patch(wide(), END, 8, b"\xff\xff"))
    assert set(open_zip(full).entries) == set(MEMBERS)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (wide(shift=1), "not where its locator says"),
        (wide(disks=2), "not where its locator says"),
        (wide(length=45), "malformed zip64"),
        (patch(wide(), b"PK\x06\x06", 0, b"QK"), "malformed zip64"),
        (wide(fields=(1, 1, 200, 0)), "contradict each other"),
    ],
)
def test_wrong_zip64_end_record_is_refused(open_zip: Open, data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        open_zip(data)


def test_unknown_extra_fields_are_ignored(open_zip: Open) -> None:
    stamp = struct.pack("<HHBI", 0x5455, 5, 1, 0)
    assert open_zip(with_extra(stamp, stamp + b"\0\0")).read("a", 1) == b"x"


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (struct.pack("<HH", 0x5455, 5), "malformed extra"),
        (struct.pack("<HHQHHQ", 1, 8, 0, 1, 8, 0), "two zip64 fields"),
    ],
)
@pytest.mark.parametrize("place", ["local", "central"])
def test_malformed_extra_field_is_refused(open_zip: Open, extra: bytes, why: str, place: str) -> None:
    with pytest.raises(Invalid, match=why):
        open_zip(with_extra(extra, b"") if place == "local" else with_extra(b"", extra))


def test_zip64_field_without_the_size_that_it_should_have_is_refused(open_zip: Open) -> None:
    data = with_extra(b"", struct.pack("<HHQ", 1, 8, 1))
    with pytest.raises(Invalid, match="too short"):
        open_zip(patch(data, CENTRAL, 20, b"\xff" * 8))


def test_name_that_is_not_utf_8_is_refused(open_zip: Open) -> None:
    data = make_zip({"ä": b""})
    bad = data.replace("ä".encode(), b"\xff\xff")
    with pytest.raises(Invalid, match="not UTF-8"):
        open_zip(bad)


def test_members_that_share_their_data_are_refused(open_zip: Open) -> None:
    data = raw_zip(("a", b"x" * 100), ("b", b"y"))
    [second] = struct.unpack_from("<I", data, data.rindex(CENTRAL) + 42)
    moved = patch(data, CENTRAL, 42, struct.pack("<I", second - 50), last=True)
    with pytest.raises(Invalid, match="overlap"):
        open_zip(moved)


def test_gap_between_members_is_refused(open_zip: Open) -> None:
    one, two = make_zip({"a": b"1"}), make_zip({"a": b"1", "b": b"2"})
    second = len(one) - 22 - 47  # where b's local header begins: one's directory is 46 bytes and a name of 1
    data = two[:second] + b"GAP!" + two[second:]
    data = patch(data, CENTRAL, 42, struct.pack("<I", second + 4), last=True)
    [start] = struct.unpack_from("<I", data, data.index(END) + 16)
    with pytest.raises(Invalid, match="belongs to none"):
        open_zip(patch(data, END, 16, struct.pack("<I", start + 4)))


def test_second_name_of_an_entry_is_refused(open_zip: Open) -> None:
    def with_path(path: bytes) -> bytes:
        extra = struct.pack("<HHBI", 0x7075, 5 + len(path), 1, zlib.crc32(b"a")) + path
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            info = zipfile.ZipInfo("a")
            info.extra = extra
            archive.writestr(info, b"x")
        return target.getvalue()

    assert "a" in open_zip(with_path(b"a")).entries
    with pytest.raises(Invalid, match="two different names"):
        open_zip(with_path(b"../../b"))


def test_wrong_descriptor_is_refused(open_zip: Open) -> None:
    target = Unseekable()
    with zipfile.ZipFile(target, "w") as archive, archive.open("a", "w") as member:
        member.write(b"content")
    data = target.getvalue()
    assert open_zip(data).read("a", 7) == b"content"
    with pytest.raises(Invalid, match="belongs to none"):
        open_zip(patch(data, b"PK\x07\x08", 4, b"\x00\x00\x00\x00"))


def test_zip_bomb_is_refused_by_its_stated_sizes(open_zip: Open) -> None:
    size = 65 * 1024 * 1024
    data = make_zip({"zeros": bytes(size)})
    assert len(data) * 1000 < size * 2
    with pytest.raises(Invalid, match="would unpack to more"):
        open_zip(data)


def test_many_entries_are_refused_before_the_directory_is_read(open_zip: Open) -> None:
    with pytest.raises(Invalid, match="more than 1 entries"):
        open_zip(PLAIN, ArchiveLimits(entries=1))


def lying_zip(content: bytes, announced: int) -> bytes:
    data = make_zip({"a": content})
    said = struct.pack("<I", announced)
    return patch(patch(data, LOCAL, 22, said), CENTRAL, 24, said)


@pytest.mark.parametrize(
    ("data", "limit"),
    [
        (lying_zip(bytes(30 * 1024 * 1024), 10), 100),
        (lying_zip(b"x" * 100, 99), 100),
        (lying_zip(b"x" * 100, 101), 101),
        (lying_zip(b"x" * 100, 0), 100),
        (make_zip({"a": b"x" * 101}), 100),
        (raw_zip(("a", b"x" * 101)), 100),
        (patch(patch(make_zip({"a": b"x"}), LOCAL, 14, b"\x00" * 4), CENTRAL, 16, b"\x00" * 4), 100),
        (patch(make_zip({"a": os.urandom(50)}), LOCAL, 40, b"\x55" * 20), 100),
    ],
    ids=["bomb", "longer", "shorter", "nothing", "over limit", "stored over limit", "crc", "damaged"],
)
def test_member_of_another_size_than_stated_is_refused(open_zip: Open, data: bytes, limit: int) -> None:
    archive = open_zip(data)
    with pytest.raises(Invalid, match=r"^x\.zip has a a "):
        archive.read("a", limit)


def test_compressed_size_is_limited_by_the_limit_of_the_content(open_zip: Open) -> None:
    data = make_zip({"a": os.urandom(10_000)})
    said = struct.pack("<I", 10)
    archive = open_zip(patch(patch(data, LOCAL, 22, said), CENTRAL, 24, said))
    with pytest.raises(Invalid, match="longer packed"):
        archive.read("a", 100)


PIECES = {
    "empty": b"",
    "small": b"first" * 100,
    "a piece": bytes(LIMITS.piece),
    "a piece and a byte": bytes(LIMITS.piece + 1),
    "random": random.Random(1).randbytes(3 * LIMITS.piece + 7),
}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_of_any_size_are_read_in_pieces(open_zip: Open, method: int) -> None:
    archive = open_zip(raw_zip(*PIECES.items(), compress_type=method))
    for name, content in PIECES.items():
        pieces = list(archive.pieces(name))
        assert b"".join(pieces) == content
        assert all(0 < len(piece) <= LIMITS.piece for piece in pieces)


def test_pieces_of_an_unknown_member_are_a_key_error(open_zip: Open) -> None:
    with pytest.raises(KeyError):
        list(open_zip(PLAIN).pieces("none"))


@pytest.mark.parametrize("change", [lambda n: n - 1, lambda n: n + 1, lambda _: 0])
def test_pieces_that_are_more_or_fewer_than_the_size_says_are_refused(
    open_zip: Open, change: Callable[[int], int]
) -> None:
    size = 3 * LIMITS.piece
    data = raw_zip(("x", bytes(size)), compress_type=zipfile.ZIP_DEFLATED)
    wrong = struct.pack("<I", change(size))
    data = patch(patch(data, LOCAL, 22, wrong), CENTRAL, 24, wrong)
    with pytest.raises(Invalid, match="damaged"):
        list(open_zip(data).pieces("x"))


def test_pieces_with_another_checksum_are_refused(open_zip: Open) -> None:
    data = raw_zip(("x", b"content"), compress_type=zipfile.ZIP_STORED)
    with pytest.raises(Invalid, match="damaged"):
        list(open_zip(data.replace(b"content", b"c0ntent")).pieces("x"))


def test_pieces_of_a_stream_that_ends_early_or_late_are_refused(open_zip: Open) -> None:
    content = random.Random(2).randbytes(2 * LIMITS.piece)
    stream = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = stream.compress(content) + stream.flush()
    for wrong in (packed[:-1], packed + b"x", packed + bytes(2 * LIMITS.piece), b""):
        data = raw_zip(("x", wrong), compress_type=zipfile.ZIP_STORED)
        for signature, method, crc, size in ((LOCAL, 8, 14, 22), (CENTRAL, 10, 16, 24)):
            data = patch(data, signature, method, struct.pack("<H", zipfile.ZIP_DEFLATED))
            data = patch(data, signature, crc, struct.pack("<I", zlib.crc32(content)))
            data = patch(data, signature, size, struct.pack("<I", len(content)))
        with pytest.raises(Invalid, match=r"x that (is damaged|does not end where its size says)"):
            list(open_zip(data).pieces("x"))
