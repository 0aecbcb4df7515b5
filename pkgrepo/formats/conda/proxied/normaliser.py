"""
The normalisers of documents of an upstream channel.

Each record becomes an entry of its package's section, with the file that it stands for. A record that is malformed, or
has no digest that its file could be verified with, is left out, so that it does not take the others with it. This
module runs in a child process and imports little.

For 600,000 records (360 MB of JSON) it takes 8 s and 700 MB of memory there: the document, a table, and its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

import msgspec
import zstandard
from msgspec import UNSET, Raw, UnsetType

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import ENDINGS, LONGEST_FILE_NAME, REPODATA_SIZE, check_build, check_version, is_name
from pkgrepo.formats.conda.paths import media_type_of
from pkgrepo.formats.conda.versions import order_key
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, Normalised, name_in, section_of
from pkgrepo.untrusted.strict_json import ERRORS

REPODATA_NORMALISER: Final = f"{__name__}:normalise_repodata"
EXPORTS_NORMALISER: Final = f"{__name__}:normalise_exports"
CHANNELDATA_NORMALISER: Final = f"{__name__}:normalise_channeldata"

RECORD: Final = "record"  # the kinds of fragments begin so, and end with that of the file's name
EXPORTS: Final = "exports"
ABOUT: Final = "about"
NAMES: Final = "names"  # in ``top``: of the packages, in order
SUBDIRS: Final = "subdirs"  # in ``top`` of the data of a channel

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_WINDOW: Final = 128 * 1024 * 1024  # bytes, as zstd's highest level has it
_PIECE: Final = 1024 * 1024  # bytes
_DIGESTS: Final = {"md5": re.compile(r"[0-9a-fA-F]{32}"), "sha256": re.compile(r"[0-9a-fA-F]{64}")}
_LONGEST_ENDING: Final = max(map(len, ENDINGS))
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999: conda takes a larger timestamp for milliseconds
_LATEST_MS: Final = 1000 * _LAST_SECOND
_LARGEST_SIZE: Final = 2**63 - 1  # bytes; what else a channel says of a size is none


class _Info(msgspec.Struct):
    subdir: str | None = None
    base_url: str | None = None


class _Folder(msgspec.Struct):
    info: _Info | None = None
    packages: dict[str, Raw] = {}
    conda: dict[str, Raw] = msgspec.field(name="packages.conda", default_factory=dict)


class _Record(msgspec.Struct):
    """The fields that are read here; those that would lead clients elsewhere are not passed on."""

    name: str
    version: str
    build: str
    depends: list[str] = []
    subdir: str | None = None
    md5: str | None = None
    sha256: str | None = None
    size: int | None = None
    timestamp: int | float | None = None
    indexed_timestamp: int | float | None = None
    fn: Any | UnsetType = UNSET
    url: Any | UnsetType = UNSET
    channel: Any | UnsetType = UNSET
    schannel: Any | UnsetType = UNSET


class _Exports(msgspec.Struct):
    run_exports: dict[str, list[str]] = {}


class _Channel(msgspec.Struct):
    packages: dict[str, Raw] = {}
    subdirs: list[str] = []


_read_folder = msgspec.json.Decoder(_Folder).decode
_read_record = msgspec.json.Decoder(_Record).decode
_read_object = msgspec.json.Decoder(dict[str, Raw]).decode
_read_exports = msgspec.json.Decoder(_Exports).decode
_read_channel = msgspec.json.Decoder(_Channel).decode
_encode = msgspec.json.Encoder().encode


def normalise_repodata(source: bytes, context: Context, *, most: int = REPODATA_SIZE) -> Normalised:
    """
    The parts of ``repodata.json`` or ``current_repodata.json``, see L{pkgrepo.proxy.parts.values.NormaliserFunction}.

    :raises Invalid: it is no such document, or that of another folder
    """
    folder = _parse(_read_folder, source, most)
    subdir, base = _check_info(folder.info, context)
    places, names = _order(folder)
    return Normalised({NAMES: names}, _records(folder, places, subdir, base), ordered=True)


def normalise_exports(source: bytes, context: Context) -> Normalised:
    """The parts of ``run_exports.json`` (CEP 12). :raises Invalid: it is no such document, or that of another folder"""
    folder = _parse(_read_folder, source)
    _check_info(folder.info, context)
    places, names = _order(folder)
    return Normalised({NAMES: names}, _exports(folder, places), ordered=True)


def normalise_channeldata(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The parts of ``channeldata.json`` (CEP 38). :raises Invalid: it is no such document"""
    channel = _parse(_read_channel, source)
    names = sorted(filter(is_name, channel.packages))
    top = {NAMES: names, SUBDIRS: [each for each in channel.subdirs if len(each) <= 64][:100]}
    return Normalised(top, _abouts(channel.packages, names), ordered=True)


def _parse(read: Any, source: bytes, most: int = REPODATA_SIZE) -> Any:
    try:
        return read(_unpack(source, most))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"it is no document of a channel: {error}") from None


