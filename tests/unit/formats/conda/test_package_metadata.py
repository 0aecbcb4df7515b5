"""What is read from the files of packages, and which files are refused."""

import bz2
import io
import struct
import tarfile
import zipfile

import pytest
import zstandard

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import BZ2, INDEX_SIZE, INFO_SIZE, Bz2Limits, parse_file_name
from pkgrepo.formats.conda.package_metadata import read_package
from tests.support.conda_packages import info_members, make_conda, make_index, make_tar_bz2, pack_conda
from tests.support.tarballs import make_tar

STEM = "demo-1.0-py_0"
DOCUMENTS = {"about.json": {"summary": "A demo"}, "run_exports.json": {"weak": ["demo >=1"], "strong": []}}


def read(data, ending=".conda", stem=STEM):
    return read_package(data, parse_file_name(stem + ending))


def conda_of(members):
    return pack_conda(STEM, zstandard.compress(make_tar(members)))


def bz2_of(members):
    return bz2.compress(make_tar(members))


@pytest.mark.parametrize(("make", "ending"), [(make_conda, ".conda"), (make_tar_bz2, ".tar.bz2")])
def test_both_kinds_of_files_say_the_same(make, ending):
    found = read(make(depends=["python >=3.8"], documents=DOCUMENTS, payload=[("bin/demo", b"#!")]), ending)
    assert found.index == {**make_index(depends=["python >=3.8"]), "constrains": []}
    assert found.about == {"summary": "A demo"}
    assert found.exports == {"weak": ["demo >=1"]}


@pytest.mark.parametrize("exports", ["demo", ["demo"], {"weak": "demo"}])
def test_run_exports_in_old_spellings_are_weak_ones(exports):
    assert read(make_conda(documents={"run_exports.json": exports})).exports == {"weak": ["demo"]}


@pytest.mark.parametrize("stem", ["demo-1.0-py_1", "demo-1.1-py_0", "other-1.0-py_0"])
def test_a_package_under_another_name_is_refused(stem):
    with pytest.raises(Invalid, match=r"says .*demo-1\.0-py_0"):
        read(make_tar_bz2(), ".tar.bz2", stem)


@pytest.mark.parametrize(
    "more",
    [
        {"name": None},
        {"build_number": "0"},
        {"build_number": -1},
        {"depends": "python"},
        {"depends": [1]},
        {"version": "1..0"},
        {"name": "../demo"},
    ],
)
def test_an_index_that_clients_could_not_use_is_refused(more):
    members = info_members({**make_index(), **more} if more.get("name", "") is not None else {"version": "1.0"})
    with pytest.raises(Invalid):
        read(conda_of(members))


def test_payload_before_the_info_folder_is_passed_over():
    members = [("bin/demo", b"x" * 1000), *info_members(make_index()), ("lib/demo", b"")]
    assert read(bz2_of(members), ".tar.bz2").index["name"] == "demo"


MEMBERS = info_members(make_index())
INFO = make_tar(MEMBERS)
MAGIC = (0xFD2FB528).to_bytes(4, "little")


def read_damaged(data, ending=".conda", limits=BZ2):
    return read_package(data, parse_file_name(STEM + ending), limits)


