"""The outer archive of gems: real ones, and what is refused."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import Dependency
from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem
from tests.support.gems import EMPTY_DATA, checksums, make_gem, make_gemspec, recorded
from tests.support.tarballs import make_tar

METADATA = gzip.compress(make_gemspec().encode())
MEMBERS = {"metadata.gz": METADATA, "data.tar.gz": EMPTY_DATA}


def gem(*members: tuple[str, bytes]) -> bytes:
    return make_tar(members or tuple(MEMBERS.items()))


def test_a_gem_that_was_built_by_rubygems() -> None:
    spec = inspect_gem(recorded("alpha-1.0.0.gem"))
    assert spec.full_name == "alpha-1.0.0"
    assert spec.rubygems_version == "3.3.15"
    assert spec.date == date(2026, 11, 22)
    assert spec.authors == ("Zoë Å", "B")
    assert spec.email == ("a@x.example", "b@x.example")
    assert spec.description == "Long\ntext"
    assert spec.licenses == ("MIT",)
    assert spec.homepage == "https://alpha.example"
    assert spec.metadata == {"source_code_uri": "https://src.example/alpha"}
    assert spec.required_ruby == ((">=", "2.5"),)
    assert spec.required_rubygems == ((">=", "0"),)
    assert spec.dependencies == (
        Dependency("rack", "runtime", ((">=", "1.0"), ("<", "3"))),
        Dependency("rake", "development"),
        Dependency("beta.x", "runtime"),
    )


def test_a_gem_for_a_platform() -> None:
    spec = inspect_gem(recorded("Beta_x-0.2.0.pre1-x86_64-linux.gem"))
    assert (spec.name, spec.number, spec.platform) == ("Beta_x", "0.2.0.pre1", "x86_64-linux")
    assert spec.full_name == "Beta_x-0.2.0.pre1-x86_64-linux"
    assert spec.email == "a@x.example"


def test_a_signed_gem() -> None:
    assert inspect_gem(recorded("signed-1.0.gem")).full_name == "signed-1.0"


def test_a_gem_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "gem"
    path.write_bytes(make_gem("b", "2"))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert inspect_gem(descriptor).full_name == "b-2"
    finally:
        os.close(descriptor)


def test_old_gems_have_no_checksums() -> None:
    assert inspect_gem(gem()).full_name == "alpha-1.0.0"


@pytest.mark.parametrize("algorithm", ["SHA1", "SHA256", "SHA512"])
def test_checksums_are_compared(algorithm: str) -> None:
    right = checksums(MEMBERS, [algorithm])
    assert inspect_gem(gem(*MEMBERS.items(), ("checksums.yaml.gz", right))).name == "alpha"
    wrong = checksums({**MEMBERS, "data.tar.gz": b"other"}, [algorithm])
    with pytest.raises(Invalid, match=f"data.tar.gz whose {algorithm} is not the one in checksums.yaml.gz"):
        inspect_gem(gem(*MEMBERS.items(), ("checksums.yaml.gz", wrong)))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("data.tar.gz", EMPTY_DATA)], "has no metadata.gz"),
        ([("metadata.gz", METADATA)], "has no data.tar.gz"),
        ([*MEMBERS.items(), ("metadata.gz", METADATA)], "metadata.gz twice"),
        ([*MEMBERS.items(), ("other", b"")], "'other', which is none"),
        ([*MEMBERS.items(), ("./metadata.gz", METADATA)], "none of a gem's files"),
        ([*MEMBERS.items(), ("../../etc/passwd", b"")], "none of a gem's files"),
        ([("metadata.gz", b"nothing"), ("data.tar.gz", EMPTY_DATA)], "metadata.gz in the file is damaged"),
        ([("metadata.gz", METADATA[:-9]), ("data.tar.gz", EMPTY_DATA)], "truncated"),
        ([("metadata.gz", METADATA), ("data.tar.gz", b"PK")], "data.tar.gz that is not compressed"),
        ([("metadata.gz", METADATA), ("data.tar.gz", b"")], "data.tar.gz that is not compressed"),
        ([*MEMBERS.items(), ("checksums.yaml.gz", gzip.compress(b"- a"))], "no mapping"),
        ([*MEMBERS.items(), ("checksums.yaml.gz", gzip.compress(b"SHA256: x"))], "SHA256 is no mapping"),
        ([*MEMBERS.items(), ("checksums.yaml.gz", gzip.compress(b"SHA256: {x: y}"))], "checksum of 'x'"),
        ([*MEMBERS.items(), ("checksums.yaml.gz", gzip.compress(b"SHA256: {metadata.gz: [y]}"))], "SHA256 is not"),
        ([*MEMBERS.items(), ("checksums.yaml.gz", gzip.compress(bytes(70_000)))], "inflates to more than"),
        ([*MEMBERS.items(), ("metadata.gz.sig", bytes(70_000))], "sig of more than"),
        ([("metadata.gz", gzip.compress(bytes(11_000_000))), ("data.tar.gz", EMPTY_DATA)], "inflates to more than"),
        ([("metadata.gz", os.urandom(11_000_000)), ("data.tar.gz", EMPTY_DATA)], "metadata.gz of more than"),
    ],
)
def test_what_is_no_gem_is_refused(members: Sequence[tuple[str, bytes]], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        inspect_gem(gem(*members))


@pytest.mark.parametrize("data", [b"", b"x", b"x" * 2000, gzip.compress(gem()), bytes(512), b"PK\x03\x04" + bytes(600)])
def test_what_is_no_archive_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        inspect_gem(data)


@pytest.mark.parametrize("cut", [100, 600, 1500, 2040])
def test_truncated_gems_are_refused(cut: int) -> None:
    with pytest.raises(Invalid):
        inspect_gem(make_gem()[:cut])


def test_links_are_refused() -> None:
    data = bytearray(gem())
    data[156:157] = b"2"  # a symbolic link, with a target
    data[157:158] = b"x"
    data[124:135] = b"00000000000"
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\x00 " % sum(data[:512])
    with pytest.raises(Invalid, match="none of a gem's files"):
        inspect_gem(bytes(data))


def test_certificates_need_a_signature_of_each_file() -> None:
    signed = gzip.compress(make_gemspec(extra="cert_chain:\n- x\n").encode())
    members = [("metadata.gz", signed), ("metadata.gz.sig", b"s"), ("data.tar.gz", EMPTY_DATA)]
    with pytest.raises(Invalid, match=r"certificates, but no data\.tar\.gz\.sig"):
        inspect_gem(gem(*members))
    assert inspect_gem(gem(*members, ("data.tar.gz.sig", b"s"))).name == "alpha"
