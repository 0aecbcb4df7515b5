"""
The grammar and the order of versions (semantic versioning 2.0.0), and the bounds that comparators stand for.

Formats share what is here; some have a grammar of ranges of their own. ``^``, ``~`` and missing parts stand for a lower
and an upper bound; the upper one is ``2.0.0-0``, below every prerelease of 2.0.0. A prerelease is accepted only by
comparators of which one names a prerelease of the same three numbers.

Two maintained libraries exist, ``semver`` and ``node-semver``. Neither makes keys that a database can sort by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test
from pkgrepo.untrusted.text import quoted

LONGEST_VERSION: Final = 256  # characters
NUMBER: Final = r"0|[1-9][0-9]*"
PRERELEASE_ID: Final = rf"(?:{NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
BUILD_ID: Final = r"[0-9A-Za-z-]+"

_LARGEST_NUMBER: Final = 2**64 - 1
_MOST_DIGITS: Final = 40  # of a number with zeros in front
_VERSION: Final = re.compile(
    rf"(?P<major>{NUMBER})\.(?P<minor>{NUMBER})\.(?P<patch>{NUMBER})"
    rf"(?:-(?P<pre>{PRERELEASE_ID}(?:\.{PRERELEASE_ID})*))?"
    rf"(?:\+(?P<build>{BUILD_ID}(?:\.{BUILD_ID})*))?",
    re.ASCII,
)
_COMPARATOR: Final = re.compile(
    r"\s*(\^|~|>=|<=|>|<|=)?\s*([0-9]+|[xX*])(?:\.([0-9]+|[xX*]))?(?:\.([0-9]+|[xX*]))?"
    r"(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?\s*",
    re.ASCII,
)
_CONSTRAINT: Final = re.compile(
    r"(!=|\^|~>|~|>=|=>|<=|=<|>|<|=)?\s*v?([0-9]+|[xX*])(?:\.([0-9]+|[xX*]))?(?:\.([0-9]+|[xX*]))?"
    r"(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?(?=[\s,<>=!~^]|$)[\s,]*",
    re.ASCII,
)
_HYPHEN: Final = re.compile(r"(?<!\S)(\S+)\s+-\s+(\S+)")
WILD: Final = frozenset("xX*")
_PARTS: Final = re.compile(r"[v=]*([0-9]+)(?:\.([0-9]+))?((?:\.[xX*])*)", re.ASCII)  # any of which may be missing


@frozen
class Version:
    """
    One version.

    ``text`` is its spelling. ``key`` has no build metadata: hosted versions that differ in nothing else are the same
    one. ``sort`` orders bytewise as versions do. ``largest`` is the largest of its three numbers.
    """

    text: str
    key: str
    sort: bytes
    is_prerelease: bool
    largest: int


def parse_version(text: str) -> Version:
    """
    The version in a text.

    :raises Invalid: the text is no version
    """
    if len(text) > LONGEST_VERSION:
        raise Invalid(
            f"invalid version: it is {len(text)} characters long, and {LONGEST_VERSION} are the most", "version"
        )
    version = find_version(text)
    if version is None:
        raise Invalid(
            f"invalid version: {quoted(text)} is not MAJOR.MINOR.PATCH as semantic versioning 2.0 has it", "version"
        )
    return version


def find_version(text: str) -> Version | None:
    """The version in a text, or None when it is no version."""
    return _find_version(text) if len(text) <= LONGEST_VERSION else None


@lru_cache(maxsize=4096)
def _find_version(text: str) -> Version | None:
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    core = [int(match[part]) for part in ("major", "minor", "patch")]
    if max(core) > _LARGEST_NUMBER:
        return None
    pre = match["pre"]
    return Version(
        text=text,
        key=text.partition("+")[0],
        sort=b"".join(map(_number, core)) + _prerelease(pre),
        is_prerelease=pre is not None,
        largest=max(core),
    )


def padded(text: str) -> str:
    """A bound of a range as people write it: ``1`` and ``1.2`` stand for ``1.0.0`` and ``1.2.0``."""
    return text + ".0" * (2 - text.count(".")) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text


def is_prerelease(text: str) -> bool:
    """Whether the text of a version is that of a prerelease."""
    return "-" in text.partition("+")[0]


def highest_version(texts: Sequence[str]) -> Version | None:
    """The last release in a sorted list of versions, or else the last version; None without versions."""
    # From the end: there may be thousands, and usually one of the last is a release.
    highest: Version | None = None
    for text in reversed(texts):
        found = find_version(text)
        highest = highest or found
        if found is not None and not found.is_prerelease:
            return found
    return highest


@frozen
class Bound:
    """One comparison: ``sign`` is <, <=, >, >= or =."""

    sign: str
    text: str

    @property
    def version(self) -> Version:
        """Its version. :raises Invalid: its numbers are too large"""
        return parse_version(self.text)

    def holds(self, version: Version) -> bool:
        """Whether a version is on its side. :raises Invalid: as above"""
        mine, other = version.sort, self.version.sort
        if self.sign == "=":
            return mine == other
        return (
            (mine < other or (mine == other and self.sign[1:] == "="))
            if self.sign[0] == "<"
            else (mine > other or (mine == other and self.sign[1:] == "="))
        )


def all_hold(bounds: Sequence[Bound], version: Version) -> bool:
    """Whether all comparisons accept a version, where prereleases have to be named. :raises Invalid: as above"""
    if not all(each.holds(version) for each in bounds):
        return False
    if not version.is_prerelease:
        return True
    core = version.key.partition("-")[0]
    return any(each.version.is_prerelease and each.version.key.partition("-")[0] == core for each in bounds)


def bounds_of(sign: str, *parts: str | None) -> Iterator[Bound]:
    """
    The comparisons that one comparator stands for; none for any version.

    ``parts`` are the three numbers, each a text, a wildcard or None, and what makes the version a prerelease.

    :raises Invalid: a number is longer than those of any version
    """
    if any(each is not None and len(each) > _MOST_DIGITS for each in parts[:3]):
        raise Invalid(f"a number of more than {_MOST_DIGITS} digits is that of no version")
    major, minor, patch = (int(each) if each is not None and each.isdigit() else None for each in parts[:3])
    pre = f"-{parts[3]}" if parts[3] and patch is not None else ""
    if major is None:
        if sign in ("<", ">"):
            yield Bound("<", "0.0.0-0")  # which is below every version
        return
    low = f"{major}.{minor or 0}.{0 if minor is None else patch or 0}{pre if minor is not None else ''}"
    whole = minor is not None and patch is not None
    above = _above(sign, major, minor, patch)
    match sign:
        case "^" | "~" | "~>":
            yield from (Bound(">=", low), Bound("<", f"{above}-0"))
        case ">":
            yield Bound(">", low) if whole else Bound(">=", above)
        case ">=":
            yield Bound(">=", low)
        case "<":
            yield Bound("<", low if whole else f"{low}-0")
        case "<=":
            yield Bound("<=", low) if whole else Bound("<", f"{above}-0")
        case _ if whole:
            yield Bound("=", low)
        case _:
            yield from (Bound(">=", low), Bound("<", f"{above}-0"))


def _above(sign: str, major: int, minor: int | None, patch: int | None) -> str:
    """The first version above all that begin with these parts, or above those that ``^`` takes for compatible."""
    if minor is None or (sign == "^" and major > 0):
        return f"{major + 1}.0.0"
    if sign == "^" and minor == 0 and patch is not None:
        return f"0.0.{patch + 1}"
    return f"{major}.{minor + 1}.0"


def requirement_bounds(text: str) -> Iterator[Bound]:
    """
    The comparisons of a requirement with commas between its comparators, each of which is ``^`` without a sign.

    :raises Invalid: it cannot be read
    """
    for each in text.split(","):
        found = _COMPARATOR.fullmatch(each)
        if found is None:
            raise Invalid(f"{quoted(text)} is no requirement such as ^1.2 or >=1.0, <2.0")
        sign = found[1] or ("=" if WILD & {*each.partition("-")[0]} else "^")
        yield from bounds_of(sign, *found.group(2, 3, 4, 5))


def accepts(dependency: str, version: str) -> bool | None:
    """Whether a dependency, a name, a blank and a requirement, accepts a version; None if one cannot be read."""
    try:
        return all_hold(list(requirement_bounds(dependency.partition(" ")[2])), parse_version(version))
    except Invalid:
        return None


def constraint_accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a dependency, a name, a blank and a constraint, accepts a version; None if one cannot be read.

    A constraint has alternatives with ``||`` between them, each of comparators with blanks or commas between them, or
    two versions with a hyphen; ``=`` is that of one without a sign. A prerelease is accepted by an alternative that
    names any prerelease (``github.com/Masterminds/semver``).
    """
    try:
        found = parse_version(version.removeprefix("v"))
        alternatives = dependency.partition(" ")[2].split("||")
        said = [_alternative_accepts(each, found) for each in alternatives]  # all of them can be read
    except Invalid:
        return None
    return any(said)