def _unpack(source: bytes, most: int) -> bytes:
    """A document without its compression. :raises Invalid: it cannot be unpacked, or is too large"""
    if not source.startswith(_ZSTD_MAGIC):
        return source
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        size = zstandard.frame_content_size(source)
        if size > most:
            raise Invalid(f"it has more than {most} bytes")
        if size >= 0:
            return unpacker.decompress(source)
        found = bytearray()
        for piece in unpacker.read_to_iter(source, write_size=_PIECE):
            found += piece
            if len(found) > most:
                raise Invalid(f"it has more than {most} bytes")
    except zstandard.ZstdError as error:
        raise Invalid(f"it cannot be unpacked: {error}") from None
    return bytes(found)


def _check_info(info: _Info | None, context: Context) -> tuple[str, str]:
    """The folder, and the address of its files with a slash at the end (CEP 15)."""
    said = None if info is None else info.subdir
    if said is not None and said != context.name:
        raise Invalid(f"it is a document of the folder {said[:50]!r}")
    base = urljoin(context.asked_url or context.url, (info.base_url if info is not None else None) or ".")
    if urlsplit(base).scheme not in ("http", "https"):
        raise Invalid("its base_url is no address of an HTTP server")
    return context.name, base.rstrip("/") + "/"


def _order(folder: _Folder) -> tuple[list[tuple[bytes, str]], list[str]]:
    """The places of the files whose names can be served, in order, and the names of their packages."""
    places = [
        (place, file)
        for ending, files in zip(ENDINGS, (folder.conda, folder.packages), strict=True)
        for file in files
        if file.endswith(ending) and (place := _place(file.removesuffix(ending))) is not None
    ]
    places.sort()
    return places, list(dict.fromkeys(name_in(place) for place, _ in places))


def _place(stem: str) -> bytes | None:
    parts = stem.rsplit("-", 2)
    if len(parts) != 3 or len(stem) > LONGEST_FILE_NAME - _LONGEST_ENDING:
        return None
    section, order = _section(parts[0]), _order_of(parts[1])
    return None if section is None or order is None or not _is_build(parts[2]) else section + order


@lru_cache(65536)
def _section(name: str) -> bytes | None:
    return section_of(name) if is_name(name) else None


@lru_cache(65536)
def _order_of(version: str) -> bytes | None:
    try:
        return order_key(check_version(version))
    except Invalid:
        return None


@lru_cache(65536)
def _is_build(build: str) -> bool:
    try:
        check_build(build)
    except Invalid:
        return False
    return True


def _records(folder: _Folder, places: list[tuple[bytes, str]], subdir: str, base: str) -> Iterator[Entry]:
    for place, file in places:
        ending = _ending(file)
        raw = (folder.conda if ending == ENDINGS[0] else folder.packages)[file]
        try:
            record = _read_record(raw)
        except ERRORS:
            continue
        digests = _digests(record)
        if digests is None or f"{record.name}-{record.version}-{record.build}{ending}" != file:
            continue
        path = f"{subdir}/{file}"
        size = record.size if record.size is not None and 0 <= record.size <= _LARGEST_SIZE else None
        yield Entry(
            sort=place,
            key=file,
            version=record.version,
            published_ms=_published_ms(record),
            first_seen=False,
            fragments={f"{RECORD}{ending}": _passed_on(raw, record)},
            files=[FileSource(path, base + quote(file), size, digests, media_type_of(ending), {})],
        )


def _digests(record: _Record) -> dict[str, str] | None:
    """The digests of a file, of which there is at least one; None if one is malformed."""
    found: dict[str, str] = {}
    for algorithm, pattern in _DIGESTS.items():
        digest = record.sha256 if algorithm == "sha256" else record.md5
        if digest is None:
            continue
        if not pattern.fullmatch(digest):
            return None
        found[algorithm] = digest.lower()
    return found or None


def _published_ms(record: _Record) -> int | None:
    """When the channel indexed a file, if it says that (CEP 47), else when it was built."""
    said = record.timestamp if record.indexed_timestamp is None else record.indexed_timestamp
    if said is None or not 0 < said <= _LATEST_MS:
        return None
    return int(said) if said > _LAST_SECOND else int(said * 1000)


def _passed_on(raw: Raw, record: _Record) -> bytes:
    """The record as clients get it."""
    leading = [each for each in ("fn", "url", "channel", "schannel") if getattr(record, each) is not UNSET]
    if not leading:
        return bytes(raw)
    fields: Mapping[str, Raw] = _read_object(raw)
    return _encode({key: value for key, value in fields.items() if key not in leading})


def _exports(folder: _Folder, places: list[tuple[bytes, str]]) -> Iterator[Entry]:
    for place, file in places:
        ending = _ending(file)
        try:
            found = _read_exports((folder.conda if ending == ENDINGS[0] else folder.packages)[file])
        except ERRORS:
            continue
        yield _entry(place, file, f"{EXPORTS}{ending}", _encode(found))


def _abouts(packages: Mapping[str, Raw], names: list[str]) -> Iterator[Entry]:
    for name in names:
        try:
            _read_object(packages[name])
        except ERRORS:
            continue
        yield _entry(section_of(name), name, ABOUT, bytes(packages[name]))


def _entry(sort: bytes, key: str, kind: str, body: bytes) -> Entry:
    return Entry(sort, key, "", 0, False, {kind: body}, [])


def _ending(file: str) -> str:
    return ENDINGS[0] if file.endswith(ENDINGS[0]) else ENDINGS[1]
