"""
Makes a conda package of a pure wheel.

The same wheel with the same time of publication always gives the same bytes: members are sorted, have one date and no
owner, and are compressed with one level. So two processes that make a package at the same time make the same.

=======================================  ====================================================================
in the wheel                             in the package
=======================================  ====================================================================
``x/y.py``, ``*.data/purelib``,          ``site-packages/...``
``*.data/platlib``
``*.data/scripts``                       ``python-scripts/...``; ``#!python`` becomes ``#!/usr/bin/env python``
``*.data/data``                          below the root of the environment
``*.data/headers``                       none: their place depends on the version of Python
compiled ``.pyc`` files                  left out: conda compiles when it installs
=======================================  ====================================================================

``INSTALLER`` says that conda installs it, and ``RECORD`` has no lines of ``*.data``.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from email.message import Message
from email.parser import HeaderParser
from typing import Any, Final

import msgspec
import zstandard
from attrs import frozen
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.description import Description, parse_description
from pkgrepo.formats.conda.names import (
    ABOUT_SIZE,
    CONDA,
    CORE_METADATA_SIZE,
    ENTRY_POINTS_SIZE,
    INDEX_SIZE,
    MOST_ENTRY_POINTS,
    NOARCH,
    RECORD_SIZE,
    SCRIPT_SIZE,
    WHEEL_SIZE,
    WHEEL_UNPACKED,
    FileName,
    check_name,
    check_version,
)
from pkgrepo.formats.conda.wheels.requirements import conda_name, depends_on
from pkgrepo.untrusted.text import quoted

SITE: Final = "site-packages"
_SCRIPTS: Final = "python-scripts"
_PLACES: Final = {"purelib": f"{SITE}/", "platlib": f"{SITE}/", "scripts": f"{_SCRIPTS}/", "data": ""}
_RESERVED: Final = frozenset({"info", "conda-meta", "pkgs", "envs", SITE, _SCRIPTS})  # conda's, below the root
_REPLACED: Final = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json"})
_GROUPS: Final = ("console_scripts", "gui_scripts")
_SHEBANG: Final = re.compile(rb"\A#!pythonw?(?=[ \r\n]|$)")
_COMMAND: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_OBJECT: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*:\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", re.ASCII)


@frozen
class WheelFiles:
    """An open wheel: its archive, and the names of its folders ``*.dist-info`` and ``*.data``."""

    source: Source
    archive: ZipArchive
    info: str
    data: str

    @classmethod
    def open(cls, source: Source) -> WheelFiles:
        """Open a wheel. :raises Invalid: it is damaged, or does not have one ``*.dist-info`` folder"""
        archive = ZipArchive(source)
        tops = {name.partition("/")[0] for name in archive.entries}
        infos = [top for top in tops if top.endswith(".dist-info")]
        if len(infos) != 1:
            raise source.refuse("must have exactly one .dist-info folder")
        return cls(source, archive, infos[0], infos[0].removesuffix(".dist-info") + ".data")

    def read_info(self, name: str, limit: int) -> bytes | None:
        """A file of the ``*.dist-info`` folder, or None. :raises Invalid: it is damaged, or longer than ``limit``"""
        return self.archive.read(f"{self.info}/{name}", limit)

    def places(self) -> dict[str, str]:
        """
        The members to copy, by their places in the package, sorted.

        :raises Invalid: two have the same place, or one has a place that is not for packages
        """
        found: dict[str, str] = {}
        folded: set[str] = set()
        for name, entry in self.archive.entries.items():
            place = None if entry.is_folder or name.endswith(".pyc") else self._place_of(name)
            if place is None:
                continue
            if place.casefold() in folded:
                raise self.source.refuse(f"has two files for the place {quoted(place)}")
            folded.add(place.casefold())
            found[place] = name
        return dict(sorted(found.items()))

    def replacements(self, places: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        """Files that the package has in another form, by their places: scripts, RECORD and INSTALLER."""
        yield f"{SITE}/{self.info}/INSTALLER", b"conda\n"
        record = self.read_info("RECORD", RECORD_SIZE)
        if record is not None:
            lines = record.splitlines(keepends=True)
            prefixes = (self.data.encode() + b"/", b'"' + self.data.encode() + b"/")
            yield f"{SITE}/{self.info}/RECORD", b"".join(each for each in lines if not each.startswith(prefixes))
        for place, name in places.items():
            if place.startswith(f"{_SCRIPTS}/"):
                script = self.archive.read(name, SCRIPT_SIZE) or b""
                yield place, _SHEBANG.sub(b"#!/usr/bin/env python", script, count=1)

    def entry_points(self) -> list[str]:
        """
        The commands, as ``name = module:function``, sorted.

        :raises Invalid: ``entry_points.txt`` is malformed, or has a name that is none of a command
        """
        text = self.read_info("entry_points.txt", ENTRY_POINTS_SIZE)
        if not text:
            return []
        parser: Any = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        parser.optionxform = str  # names keep their case
        try:
            parser.read_string(text.decode())
        except (ConfigError, UnicodeDecodeError):
            raise self.source.refuse("has a malformed entry_points.txt") from None
        found = {name: value for group in _GROUPS if parser.has_section(group) for name, value in parser.items(group)}
        if len(found) > MOST_ENTRY_POINTS:
            raise self.source.refuse(f"has more than {MOST_ENTRY_POINTS} commands")
        return [self._command(name, value) for name, value in sorted(found.items())]

    def _command(self, name: str, value: str) -> str:
        target = _OBJECT.fullmatch(value.partition("[")[0].strip())
        if not _COMMAND.fullmatch(name) or target is None:
            raise self.source.refuse(f"has a command {quoted(name)} that conda cannot make")
        return f"{name} = {target[1]}:{target[2]}"

    def _place_of(self, name: str) -> str | None:
        top, _, rest = name.partition("/")
        if top == self.info and rest in _REPLACED:
            return None
        if top != self.data:
            return f"{SITE}/{name}"
        kind, _, path = rest.partition("/")
        if kind not in _PLACES or not path:
            raise self.source.refuse(f"has files in {quoted(f'*.data/{kind}')}, which depend on the version of Python")
        if kind == "scripts" and ("/" in path or not path.isprintable()):
            raise self.source.refuse(f"has a script {quoted(path)} in a folder")
        if kind == "data" and path.partition("/")[0].casefold() in _RESERVED:
            raise self.source.refuse(f"has a file {quoted(path)} at a place that is conda's")
        return _PLACES[kind] + path


LEVEL: Final = 9  # of zstd; 12 takes six times as long for 4 % less
DATE: Final = (1980, 1, 1, 0, 0, 0)  # the first of zip archives
SECONDS: Final = 315_532_800  # the same, since the epoch
# What follows the checksum in the header of a regular file in GNU's format, and its part of the sum, which counts the
# checksum itself as eight blanks.
_REST: Final = (b"0" + bytes(100) + b"ustar  \0").ljust(356, b"\0")
_REST_SUM: Final = sum(_REST) + sum(b" " * 8)
WHEEL_INFO_SIZE: Final = 16 * 1024  # bytes of the file WHEEL; 100 are usual


@frozen
class WheelName:
    """What the name of a wheel says: the conda package that it becomes, and whether it can become one."""

    package: FileName
    build_number: int


@frozen
class Converted:
    """A conda package: the name of its file, its bytes, and what it says of itself."""

    name: FileName
    data: bytes
    description: Description


def read_wheel_name(filename: str) -> WheelName:
    """
    What the file name of a wheel says.

    :raises Invalid: it is no wheel of Python 3 for all platforms, or conda cannot have its name or version
    """
    try:
        project, version, build, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        raise Invalid("its file name is no name of a wheel", "filename") from None
    if not any(tag.abi == "none" and tag.platform == "any" and tag.interpreter.startswith("py3") for tag in tags):
        raise Invalid("it is not for Python 3 on all platforms", "filename")
    number = build[0] if build else 0
    if number >= 1 << 31 or len(str(number)) > 10:
        raise Invalid("its build number is too large", "filename")
    name = FileName(check_name(conda_name(project)), check_version(str(version)), f"py_{number}", CONDA)
    return WheelName(name, number)


def convert_wheel(file: int | bytes, filename: str, published_ms: int) -> Converted:
    """
    The conda package of a wheel, given as a file descriptor (which stays open) or as bytes. Blocks: use a thread.

    ``published_ms`` is when the wheel was published, in milliseconds since the epoch: solvers compare it.

    :raises Invalid: it cannot be converted; the sentence says why
    """
    source = Source(file, "the wheel")
    if source.size > WHEEL_SIZE:
        raise Invalid(f"it is larger than {WHEEL_SIZE} bytes", "content")
    name = read_wheel_name(filename)
    wheel = WheelFiles.open(source)
    if sum(entry.size for entry in wheel.archive.entries.values()) > WHEEL_UNPACKED:
        raise Invalid(f"it would unpack to more than {WHEEL_UNPACKED} bytes", "content")
    _check_pure(wheel)
    metadata = _headers(wheel, "METADATA", CORE_METADATA_SIZE)
    depends = depends_on(metadata["Requires-Python"], metadata.get_all("Requires-Dist", []))
    payload, paths = _pack_payload(wheel)
    index = {
        "arch": None,
        "build": name.package.build,
        "build_number": name.build_number,
        "depends": depends,
        "license": _license(metadata),
        "name": name.package.name,
        "noarch": "python",
        "platform": None,
        "subdir": NOARCH,
        "timestamp": published_ms,
        "version": name.package.version,
    }
    noarch = {"type": "python", "entry_points": wheel.entry_points()}
    documents = {
        "about.json": _about(metadata),
        "index.json": index,
        "link.json": {"noarch": noarch, "package_metadata_version": 1},
        "paths.json": {"paths": paths, "paths_version": 1},
    }
    info = {each: msgspec.json.encode(document, order="sorted") for each, document in documents.items()}
    description = _describe(info["index.json"], info["about.json"])
    info["files"] = "".join(f"{each['_path']}\n" for each in paths).encode()
    return Converted(name.package, _pack_conda(name.package.stem, _pack_info(info), payload), description)


def _check_pure(wheel: WheelFiles) -> None:
    if (_headers(wheel, "WHEEL", WHEEL_INFO_SIZE)["Root-Is-Purelib"] or "").strip().lower() != "true":
        raise Invalid("it is not a pure wheel: Root-Is-Purelib is not true", "content")


def _headers(wheel: WheelFiles, name: str, limit: int) -> Message:
    data = wheel.read_info(name, limit)
    if data is None:
        raise wheel.source.refuse(f"has no {name}")
    return HeaderParser().parsestr(data.decode("utf-8", "replace"))


def _license(metadata: Message) -> str:
    return str(metadata["License-Expression"] or metadata["License"] or "").partition("\n")[0].strip()[:200]


def _about(metadata: Message) -> dict[str, str]:
    texts = {"home": metadata["Home-page"], "license": _license(metadata), "summary": metadata["Summary"]}
    return {key: str(text).strip() for key, text in texts.items() if text}


def _pack_payload(wheel: WheelFiles) -> tuple[bytes, list[dict[str, Any]]]:
    """The archive of the files, and their entries in ``paths.json``."""
    places = wheel.places()
    replaced = dict(wheel.replacements(places))
    paths: list[dict[str, Any]] = []

    def members() -> Iterator[tuple[str, int, Iterable[bytes]]]:
        for place in sorted({*places, *replaced}):
            data = replaced.get(place)
            size = wheel.archive.entries[places[place]].size if data is None else len(data)
            digest = hashlib.sha256()
            pieces = wheel.archive.pieces(places[place]) if data is None else iter((data,))
            yield place, size, _hashed(pieces, digest)
            entry = {"_path": place, "path_type": "hardlink", "sha256": digest.hexdigest(), "size_in_bytes": size}
            paths.append(entry)

    sizes = [wheel.archive.entries[each].size for each in places.values()]
    return _pack_tar(members(), sum(sizes) + sum(map(len, replaced.values()))), paths


def _hashed(pieces: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _describe(index: bytes, about: bytes) -> Description:
    """What a channel reads from a package with these documents, under the same limits."""
    if len(index) > INDEX_SIZE or len(about) > ABOUT_SIZE:
        raise Invalid("its metadata are too long for a conda package", "content")
    return parse_description(index, about, None)


def _pack_info(texts: Mapping[str, bytes]) -> bytes:
    members = ((f"info/{name}", len(text), (text,)) for name, text in sorted(texts.items()))
    return _pack_tar(members, sum(map(len, texts.values())))


def _pack_tar(members: Iterable[tuple[str, int, Iterable[bytes]]], total: int) -> bytes:
    """
    A tar archive of files, each given by path, size and content, compressed.

    ``total`` is about the size of all: without it the compressor clears tables for the largest, which takes 2 ms.
    """
    target = io.BytesIO()
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, source_size=total + tarfile.RECORDSIZE)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    with compressor.stream_writer(target, closefd=False) as writer:
        for path, size, pieces in members:
            writer.write(_header(path, size, 0o755 if path.startswith("python-scripts/") else 0o644))
            for piece in pieces:
                writer.write(piece)
            writer.write(bytes(-size % tarfile.BLOCKSIZE))
        writer.write(bytes(2 * tarfile.BLOCKSIZE))
    return target.getvalue()


def _header(path: str, size: int, mode: int) -> bytes:
    """The header of a file in a tar archive, the same as tarfile makes, which takes five times as long."""
    name = path.encode()
    if len(name) > tarfile.LENGTH_NAME:
        member = tarfile.TarInfo(path)
        member.size, member.mtime, member.mode = size, SECONDS, mode
        return member.tobuf(tarfile.GNU_FORMAT, "utf-8")
    head = b"%b%07o\0%07o\0%07o\0%011o\0%011o\0" % (name.ljust(tarfile.LENGTH_NAME, b"\0"), mode, 0, 0, size, SECONDS)
    return b"%b%06o\0 %b" % (head, sum(head) + _REST_SUM, _REST)


def _pack_conda(stem: str, info: bytes, payload: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (
            ("metadata.json", b'{"conda_pkg_format_version":2}'),
            (f"info-{stem}.tar.zst", info),
            (f"pkg-{stem}.tar.zst", payload),
        ):
            archive.writestr(zipfile.ZipInfo(name, DATE), data)
    return target.getvalue()