def _alternative_accepts(text: str, version: Version) -> bool:
    text, at, names_prerelease, holds = _HYPHEN.sub(r">=\1 <=\2", text).strip(), 0, False, True
    while at < len(text):
        match = _CONSTRAINT.match(text, at)
        if match is None:
            raise Invalid(f"{quoted(text)} is no constraint such as ^1.2, >=3.0 <4.0 or !=2.x")
        sign = {"=>": ">=", "=<": "<=", "!=": "="}.get(match[1], match[1] or "=")
        bounds = [*bounds_of(sign, *match.group(2, 3, 4, 5))]
        holds = holds and all(each.holds(version) for each in bounds) is (match[1] != "!=")
        names_prerelease = names_prerelease or match[5] is not None
        at = match.end()
    return holds and (names_prerelease or not version.is_prerelease)


def sort_key(text: str) -> bytes:
    """The sort key of a version, or of a part of one that bounds a range. :raises Invalid: it is none"""
    return parse_version(padded(text)).sort


def _among(requirement: str) -> Test:
    """The test of what people write in rules, where prereleases within the bounds count."""
    bounds = list(requirement_bounds(requirement))
    for each in bounds:
        _ = each.version  # it can be read
    return lambda version: all(each.holds(parse_version(version)) for each in bounds)


