"""
The compact index of a gem server that has only the legacy index: folders of ``gem generate_index``, and old servers.

=============  ========================================================================================================
``/versions``  the gems of ``specs.4.8.gz`` and ``prerelease_specs.4.8.gz``. As MD5 of each ``/info`` it has one that no
               document has, so that Bundler asks each time whether the document that it keeps is the present one
``/info``      the versions of a gem in these lists, with what the gemspec of each says. A line that was made once
               stays. It has no checksum, which only the gem could tell, and no time of publication
=============  ========================================================================================================

A server that has ``/versions`` has a compact index, so that a gem without ``/info`` does not exist there.

The questions are in this module, too, and the normalisers, which run in a child process.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
from twisted.internet.defer import Deferred, FirstError, gatherResults

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.index.info import HEAD, INFO, info_line
from pkgrepo.formats.rubygems.legacy import PRERELEASES, SPECS, read_rows
from pkgrepo.formats.rubygems.marshal import UserDefined, read_value
from pkgrepo.formats.rubygems.names import RUBY, full_name, sort_key
from pkgrepo.formats.rubygems.paths import quick_path
from pkgrepo.formats.rubygems.push.gemspec_yaml import spec_of_fields
from pkgrepo.proxy.caching.questions import Composition, DocumentRequest, Sources
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Context, Normalised

from .hidden_gems import md5_of_nothing
from .normaliser import PIECES_HEAD, cut_pieces, info_entries, plain_entry

MOST_TTL_S: Final = 60  # of lists and the documents that they name, which must fit together
MOST_VERSIONS: Final = 5_000  # of one gem; each takes a request, once
AT_ONCE: Final = 8  # gemspecs
LARGEST_PACKED: Final = 64 * 1024  # bytes of a gemspec; 1,000 are usual
LARGEST_GEMSPEC: Final = 256 * 1024  # bytes when inflated

_LISTS: Final = (f"{SPECS}.gz", f"{PRERELEASES}.gz")
_VERSIONS: Final = "versions"  # the kind of fragments with the versions of a gem in a list, joined by commas
_HEAD: Final = b"created_at: 1970-01-01T00:00:00Z\n" + HEAD

# The places of fields in a dumped Gem::Specification, see ``_dump`` in lib/rubygems/specification.rb. The original
# platform names the files.
_PLACES: Final = {
    "name": 2,
    "version": 3,
    "required_ruby_version": 6,
    "required_rubygems_version": 7,
    "original_platform": 8,
    "dependencies": 9,
}


class _Row(msgspec.Struct, array_like=True, frozen=True):
    """A version of a gem: its line as it was made before, or its gemspec."""

    version: str
    line: bytes = b""
    gemspec: bytes = b""


_ROWS: Final = msgspec.msgpack.Decoder(list[_Row])


def info_composition(question: DocumentRequest) -> Composition:
    """How ``/info`` is made, to which this is the question."""
    return Composition(partial(_make_info, question), f"{__name__}:normalise_gemspecs")


def versions_composition() -> Composition:
    """How ``/versions`` is made."""
    return Composition(_make_versions, f"{__name__}:keep_versions")


def normalise_rows(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The versions of each gem in an uncompressed list. :raises Invalid: the bytes are no list"""
    gems: dict[str, list[str]] = {}
    for name, version in read_rows(source):
        gems.setdefault(name, []).append(version)
    return Normalised(
        {}, (plain_entry(_section(name), {_VERSIONS: ",".join(found).encode()}) for name, found in gems.items())
    )


def normalise_gemspecs(source: bytes, context: Context) -> Normalised:
    """The parts of ``/info`` that are made of gemspecs. :raises Invalid: one of them cannot be used"""
    lines = [row.line or _line(context.name, row) for row in _ROWS.decode(source)]
    return Normalised({}, info_entries(lines, context))


def keep_versions(source: bytes, context: Context) -> Normalised:  # noqa: ARG001 - of all normalisers
    """The list ``/versions`` in pieces, without the table of its MD5s, which are those of no document."""
    return Normalised({PIECES_HEAD: _HEAD.decode()}, cut_pieces(source, lines=True))


