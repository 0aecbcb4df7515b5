"""The parts of a platform's text, as ``Gem::Platform`` of RubyGems 3.6 has them (lib/rubygems/platform.rb)."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

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