def builds(text: str) -> tuple[bytes, bytes]:
    """
    The sort keys of a version; of ``1.2`` and ``1.2.x`` those of all 1.2.

    :raises Invalid: it is neither
    """
    found = _PARTS.fullmatch(text)
    if found is None:
        key = parse_version(text).sort
        return key, key + b"\0"
    low, high = bounds_of("", found[1], found[2], None, None)
    return (Bound(">=", f"{low.text}-0") if found[3] else low).version.sort, high.version.sort


def _prerelease(pre: str | None) -> bytes:
    """
    The part of a sort key behind the numbers.

    A release has the byte 02. Prereleases have 01 and so sort first; behind it each identifier is 01 and a number, or
    02, a text and 00; a final 00 sorts fewer identifiers before more (section 11.4).
    """
    if pre is None:
        return b"\x02"
    ids = (
        b"\x01" + _number(int(each)) if each.isdigit() else b"\x02" + each.encode("ascii") + b"\x00"
        for each in pre.split(".")
    )
    return b"\x01" + b"".join(ids) + b"\x00"


def _number(value: int) -> bytes:
    """A number as one byte for its length, and its bytes, most significant first."""
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")


RANGES: Final = Ranges(
    sort=sort_key,
    builds=builds,
    operators={"^": lambda bound: _among(f"^{bound}"), "~": lambda bound: _among(f"~{bound}")},
    begins=lambda start: _among(f"={start}.*"),
    written="^1.5, ~1.5.2, >=1.5 <2.0, 1.5.* or 1.5.0",
)
