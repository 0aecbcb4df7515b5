"""Programs with setuid or setgid in stacks of layers."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import zstandard

from pkgrepo.archives import layers
from pkgrepo.archives.layers import chain_of, programs_with
from pkgrepo.errors import Invalid
from tests.support.images import digest_of, make_layer_tar

SU = ("usr/bin/su", 0o4755)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00toc!"


def stacked(*stack: Sequence[Any]) -> list[str]:
    """The programs in a stack of layers, each of which is given by its entries."""
    found: tuple[str, ...] = ()
    for entries in stack:
        found = programs_with(make_layer_tar(entries), "x", found)
    return list(found)


@pytest.mark.parametrize(
    ("entry", "counts"),
    [
        (("a", 0o4755), True),
        (("a", 0o2755), True),
        (("a", 0o4100), True),
        (("a", 0o755), False),
        (("a", 0o4644), False),
        (("a", 0o1777), False),
        (("a/", 0o2775, tarfile.DIRTYPE), False),
        (("a", 0o4777, tarfile.SYMTYPE, "b"), False),
        (("a", 0o6777, tarfile.CHRTYPE), False),
        (("a", 0o6777, tarfile.FIFOTYPE), False),
        (("a/", 0o4755, tarfile.REGTYPE), True),
    ],
)
def test_an_executable_file_with_setuid_or_setgid_is_such_a_program(entry: Any, counts: bool) -> None:
    assert stacked([entry]) == (["a"] if counts else [])


@pytest.mark.parametrize("name", ["usr/bin/su", "./usr/bin/su", "/usr/bin/su", "usr//bin/./su"])
def test_all_spellings_of_a_path_are_one(name: str) -> None:
    assert stacked([(name, 0o4755)]) == ["usr/bin/su"]
    assert stacked([SU], [(name, 0o755)]) == []


@pytest.mark.parametrize(
    "above",
    [
        [("usr/bin/.wh.su", 0)],
        [("usr/bin/.wh..wh..opq", 0)],
        [("usr/.wh..wh..opq", 0)],
        [(".wh..wh..opq", 0)],
        [("usr/.wh.bin", 0)],
        [(".wh.usr", 0)],
        [("usr/bin/su", 0o755)],
        [("usr/bin/su", 0o777, tarfile.SYMTYPE, "busybox")],
        [("usr/bin/su", 0o755, tarfile.DIRTYPE)],
        [("usr/bin", 0o777, tarfile.SYMTYPE, "/bin")],
        [("usr/bin/su", 0o600, tarfile.CHRTYPE)],
    ],
)
def test_what_a_layer_removes_or_replaces_is_gone(above: Any) -> None:
    assert stacked([SU], above) == []
    assert stacked([SU], above, [SU]) == ["usr/bin/su"]


@pytest.mark.parametrize(
    "above",
    [
        [("usr/bin/", 0o755, tarfile.DIRTYPE)],
        [("usr/bin/other", 0o755)],
        [("usr/bin/.wh.sudo", 0)],
        [("usr/bin/.wh.", 0)],
        [("usr/sbin/.wh..wh..opq", 0)],
        [("usr/bin/.wh..wh.aufs", 0)],
        # programs that unpack layers differ in what becomes of a folder that is removed, and is there again
        [("usr/.wh.bin", 0), ("usr/bin/", 0o755, tarfile.DIRTYPE)],
        [("usr/.wh.bin", 0), ("usr/bin/new", 0o755)],
        [("usr/bin", 0o777, tarfile.SYMTYPE, "/bin"), ("usr/bin/", 0o755, tarfile.DIRTYPE)],
    ],
)
def test_what_a_layer_does_not_remove_for_certain_is_there(above: Any) -> None:
    assert stacked([SU], above) == ["usr/bin/su"]


def test_a_whiteout_is_about_the_layers_below_alone() -> None:
    assert stacked([SU, ("usr/bin/.wh.su", 0)]) == ["usr/bin/su"]
    assert stacked([("usr/bin/.wh..wh..opq", 0), SU]) == ["usr/bin/su"]


def test_a_hard_link_to_such_a_program_is_one() -> None:
    link = ("bin/x", 0o755, tarfile.LNKTYPE, "usr/bin/su")
    assert stacked([SU, link]) == ["bin/x", "usr/bin/su"]
    assert stacked([SU], [link]) == ["bin/x", "usr/bin/su"]


def test_the_permissions_of_a_hard_link_are_those_of_the_file_under_all_its_paths() -> None:
    file, link = ("bin/x", 0o755), ("tmp/y", 0o4755, tarfile.LNKTYPE, "bin/x")
    other, further = ("bin/z", 0o755, tarfile.LNKTYPE, "bin/x"), ("tmp/w", 0o4755, tarfile.LNKTYPE, "bin/z")
    assert stacked([file, link]) == ["bin/x", "tmp/y"]
    assert stacked([file, link], [("tmp/.wh.y", 0)]) == ["bin/x"]
    assert stacked([file], [link], [("tmp/.wh.y", 0)]) == ["bin/x"]
    assert stacked([file, other, further], [(".wh.tmp", 0)]) == ["bin/x", "bin/z"]
    assert stacked([file, further, other], [(".wh.tmp", 0)]) == ["bin/z"]
    assert stacked([file, other]) == []


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        bz2.compress,
        zstandard.compress,
        lambda data: gzip.compress(data[:512]) + gzip.compress(b"") + gzip.compress(data[512:]),
        lambda data: zstandard.compress(data[:700]) + SKIPPABLE + zstandard.compress(data[700:]),
        lambda data: SKIPPABLE + zstandard.compress(data),
    ],
)
def test_a_layer_is_read_whatever_it_is_packed_with(pack: Callable[[bytes], bytes]) -> None:
    data = make_layer_tar([("a", 0o755), SU, ("z", 0o755)])
    assert programs_with(pack(data), "x", ()) == ("usr/bin/su",)


def test_a_layer_of_an_estargz_has_a_gzip_stream_for_each_file() -> None:
    data = make_layer_tar([*((f"f{number}", 0o755) for number in range(2000)), SU])
    packed = b"".join(gzip.compress(data[at : at + 512], 1) for at in range(0, len(data), 512))
    assert programs_with(packed, "x", ()) == ("usr/bin/su",)


@pytest.mark.parametrize("data", [b"", bytes(1024), gzip.compress(bytes(1024), mtime=0)], ids=["none", "tar", "gzip"])
def test_an_empty_layer_changes_nothing(data: bytes) -> None:
    assert programs_with(data, "x", ("usr/bin/su",)) == ("usr/bin/su",)


GOOD = make_layer_tar([("a", 0o755, tarfile.REGTYPE, "", b"hello" * 1000)])


@pytest.mark.parametrize(
    "data",
    [
        b"no archive",
        b"\x1f\x8b",
        gzip.compress(GOOD)[:-20],
        GOOD[:700],
        GOOD[:100] + b"7" + GOOD[101:],
        zstandard.compress(GOOD)[:-8],
        lzma.compress(GOOD),
        GOOD + b"more",
        make_layer_tar([("../a", 0o755)]),
        make_layer_tar([("a", 0o755, tarfile.LNKTYPE, "../b")]),
        make_layer_tar([("a", 0o755, tarfile.GNUTYPE_SPARSE)]),
        make_layer_tar([("a", 0o755, b"9")]),
        gzip.compress(GOOD) + b"more",
    ],
    ids=map(str, range(13)),
)
def test_what_cannot_be_read_to_its_end_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        programs_with(data, "x", ())


def test_a_device_with_content_is_refused() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        member = tarfile.TarInfo("a")
        member.size = 512
        archive.addfile(member, io.BytesIO(bytes(512)))
    data = bytearray(target.getvalue())
    data[156:157] = b"3"
    total = sum(data[:512]) - sum(data[148:156]) + 8 * 0x20
    data[148:156] = b"%06o\x00 " % total
    with pytest.raises(Invalid, match="device"):
        programs_with(bytes(data), "x", ())


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "LIMITS", layers.ArchiveLimits(free_size=100_000, unpacked=100_000))
    big = make_layer_tar([("a", 0o755, tarfile.REGTYPE, "", bytes(200_000))])
    for pack in (gzip.compress, zstandard.compress):
        with pytest.raises(Invalid, match="would unpack to more"):
            programs_with(pack(big), "x", ())


def test_too_many_entries_and_too_many_programs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many = make_layer_tar([(f"f{number}", 0o4755) for number in range(layers.MOST_PROGRAMS + 1)])
    with pytest.raises(Invalid, match="programs with setuid"):
        programs_with(many, "x", ())
    with pytest.raises(Invalid, match="programs with setuid"):
        programs_with(make_layer_tar([SU]), "x", [f"f{number}" for number in range(layers.MOST_PROGRAMS)])
    long = make_layer_tar([("a/" * 1500 + str(number), 0o4755) for number in range(30)])
    with pytest.raises(Invalid, match="too long names"):
        programs_with(long, "x", ())
    monkeypatch.setattr(layers, "LIMITS", layers.ArchiveLimits(entries=10, free_entries=10))
    with pytest.raises(Invalid, match="more than 10 entries"):
        programs_with(make_layer_tar([(f"f{number}", 0o755) for number in range(11)]), "x", ())


def test_names_that_are_no_utf_8_stay_apart() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        for name in ("\xe9", "\xea"):
            member = tarfile.TarInfo(name)
            member.mode = 0o4755
            archive.addfile(member)
    assert programs_with(target.getvalue(), "x", ()) == ("\\xe9", "\\xea")


def test_a_chain_is_named_as_the_image_specification_says() -> None:
    one, two = (f"sha256:{digit * 64}" for digit in "12")
    assert chain_of("", one) == one
    assert chain_of(one, two) == digest_of(f"{one} {two}".encode())
    assert chain_of(two, one) != chain_of(one, two)
