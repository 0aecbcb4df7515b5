"""Readers of archives: zip, tar, and what is packed with gzip, bzip2 and zstd, for each format's own rules."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from pkgrepo.archives.kinds import check_kind
from pkgrepo.archives.layers import programs_with
from pkgrepo.archives.listing import find_readme, list_archive
from pkgrepo.archives.source import Source
from pkgrepo.archives.streams import Bunzip2, Gunzip, PlainStream, Unzstd
from pkgrepo.archives.tar_archive import Tar
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.crate import read_crate
from pkgrepo.formats.conda.names import parse_file_name
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.go.archive import read_module
from pkgrepo.formats.helm.chart import read_chart
from pkgrepo.formats.maven.deploy.contents import read_entries
from pkgrepo.formats.maven.upload.jar import read_inner_pom, read_jar
from pkgrepo.formats.npm.publish.tarball import inspect_tarball
from pkgrepo.formats.npm.semver import parse_version
from pkgrepo.formats.python.names import parse_upload
from pkgrepo.formats.python.upload.inspection import inspect
from pkgrepo.formats.rubygems.push.requests import read_gem
from tests.lab.fuzz.target import Target

Read = Callable[[bytes], object]

BLOCK: Final = 512
LIMIT: Final = 1024 * 1024
ZIP_WORDS: Final = (
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"PK\x07\x08",
    b"\x01\x00\x10\x00",
    b"up\x05\x00",
)
TAR_WORDS: Final = (
    b"ustar\x0000",
    b"ustar  \x00",
    b"12 path=a/b\n",
    b"9 size=1\n",
    b"\x80\x00\x00\x00",
    b"././@LongLink",
)


def with_tar_sums(data: bytes) -> bytes:
    """A tar whose headers have right checksums, as far as their sizes lead to each other."""
    mended, at = bytearray(data), 0
    while at + BLOCK <= len(mended):
        header = mended[at : at + BLOCK]
        if not any(header):
            break
        header[148:156] = b" " * 8
        mended[at + 148 : at + 156] = b"%06o\x00 " % sum(header)
        digits = bytes(header[124:136]).strip(b" \x00")
        size = int(digits, 8) if digits and not digits.strip(b"01234567") else 0
        at += BLOCK + -(-size // BLOCK) * BLOCK
    return bytes(mended)


def with_zip_sums(data: bytes) -> bytes:
    """A zip whose stored and deflated members have right checksums in both headers, where both are found."""
    mended, at = bytearray(data), -1
    while (at := mended.find(b"PK\x01\x02", at + 1)) >= 0 and at + 46 <= len(mended):
        method, packed = struct.unpack_from("<10xH8xI", mended, at)
        offset = struct.unpack_from("<42xI", mended, at)[0]
        if offset + 30 > len(mended) or mended[offset : offset + 4] != b"PK\x03\x04":
            continue
        name, extra = struct.unpack_from("<26x2H", mended, offset)
        content = bytes(mended[offset + 30 + name + extra :][:packed])
        if method == 8:
            unpack = zlib.decompressobj(-15)
            try:
                content = unpack.decompress(content, LIMIT)
            except zlib.error:
                continue
        for place in (at + 16, offset + 14):
            struct.pack_into("<I", mended, place, zlib.crc32(content))
    return bytes(mended)


def _read_zip(data: bytes) -> None:
    archive = ZipArchive(Source(data, "a.zip"))
    for name, entry in archive.entries.items():
        if not entry.is_folder:
            archive.head(name, 16)
            archive.read(name, LIMIT)


def _read_tar(data: bytes) -> None:
    source = Source(data, "a.tar")
    _walk(Tar(source, PlainStream(source)))


def _walk(tar: Tar) -> None:
    for member in tar:
        if member.is_file:
            tar.head(3)
            for _ in tar.pieces():
                pass


def _read_packed(data: bytes, opened: Callable[[Source], Gunzip | Bunzip2 | Unzstd]) -> None:
    source = Source(data, "a.tar.x")
    _walk(Tar(source, opened(source)))


def _listing(data: bytes, filename: str) -> None:
    list_archive(data, filename, digests=True)
    find_readme(data, filename)


def _kinds(data: bytes) -> None:
    for name in ("a.jar", "a.tgz", "a.gem", "a.pom", "a.xml", "a.asc", "a.json", "a.metadata", "a.gemspec.rz", "a.zst"):
        with suppress(Invalid):
            check_kind(Source(data, name), name)


def _layer(data: bytes) -> None:
    programs_with(data, "layer", ("usr/bin/su", "bin/mount"))


def _bundle(data: bytes) -> None:
    for entry in read_entries(Source(data, "bundle"), LIMIT):
        for _ in entry.pieces():
            pass


def _wheel(data: bytes) -> None:
    inspect(data, parse_upload("demo-1.0-py3-none-any.whl"))


def _sdist(data: bytes) -> None:
    inspect(data, parse_upload("demo-1.0.tar.gz"))


def _conda(data: bytes, ending: str) -> None:
    read_package(data, parse_file_name(f"demo-1.0-py_0.{ending}"))


def _tarball(data: bytes) -> None:
    inspect_tarball(data, "demo-1.0.0.tgz", "demo", parse_version("1.0.0"))


def _packed(pack: Callable[[bytes], bytes], read: Read) -> Read:
    """A reader of an archive whose packed form would hide its mutations: it is packed after them."""
    return lambda data: read(pack(data))


def _archives() -> Iterator[Target]:
    """The formats of archives."""
    yield Target("zip", _read_zip, ZIP_WORDS, with_zip_sums)
    yield Target("zip-listing", partial(_listing, filename="a.zip"), ZIP_WORDS, with_zip_sums)
    yield Target("tar", _read_tar, TAR_WORDS, with_tar_sums)
    yield Target("tar-listing", partial(_listing, filename="a.tar"), TAR_WORDS, with_tar_sums)
    yield Target("layer", _layer, (*TAR_WORDS, b".wh..wh..opq", b".wh."), with_tar_sums)
    yield Target("gzip", partial(_read_packed, opened=Gunzip), (b"\x1f\x8b\x08",))
    yield Target("bzip2", partial(_read_packed, opened=partial(Bunzip2, most_packed=LIMIT, most=LIMIT)), (b"BZh9",))
    yield Target("zstd", partial(_read_packed, opened=Unzstd), (b"\x28\xb5\x2f\xfd",))
    yield Target("kinds", _kinds)


def _formats() -> Iterator[Target]:
    """The formats of packages; those in a gzip file are packed after their mutations."""
    yield Target("wheel", _wheel, ZIP_WORDS, with_zip_sums)
    yield Target("conda", partial(_conda, ending="conda"), ZIP_WORDS, with_zip_sums)
    yield Target("module-zip", read_module, ZIP_WORDS, with_zip_sums)
    yield Target("jar", _jar, ZIP_WORDS)
    yield Target("maven-bundle", _bundle, ZIP_WORDS, with_zip_sums)
    yield Target("gem", read_gem, TAR_WORDS, with_tar_sums)
    inside_gzip: dict[str, Read] = {
        "sdist": _sdist,
        "npm-tarball": _tarball,
        "crate": read_crate,
        "chart": partial(read_chart, filename="demo-1.0.0.tgz"),
    }
    for name, read in inside_gzip.items():
        yield Target(name, _packed(partial(gzip.compress, compresslevel=1, mtime=0), read), TAR_WORDS, with_tar_sums)
    bzip2 = _packed(partial(bz2.compress, compresslevel=1), partial(_conda, ending="tar.bz2"))
    yield Target("conda-bzip2", bzip2, TAR_WORDS, with_tar_sums)


def _jar(data: bytes) -> None:
    read_jar(data)
    read_inner_pom(data)


def targets() -> Iterator[Target]:
    """All of them."""
    yield from _archives()
    yield from _formats()