def read_gemspec(data: bytes) -> Mapping[str, Any]:
    """
    The fields of an inflated gemspec of ``quick/Marshal.4.8`` that indexes need, as they are in the YAML of gems.

    :raises Invalid: the bytes are no list
    """
    outer = read_value(data)
    if not isinstance(outer, UserDefined) or outer.name != "Gem::Specification":
        raise Invalid("it is no Gem::Specification")
    fields = read_value(outer.data)
    if not isinstance(fields, list) or len(fields) <= max(_PLACES.values()):
        raise Invalid("it is no Gem::Specification")
    found = {name: fields[place] for name, place in _PLACES.items()}
    return {**found, "platform": found["original_platform"]}


async def _make_versions(sources: Sources) -> bytes | None:
    lists = [await sources.read(_list_question(file), _read_lines) for file in _LISTS]
    if all(each is None for each in lists):
        return None
    return b"".join(each for each in lists if each)


async def _make_info(question: DocumentRequest, sources: Sources) -> bytes | None:
    name = question.name
    if await sources.has("versions"):
        return None
    listed: dict[str, None] = {}
    for file in _LISTS:
        listed.update(dict.fromkeys(await sources.read(_list_question(file), partial(_read_versions, name)) or ()))
    if not listed:
        return None
    if len(listed) > MOST_VERSIONS:
        raise Invalid(f"it has more than {MOST_VERSIONS} versions of {name}")
    lines = await sources.read_previous(question, _read_info) or {}
    new = [each for each in listed if each not in lines]
    gemspecs: dict[str, bytes] = {}
    for start in range(0, len(new), AT_ONCE):
        batch = new[start : start + AT_ONCE]
        found = await _together([_fetch_gemspec(sources, full_name(name, each)) for each in batch])
        gemspecs.update((version, each) for version, each in zip(batch, found, strict=True) if each is not None)
    rows = [_Row(each, lines.get(each, b""), gemspecs.get(each, b"")) for each in listed]
    return msgspec.msgpack.encode(
        sorted((row for row in rows if row.line or row.gemspec), key=lambda row: _order(row.version))
    )


async def _together(work: Sequence[Any]) -> list[bytes | None]:
    try:
        found: list[bytes | None] = await gatherResults(
            [Deferred.fromCoroutine(each) for each in work], consumeErrors=True
        )
    except FirstError as error:
        error.subFailure.raiseException()
        raise
    return found


async def _fetch_gemspec(sources: Sources, full: str) -> bytes | None:
    """A gemspec, inflated; None if the upstream lists the gem and does not have it."""
    packed = await sources.fetch(quote(quick_path(full)), LARGEST_PACKED)
    if packed is None:
        return None
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(packed, LARGEST_GEMSPEC)
    except zlib.error:
        raise Invalid(f"the gemspec of {full} is not compressed with zlib") from None
    if not inflater.eof:
        raise Invalid(f"the gemspec of {full} is truncated, or inflates to more than {LARGEST_GEMSPEC} bytes")
    return data


def _list_question(file: str) -> DocumentRequest:
    """The versions of all gems in a list of the legacy index; for each gem there is a section."""
    return DocumentRequest(
        key=f"rows/{file}",
        package_key="",
        name=file,
        urls=lambda url: [f"{url}/{file}"],
        accept="*/*",
        normaliser=f"{__name__}:normalise_rows",
        most_ttl_s=MOST_TTL_S,
        packed=True,
    )


def _section(name: str) -> bytes:
    return f"{name} ".encode()


def _read_versions(name: str, parts: PartsFile) -> list[str]:
    entry = parts.find(_section(name), "")
    return [] if entry is None else entry.fragments[_VERSIONS].decode().split(",")


def _read_lines(parts: PartsFile) -> bytes:
    """The lines of ``/versions`` for the gems in a list."""
    return b"".join(_versions_lines(parts))


def _versions_lines(parts: PartsFile) -> Iterator[bytes]:
    for entry in parts.entries((_VERSIONS,)):
        line = entry.sort + entry.fragments[_VERSIONS]
        yield b"%b %b\n" % (line, md5_of_nothing(line))


def _read_info(parts: PartsFile) -> dict[str, bytes]:
    return {each.version: each.fragments[INFO] for each in parts.entries((INFO,))}


def _line(name: str, row: _Row) -> bytes:
    full = full_name(name, row.version)
    try:
        spec = spec_of_fields(read_gemspec(row.gemspec))
    except Invalid as error:
        raise Invalid(f"the gemspec of {full} cannot be used: {error}") from None
    if spec.full_name != full:
        raise Invalid(f"the gemspec of {full} is that of another gem")
    return info_line(spec, None, None)


def _order(version: str) -> bytes:
    number, _, platform = version.partition("-")
    return sort_key(number, platform or RUBY)
