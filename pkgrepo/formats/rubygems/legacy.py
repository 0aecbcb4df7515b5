"""
The legacy index: lists of all gems, and single gemspecs, in Ruby's Marshal format.

The lists are ``specs.4.8``, ``latest_specs.4.8`` and ``prerelease_specs.4.8``, with a row for each gem: name, version
and platform. A list is an array of rows in one stream, in which only the first row names its two symbols. So a list is
made by joining rows that were written before, each once.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import Dependency, GemSpec
from pkgrepo.formats.rubygems.marshal import FALSE, TRUE, VERSION, Stream, array, counted, integer, read_array
from pkgrepo.formats.rubygems.names import RUBY, full_version, is_full_version, is_name, is_prerelease

SPECIFICATION_VERSION: Final = 4

_INTEL: Final = re.compile(r"i\d86")
_NUMBERED: Final = re.compile(r"\d+(?:\.\d+)?$")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
# The first one that is found decides; its groups are the name of the system, if it is not the second element, and the
# version.
_SYSTEMS: Final[tuple[tuple[re.Pattern[str], str | None], ...]] = (
    (re.compile(r"aix(\d+)?"), "aix"),
    (re.compile("cygwin()"), "cygwin"),
    (re.compile(r"darwin(\d+)?"), "darwin"),
    (re.compile("^macruby$()"), "macruby"),
    (re.compile(r"freebsd(\d+)?"), "freebsd"),
    (re.compile("^j(?:ava|ruby)$()"), "java"),
    (re.compile(r"^java([\d.]*)"), "java"),
    (re.compile(r"^dalvik(\d+)?$"), "dalvik"),
    (re.compile("^dotnet$()"), "dotnet"),
    (re.compile(r"^dotnet([\d.]*)"), "dotnet"),
    (re.compile(r"linux-?(\w+)?"), "linux"),
    (re.compile("mingw32()"), "mingw32"),
    (re.compile(r"mingw-?(\w+)?"), "mingw"),
    (re.compile(r"(mswin\d+)(?:_(\d+))?"), None),
    (re.compile("netbsdelf()"), "netbsdelf"),
    (re.compile(r"openbsd(\d+\.\d+)?"), "openbsd"),
    (re.compile(r"solaris(\d+\.\d+)?"), "solaris"),
    (re.compile("wasi()"), "wasi"),
    (re.compile(r"^(\w+_platform)(\d+)?"), None),
)
SPECS: Final = "specs.4.8"
LATEST: Final = "latest_specs.4.8"
PRERELEASES: Final = "prerelease_specs.4.8"

# The kinds of the fragments that have the rows of a gem's live versions, in the order of versions.
RELEASE: Final = "release"
PRERELEASE: Final = "prerelease"
# The symbols of every list, in the order of their first use.
_SYMBOLS: Final = ("E", "Gem::Version")
_NAMES: Final = tuple(Stream().symbol(name) for name in _SYMBOLS)
_NUMBERS: Final = tuple(Stream(_SYMBOLS).symbol(name) for name in _SYMBOLS)
# What is the same in all rows but the first: 200,000 rows through L{Stream} take 10 times as long.
_ROW: Final = b"[" + integer(3)
_VERSION_HEAD: Final = b"U" + _NUMBERS[1] + b"[" + integer(1)
_AFTER_TEXT: Final = integer(1) + _NUMBERS[0] + TRUE


def quick_gemspec(spec: GemSpec) -> bytes:
    """
    A gemspec as ``quick/Marshal.4.8/<full name>.gemspec.rz`` has it: a zlib stream.

    Like those of the public registry it is abbreviated: it names no files and has no certificates.
    """
    return zlib.compress(marshal_gemspec(spec), 9)


def marshal_gemspec(spec: GemSpec) -> bytes:
    """A gemspec before compression: a Gem::Specification dumps itself as an array in a stream of its own."""
    return VERSION + b"u" + Stream().symbol("Gem::Specification") + counted(_fields(spec))


def _fields(spec: GemSpec) -> bytes:
    stream = Stream()
    fields = [
        stream.string(spec.rubygems_version),
        b"i" + integer(SPECIFICATION_VERSION),
        stream.string(spec.name),
        stream.version(spec.number),
        stream.utc_day(spec.date),
        stream.string(spec.summary),
        stream.requirement(spec.required_ruby),
        stream.requirement(spec.required_rubygems),
        stream.string(spec.original_platform),
        array([_dependency(stream, each) for each in spec.dependencies]),
        stream.string(""),  # the RubyForge project, which no client reads
        stream.strings(spec.email) if isinstance(spec.email, tuple) else stream.optional_string(spec.email),
        stream.strings(spec.authors),
        stream.optional_string(spec.description),
        stream.optional_string(spec.homepage),
        TRUE,  # has documentation
        _platform(stream, spec.platform),
        stream.strings(spec.licenses),
        stream.string_map(spec.metadata),
    ]
    return VERSION + array(fields)


def _platform(stream: Stream, text: str) -> bytes:
    """The text ``ruby``, or a Gem::Platform."""
    if text == RUBY:
        return stream.string(text)
    platform = parse_platform(text)
    variables = (("@cpu", platform.cpu), ("@os", platform.os), ("@version", platform.version))
    head = stream.object_head("Gem::Platform", len(variables))
    return head + b"".join(stream.symbol(name) + stream.optional_string(value) for name, value in variables)


def _dependency(stream: Stream, dependency: Dependency) -> bytes:
    prerelease = any(is_prerelease(number) for _, number in dependency.requirement)
    return b"".join(
        (
            stream.object_head("Gem::Dependency", 5),
            stream.symbol("@name"),
            stream.string(dependency.name),
            stream.symbol("@requirement"),
            stream.requirement(dependency.requirement),
            stream.symbol("@type"),
            stream.symbol(dependency.kind),
            stream.symbol("@prerelease"),
            TRUE if prerelease else FALSE,
            stream.symbol("@version_requirements"),
            stream.requirement(dependency.requirement),
        )
    )


@frozen
class Platform:
    """A platform; what its text does not say is None."""

    cpu: str | None
    os: str
    version: str | None


def parse_platform(text: str) -> Platform:
    """The parts of a platform that is not ``ruby``."""
    first, *rest = text.split("-")
    cpu = "x86" if _INTEL.search(first) else first
    if len(rest) > 1 and not _NUMBERED.search(rest[-1]):
        rest[-2:] = [f"{rest[-2]}-{rest[-1]}"]  # linux-musl
    if len(rest) == 2 and _NUMBER.fullmatch(rest[1]):
        return Platform(cpu, rest[0], rest[1])
    system, version = _system(rest[0] if rest else first)
    if rest:
        return Platform(cpu, system, version)
    return Platform("x86" if system.startswith("mswin") and system.endswith("32") else None, system, version)


def _system(text: str) -> tuple[str, str | None]:
    for pattern, name in _SYSTEMS:
        found = pattern.search(text)
        if found is not None:
            return name or found[1], found[found.re.groups] or None
    return "unknown", None


def list_row(name: str, number: str, platform: str) -> bytes:
    """The row of a gem in any place but the first one."""
    return b"".join((_ROW, _text(name), _VERSION_HEAD, _text(number), _text(platform)))


def _text(text: str) -> bytes:
    return b'I"' + counted(text.encode()) + _AFTER_TEXT


def list_head(rows: int) -> bytes:
    """What stands before the rows of a list of this length."""
    return VERSION + b"[" + integer(rows)


def first_row(row: bytes) -> bytes:
    """A row in the form for the first place, which names the symbols that all others number."""
    # The name ends at the first symbol: names of gems contain no semicolon.
    return row.replace(_NUMBERS[0], _NAMES[0], 1).replace(b"U" + _NUMBERS[1], b"U" + _NAMES[1], 1)


def join_rows(rows: Sequence[bytes]) -> bytes:
    """A whole list."""
    if not rows:
        return list_head(0)
    return b"".join((list_head(len(rows)), first_row(rows[0]), *rows[1:]))


def read_rows(data: bytes) -> Iterator[tuple[str, str]]:
    """
    The gems of an uncompressed list, as pairs of name and full version. Blocks.

    What no client could install is left out, as a gem that has the name of no file.

    :raises Invalid: it is no such list
    """
    for row in read_array(data):
        match row:
            case [str(name), {"version": str(number)}, str() | None as platform]:
                version = full_version(number, platform or RUBY)
                if is_name(name) and is_full_version(version):
                    yield name, version
            case _:
                raise Invalid("it has a row that is not of a gem")