def linked_info(**fields):
    """An info archive whose index.json is a link."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo("info/index.json")
        for name, value in fields.items():
            setattr(info, name, value)
        archive.addfile(info)
    return target.getvalue()


def zip_of(*names):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in names:
            archive.writestr(name, b'{"conda_pkg_format_version":2}')
    return target.getvalue()


def zstd_frame(window_log, blocks):
    """A frame with a window and raw blocks, as no compressor writes it."""
    return MAGIC + bytes([0, (window_log - 10) << 3]) + blocks


def rle_blocks(count, last):
    """Blocks of 128 KiB of zeros each, in 4 bytes each."""
    block = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"\0"
    end = struct.pack("<I", 128 * 1024 << 3 | 1 << 1 | last)[:3] + b"\0"
    return block * (count - 1) + end


def test_truncated_files_are_refused_wherever_they_end():
    for make, ending in ((make_conda, ".conda"), (make_tar_bz2, ".tar.bz2")):
        data = make()
        for end in range(0, len(data) - 1, 37):
            with pytest.raises(Invalid):
                read_damaged(data[:end], ending)


@pytest.mark.parametrize(
    "names",
    [
        ("metadata.json",),
        ("metadata.json", f"pkg-{STEM}.tar.zst"),
        ("metadata.json", f"info-{STEM}.tar.zst"),
        ("metadata.json", f"pkg-{STEM}.tar.zst", f"info-{STEM}.tar.zst", "info-other-1.0-0.tar.zst"),
        ("metadata.json", f"pkg-{STEM}.tar.zst", f"info-{STEM}.tar.zst", "../x"),
    ],
)
def test_a_conda_file_with_other_members_than_its_own_is_refused(names):
    with pytest.raises(Invalid):
        read_damaged(zip_of(*names))


@pytest.mark.parametrize("metadata", [b"", b"{}", b'{"conda_pkg_format_version":3}', b"[2]", b" " * 5000])
def test_another_format_version_is_refused(metadata):
    with pytest.raises(Invalid):
        read_damaged(pack_conda(STEM, zstandard.compress(INFO), metadata=metadata))


def test_members_that_are_compressed_twice_are_refused():
    with pytest.raises(Invalid, match="compressed again"):
        read_damaged(pack_conda(STEM, zstandard.compress(INFO), method=zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize(
    "info",
    [
        INFO,
        zstandard.compress(INFO) * 2,
        zstandard.compress(INFO) + b"x",
        zstandard.compress(INFO)[:-1],
        MAGIC,
        b"",
        zstd_frame(10, b"\x07\x00\x00"),  # a block of the reserved type
        zstd_frame(10, b"\x00\x00\x00" * 200_000),  # empty blocks without end
        zstd_frame(31, rle_blocks(1, last=1)),  # a window of 2 GiB
        zstd_frame(17, rle_blocks(5000, last=1)),  # 640 MiB of zeros in 20 kB
        zstandard.compress(INFO[:700]),
        zstandard.compress(make_tar([("bin/x", b"")])),
        zstandard.compress(make_tar([*MEMBERS, *MEMBERS[:1]])),
        zstandard.compress(make_tar([*MEMBERS, ("info/../x", b"")])),
        zstandard.compress(make_tar([("info/index.json", b"x" * (INDEX_SIZE + 1))])),
        zstandard.compress(linked_info(type=tarfile.SYMTYPE, linkname="/etc/passwd")),
        zstandard.compress(linked_info(type=tarfile.LNKTYPE, linkname="info/other")),
        zstandard.compress(linked_info(type=tarfile.CHRTYPE)),
    ],
)
def test_info_that_is_damaged_ambiguous_or_a_bomb_is_refused(info):
    with pytest.raises(Invalid):
        read_damaged(pack_conda(STEM, info))


def test_an_info_member_that_is_too_large_is_not_read_damaged():
    with pytest.raises(Invalid, match=str(INFO_SIZE)):
        read_damaged(pack_conda(STEM, bytes(INFO_SIZE + 1)))


@pytest.mark.parametrize(
    "text",
    [
        b'{"name": "demo", "name": "demo"}',
        b"[" * 5000,
        b"[]",
        b'{"name":"demo","version":"1.0","build":"py_0","build_number":1e400}',
        b"\xff",
        b"[" + b"1," * 30_000 + b"1]",
    ],
)
def test_an_index_that_is_no_plain_object_is_refused(text):
    with pytest.raises(Invalid):
        read_damaged(pack_conda(STEM, zstandard.compress(make_tar([("info/index.json", text)]))))


def test_a_bzip2_bomb_is_refused_at_its_limit():
    zeros = bz2.compress(make_tar([("bin/zeros", bytes(1024 * 1024))]))
    assert len(zeros) < 1000
    assert BZ2.unpacked <= 64 * 1024 * 1024
    with pytest.raises(Invalid, match="unpack"):
        read_damaged(zeros, ".tar.bz2", Bz2Limits(unpacked=1024 * 1024))


def test_thousands_of_bzip2_streams_are_refused():
    with pytest.raises(Invalid, match="streams"):
        read_damaged(bz2.compress(b"") * 2000, ".tar.bz2")


def test_an_info_folder_that_comes_too_late_is_not_waited_for():
    with pytest.raises(Invalid, match="not within"):
        read_damaged(make_tar_bz2(), ".tar.bz2", Bz2Limits(packed=0))
    assert BZ2.packed > 1024 * 1024


def test_what_follows_the_info_folder_is_not_read_damaged():
    data = make_tar_bz2(payload=[("bin/noise", bytes(range(256)) * 800)])
    assert read_damaged(data[:-10], ".tar.bz2").index["name"] == "demo"
