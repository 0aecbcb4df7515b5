"""Source distributions, sound and hostile."""

import gzip
import io
import random
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pkgrepo.archives import streams
from pkgrepo.archives.source import LIMITS, ArchiveLimits
from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.python.upload.inspection import inspect
from tests.support.python_packages import make_metadata, make_sdist, make_zip
from tests.support.tarballs import make_tar_gz

NAME = "demo-1.0.tar.gz"
METADATA = make_metadata("demo", "1.0")

Inspect = Callable[..., bytes]


@pytest.fixture
def read(tmp_path: Path) -> Inspect:
    def read_(data: bytes, filename: str = NAME, project: str = "demo", limits: ArchiveLimits = LIMITS) -> bytes:
        path = tmp_path / "upload"
        path.write_bytes(data)
        return inspect(path, parse_filename(filename, project=project), limits).metadata_bytes

    return read_


def entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """One tar entry; C{fields} are those of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_bytes(*entries: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive, C{PKG-INFO} first."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=format) as archive:
        for info, content in (entry("demo-1.0/PKG-INFO", METADATA), *entries):
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def sdist(*entries: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    return gzip.compress(tar_bytes(*entries, format=format))


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, type=kind, linkname=target)


def header(name: bytes, kind: bytes, size: int | bytes, *, magic: bytes = b"ustar\x0000", prefix: bytes = b"") -> bytes:
    """A header block that tarfile would not write."""
    block = bytearray(512)
    digits = size if isinstance(size, bytes) else b"%o" % size
    struct.pack_into("100s8s8s8s12s12s8s1s", block, 0, name, b"644", b"0", b"0", digits, b"0", b" " * 8, kind)
    struct.pack_into("8s", block, 257, magic)
    struct.pack_into("155s", block, 345, prefix)
    struct.pack_into("8s", block, 148, b"%06o\0 " % sum(block))
    return bytes(block)


def with_blocks(*blocks: bytes) -> bytes:
    """PKG-INFO, then these blocks, then the end."""
    begin = tar_bytes()
    size = 512 + -(-len(METADATA) // 512) * 512
    return gzip.compress(begin[:size] + b"".join(blocks) + bytes(1024))


def pax(*records: bytes, kind: bytes = b"x") -> bytes:
    """An extended header with these key=value pairs."""
    data = b""
    for record in records:
        length = len(record) + 3
        while len(b"%d %b\n" % (length, record)) != length:
            length += 1
        data += b"%d %b\n" % (length, record)
    return header(b"x", kind, len(data)) + data + bytes(-len(data) % 512)


@pytest.mark.parametrize("ending", [".tar.gz", ".zip"])
def test_source_distribution_gives_its_exact_metadata(read: Inspect, ending: str) -> None:
    metadata = make_metadata("Demo.Pkg", "1.0", requires_python=">=3.8", description="Ünïcode\r\n\r\nand more\n")
    filename, data = make_sdist("Demo.Pkg", "1.0", metadata=metadata, ending=ending, pad=1000)
    assert read(data, filename, "demo-pkg") == metadata


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_dialect_of_tar_is_read(read: Inspect, format: int) -> None:
    long = "demo-1.0/" + "/".join(["directory"] * 12) + "/file.txt"
    members = [entry("demo-1.0/src", type=tarfile.DIRTYPE), entry(long, b"x" * 700, mtime=1.5)]
    if format != tarfile.USTAR_FORMAT:
        members += [entry("demo-1.0/" + "n" * 200, b""), link("demo-1.0/l", "a" * 150)]
    assert read(sdist(*members, format=format)) == METADATA


@pytest.mark.parametrize(
    ("filename", "top", "name", "version"),
    [
        ("demo-1.0.tar.gz", "demo-1.0", "demo", "1.0"),
        ("demo-1.0.tar.gz", "Demo-1.0.0", "Demo", "1.0.0"),
        ("demo_pkg-1.0.tar.gz", "demo-pkg-1.0", "demo-pkg", "1.0"),
        ("Demo.Pkg-1.0.tar.gz", "demo_pkg-1.0", "Demo.Pkg", "1.0"),
        ("demo-1.0-1.tar.gz", "demo-1.0.post1", "demo", "1.0-1"),
    ],
)
def test_folder_may_be_spelt_otherwise_than_the_file(
    read: Inspect, filename: str, top: str, name: str, version: str
) -> None:
    metadata = make_metadata(name, version)
    assert read(make_tar_gz({f"{top}/PKG-INFO": metadata}), filename, name) == metadata


def test_entries_may_begin_with_a_dot_and_slash(read: Inspect) -> None:
    root = entry("./", type=tarfile.DIRTYPE)
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for info, content in (root, entry("./demo-1.0", type=tarfile.DIRTYPE), entry("./demo-1.0/PKG-INFO", METADATA)):
            archive.addfile(info, io.BytesIO(content))
    assert read(gzip.compress(target.getvalue())) == METADATA


def test_comment_header_of_git_archive_is_ignored(read: Inspect) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", pax_headers={"comment": "0123456789"}) as archive:
        info, content = entry("demo-1.0/PKG-INFO", METADATA)
        archive.addfile(info, io.BytesIO(content))
    assert read(gzip.compress(target.getvalue())) == METADATA


def test_metadata_may_come_last_and_content_is_skipped(read: Inspect) -> None:
    padding = random.Random(1).randbytes(3_000_000)
    assert read(make_tar_gz({"demo-1.0/big": padding, "demo-1.0/PKG-INFO": METADATA})) == METADATA


@pytest.mark.parametrize(
    "members",
    [
        [link("demo-1.0/l", "PKG-INFO")],
        [link("demo-1.0/a/b/l", "../../PKG-INFO")],
        [link("demo-1.0/l", "./a/./b")],
        [link("demo-1.0/a/l", "..")],
        [link("demo-1.0/l", "demo-1.0/PKG-INFO", tarfile.LNKTYPE)],
        [link("demo-1.0/l", "./demo-1.0/PKG-INFO", tarfile.LNKTYPE)],
    ],
)
def test_links_within_the_folder_pass(read: Inspect, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    assert read(sdist(*members)) == METADATA


@pytest.mark.parametrize(
    "members",
    [
        [link("demo-1.0/l", "/etc/passwd")],
        [link("demo-1.0/l", "..")],
        [link("demo-1.0/l", "../other")],
        [link("demo-1.0/l", "../demo-1.0.evil")],
        [link("demo-1.0/a/l", "../../x")],
        [link("demo-1.0/l", "a/../../x")],
        [link("demo-1.0/here", "."), link("demo-1.0/l", "here/here/../../x")],
        [link("demo-1.0/l", "a\\..\\..\\x")],
        [link("demo-1.0/l", "C:/x")],
        [link("demo-1.0/l", "/etc/passwd", tarfile.LNKTYPE)],
        [link("demo-1.0/l", "../x", tarfile.LNKTYPE)],
        [link("demo-1.0/l", "demo-1.0/missing", tarfile.LNKTYPE)],
        [link("demo-1.0/a/up", ".."), link("demo-1.0/h", "demo-1.0/a/up", tarfile.LNKTYPE)],
        [link("demo-1.0/l", "a"), entry("demo-1.0/l/x", b"y")],
        [link("demo-1.0/l", "a"), link("demo-1.0/l/x", "y")],
    ],
)
def test_links_out_of_the_folder_are_refused(read: Inspect, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with pytest.raises(Invalid, match=r"leads out|plain relative|through a link|drive letter"):
        read(sdist(*members))


UNUSUAL = {
    "character device": ("a device", entry("demo-1.0/d", type=tarfile.CHRTYPE)),
    "block device": ("a device", entry("demo-1.0/d", type=tarfile.BLKTYPE)),
    "pipe": ("a named pipe", entry("demo-1.0/d", type=tarfile.FIFOTYPE)),
    "unknown type": ("unknown type", entry("demo-1.0/d", type=b"Z")),
    "volume": ("unknown type", entry("demo-1.0/d", type=b"V")),
    "link to nowhere": ("unknown type", link("demo-1.0/d", "")),
    "other folder": ("one folder", entry("other/file", b"x")),
    "file beside": ("one folder", entry("setup.py", b"x")),
    "up": ("plain relative", entry("demo-1.0/../../x", b"x")),
    "absolute": ("plain relative", entry("/demo-1.0/x", b"x")),
    "empty part": ("plain relative", entry("demo-1.0//x", b"x")),
    "backslash": ("backslash", entry("demo-1.0\\x", b"x")),
    "control": ("control", entry("demo-1.0/a\x1b[2J", b"x")),
    "no name": ("without a name", entry(".", b"x")),
    "metadata twice": ("two entries", entry("demo-1.0/PKG-INFO", METADATA)),
    "metadata twice, other spelling": ("two entries", entry("./demo-1.0/PKG-INFO", METADATA)),
    "link over metadata": ("two entries", link("demo-1.0/PKG-INFO", "x")),
}


@pytest.mark.parametrize(("why", "member"), UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_entry_is_refused(read: Inspect, why: str, member: tuple[tarfile.TarInfo, bytes]) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        read(sdist(member))
    assert str(caught.value).isprintable()


DAMAGED = {
    "wrong checksum": ("is not a tar archive", bytes(156) + b"0" + bytes(355)),
    "sparse of GNU tar": ("a sparse file", header(b"demo-1.0/s", b"S", 0)),
    "sparse of pax": ("a sparse file", pax(b"GNU.sparse.major=1") + header(b"demo-1.0/s", b"0", 0)),
    "size that is no number": ("malformed size", header(b"demo-1.0/s", b"0", b"1x")),
    "negative size": ("malformed size", header(b"demo-1.0/s", b"0", b"\xff" * 12)),
    "huge size": ("truncated", header(b"demo-1.0/s", b"0", b"\x80" + b"\xff" * 11)),
    "pax size that is no number": ("malformed size", pax(b"size=-1") + header(b"demo-1.0/s", b"0", 0)),
    "folder with content": ("with content", header(b"demo-1.0/d/", b"5", 512) + bytes(512)),
    "old folder with content": ("with content", header(b"demo-1.0/d/", b"0", 512) + bytes(512)),
    "content by pax": ("with content", pax(b"size=512") + header(b"demo-1.0/d", b"5", 0) + bytes(512)),
    "prefix without its magic": ("longer name", header(b"x", b"0", 0, magic=b"ustar  ", prefix=b"demo-1.0")),
    "name twice": ("same thing twice", pax(b"path=demo-1.0/a", b"path=demo-1.0/b") + header(b"x", b"0", 0)),
    "name by GNU and pax": (
        "same thing twice",
        header(b"x", b"L", 10) + b"demo-1.0/a".ljust(512, b"\0") + pax(b"path=demo-1.0/b") + header(b"x", b"0", 0),
    ),
    "pax without length": ("malformed pax", header(b"x", b"x", 5) + b"a=b\n\n".ljust(512, b"\0")),
    "pax of length 0": ("malformed pax", header(b"x", b"x", 6) + b"0 a=b\n".ljust(512, b"\0")),
    "pax beyond its end": ("malformed pax", header(b"x", b"x", 6) + b"9 a=b\n".ljust(512, b"\0")),
    "pax without a value": ("malformed pax", header(b"x", b"x", 6) + b"6 abc\n".ljust(512, b"\0")),
    "huge pax": ("more than 65536", header(b"x", b"x", 1 << 17) + bytes(1 << 17)),
    "long name": ("more than 4096", pax(b"path=" + b"a" * 5000) + header(b"x", b"0", 0)),
    "name of all": ("every entry", pax(b"path=demo-1.0/PKG-INFO", kind=b"g")),
    "endless content": ("truncated", header(b"demo-1.0/a", b"0", 0o77777777777)),
    "data after an empty block": ("after the end of its tar", bytes(512) + header(b"demo-1.0/a", b"0", 0)),
}


@pytest.mark.parametrize(("why", "blocks"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_archive_is_refused(read: Inspect, why: str, blocks: bytes) -> None:
    with pytest.raises(Invalid, match=why):
        read(with_blocks(blocks))


def test_part_of_a_header_is_refused_and_a_missing_end_is_not(read: Inspect) -> None:
    whole = gzip.decompress(with_blocks())[:-1024]
    assert read(gzip.compress(whole)) == METADATA
    with pytest.raises(Invalid, match="truncated"):
        read(gzip.compress(whole + b"x" * 100))
    with pytest.raises(Invalid, match="truncated"):
        read(gzip.compress(whole[:-100]))


GOOD = sdist(entry("demo-1.0/data", random.Random(2).randbytes(2000)))
LARGE = sdist(entry("demo-1.0/data", random.Random(2).randbytes(600_000)))


@pytest.mark.parametrize("data", [GOOD, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("cut", [1, 4, 8, 9, 100, 1500])
def test_truncated_gzip_is_refused(read: Inspect, data: bytes, cut: int) -> None:
    assert read(data) == METADATA
    with pytest.raises(Invalid, match="truncated"):
        read(data[:-cut])


@pytest.mark.parametrize("data", [b"", b"\x1f", b"\x1f\x8b", b"text", METADATA, tar_bytes(), make_zip({"a": b""})])
def test_what_is_no_gzip_is_refused(read: Inspect, data: bytes) -> None:
    with pytest.raises(Invalid, match=r"truncated|not a gzip"):
        read(data)


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_damaged_gzip_is_refused(read: Inspect, at: float) -> None:
    place = int(len(GOOD) * at)
    with pytest.raises(Invalid):
        read(GOOD[:place] + bytes([GOOD[place] ^ 0xFF]) + GOOD[place + 1 :])


def test_streams_in_a_row_are_one(read: Inspect) -> None:
    data = tar_bytes(entry("demo-1.0/data", b"x" * 1000))
    assert read(b"".join(gzip.compress(data[at : at + 100]) for at in range(0, len(data), 100))) == METADATA
    assert read(gzip.compress(data) + gzip.compress(b"") + bytes(1000)) == METADATA


@pytest.mark.parametrize("extra", [b"x", b"\x1f", b"\0\0\0x", bytes(1000) + b"PK\x03\x04", gzip.compress(b"x" * 100)])
def test_data_after_the_archive_is_refused(read: Inspect, extra: bytes) -> None:
    with pytest.raises(Invalid, match="after the end"):
        read(GOOD + extra)


def test_endless_empty_streams_are_refused(read: Inspect) -> None:
    with pytest.raises(Invalid, match="streams"):
        read(GOOD + gzip.compress(b"") * streams.MOST_STREAMS)


def test_bomb_by_ratio_is_refused_while_it_unpacks(read: Inspect) -> None:
    data = sdist(entry("demo-1.0/zeros", bytes(2 * 1024 * 1024)))
    assert len(data) * LIMITS.ratio < 1024 * 1024
    with pytest.raises(Invalid, match="would unpack to more than 1048576 bytes"):
        read(data, limits=ArchiveLimits(free_size=1024 * 1024))


def test_bomb_behind_the_end_is_refused_while_it_unpacks(read: Inspect) -> None:
    with pytest.raises(Invalid, match="would unpack to more"):
        read(GOOD + gzip.compress(bytes(2 * 1024 * 1024)), limits=ArchiveLimits(free_size=1024 * 1024))


def test_huge_metadata_is_refused(read: Inspect) -> None:
    huge = METADATA + random.Random(3).randbytes(METADATA_SIZE)
    for ending in (".tar.gz", ".zip"):
        filename, data = make_sdist("demo", "1.0", metadata=huge, ending=ending)
        with pytest.raises(Invalid, match=f"more than {METADATA_SIZE} bytes"):
            read(data, filename)


def test_names_and_extended_headers_are_limited_in_sum(read: Inspect, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sdist(*(entry(f"demo-1.0/{n}/" + "n" * 150) for n in range(10)))
    assert read(data) == METADATA
    with pytest.raises(Invalid, match="extended headers of more than 1000"):
        read(data, limits=ArchiveLimits(extended=1000))
    with pytest.raises(Invalid, match="names of more than 1000"):
        read(data, limits=ArchiveLimits(names=1000))


def test_too_many_entries_are_refused(read: Inspect) -> None:
    with pytest.raises(Invalid, match="more than 2 entries"):
        read(sdist(*(entry(f"demo-1.0/{n}") for n in range(10))), limits=ArchiveLimits(entries=2))


def test_a_small_file_may_have_fewer_entries_than_a_large_one(read: Inspect) -> None:
    limits = ArchiveLimits(free_entries=10)
    empty = [entry(f"demo-1.0/{n}") for n in range(100)]
    small = sdist(*empty)
    with pytest.raises(Invalid, match=f"more than {len(small) // limits.entry_size} entries"):
        read(small, limits=limits)
    dense = entry("demo-1.0/dense", random.Random(3).randbytes(100 * limits.entry_size))
    assert read(sdist(dense, *empty), limits=limits)


def test_headers_that_are_no_entries_are_counted(read: Inspect) -> None:
    limits = ArchiveLimits(entries=5)
    few, many = (with_blocks(*[pax(b"comment=x", kind=b"g")] * count) for count in (5, 10))
    assert read(few, limits=limits) == METADATA
    with pytest.raises(Invalid, match="more than 10 headers"):
        read(many, limits=limits)


def test_pax_records_are_counted(read: Inspect) -> None:
    limits = ArchiveLimits(entries=2)
    few, many = (with_blocks(pax(*[b"comment=x"] * count, kind=b"g")) for count in (20, 21))
    assert read(few, limits=limits) == METADATA
    with pytest.raises(Invalid, match="more than 20 pax records"):
        read(many, limits=limits)


def test_folders_on_the_way_to_entries_are_counted_where_there_are_links(read: Inspect) -> None:
    limits = ArchiveLimits(folders=100)
    deep = [entry(f"demo-1.0/{'a/' * 20}{n}") for n in range(10)]
    assert read(sdist(*deep), limits=limits) == METADATA
    for name, target in (("demo-1.0/link", "a"), ("demo-1.0/link", "a/" * 101)):
        with pytest.raises(Invalid, match="more than 100 folders"):
            read(sdist(link(name, target), *deep), limits=limits)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({}, "must have demo-1.0/PKG-INFO"),
        ({"demo-1.0/setup.py": b""}, "must have demo-1.0/PKG-INFO"),
        ({"demo-1.0/demo.egg-info/PKG-INFO": METADATA}, "must have demo-1.0/PKG-INFO"),
        ({"demo-1.1/PKG-INFO": METADATA}, "not 'demo-1.1'"),
        ({"other-1.0/PKG-INFO": METADATA}, "not 'other-1.0'"),
        ({"demo-1.0/PKG-INFO": make_metadata("other", "1.0")}, "its name is 'other'"),
        ({"demo-1.0/PKG-INFO": make_metadata("demo", "1.1")}, "its version is '1.1'"),
        ({"demo-1.0/PKG-INFO": b""}, "no Metadata-Version"),
    ],
)
@pytest.mark.parametrize("make", [make_tar_gz, make_zip])
def test_distribution_of_something_else_is_refused(
    read: Inspect, members: dict[str, bytes], why: str, make: Callable[[dict[str, bytes]], bytes]
) -> None:
    with pytest.raises(Invalid, match=why):
        read(make(members), NAME if make is make_tar_gz else "demo-1.0.zip")


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_metadata_that_is_no_plain_file_is_refused(read: Inspect, kind: bytes) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for info, _ in (entry("demo-1.0", type=tarfile.DIRTYPE), entry("demo-1.0/PKG-INFO", type=kind, linkname="x")):
            archive.addfile(info)
    with pytest.raises(Invalid, match="no plain file"):
        read(gzip.compress(target.getvalue()))


def test_descriptor_stays_open_and_where_it_was(tmp_path: Path) -> None:
    filename, data = make_sdist("demo", "1.0")
    (tmp_path / filename).write_bytes(data)
    with (tmp_path / filename).open("rb", buffering=0) as file:
        file.seek(7)
        assert inspect(file.fileno(), parse_filename(filename)).kind == "sdist"
        assert file.read(3) == data[7:10]
