"""
Which versions a range accepts, and people mean, as npm's ``node-semver`` decides.

A range is alternatives with ``||`` between them, each of them comparators that all have to hold. ``^``, ``~``, missing
parts, ``x`` and hyphens stand for a lower and an upper bound; the upper one is ``2.0.0-0``, below every prerelease of
2.0.0. A prerelease is accepted only by comparators of which one names a prerelease of the same three numbers; where
people say which versions they mean, prereleases within the bounds count (``includePrerelease``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test

from .semver import Version, find_version, is_range, parse_version

_PARTIAL: Final = (
    r"[v=\s]*([0-9]+|[xX*])?(?:\.([0-9]+|[xX*]))?(?:\.([0-9]+|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
# They are for texts without blanks at their ends. What is partial may begin with blanks, so nothing before it ends so.
_HYPHEN: Final = re.compile(rf"{_PARTIAL}\s+-(?=\s){_PARTIAL}", re.ASCII)
_COMPARATOR: Final = re.compile(rf"(\^|~>?|>=|<=|>|<|=)?{_PARTIAL}(?:\s+|$)", re.ASCII)
_NOTHING: Final = "0.0.0-0"  # is below every version


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a dependency, which is a name, a blank and what is wanted, accepts a version.

    None if it names no range, but a dist-tag, an address or another package, or if one of them cannot be read.
    """
    wanted, found = dependency.partition(" ")[2], find_version(version)
    if found is None or not is_range(wanted):
        return None
    try:
        return any(_holds(list(_bounds(each.strip())), found) for each in wanted.split("||"))
    except ValueError:
        return None


@frozen
class _Bound:
    """One comparison: ``sign`` is <, <=, >, >= or =."""

    sign: str
    text: str

    @property
    def version(self) -> Version:
        """:raises ValueError: its numbers are too large"""
        found = find_version(self.text)
        if found is None:
            raise ValueError(self.text)
        return found

    @property
    def key(self) -> bytes:
        """The sort key of its version. :raises Invalid: its numbers are too large"""
        return parse_version(self.text).sort

    def holds(self, version: Version) -> bool:
        mine, other = version.sort, self.version.sort
        if self.sign == "=":
            return mine == other
        return (
            (mine < other or (mine == other and self.sign[1:] == "="))
            if self.sign[0] == "<"
            else (mine > other or (mine == other and self.sign[1:] == "="))
        )


def _holds(bounds: list[_Bound], version: Version) -> bool:
    bounds = [each for each in bounds if (each.sign, each.text) != (">=", "0.0.0")]  # npm takes that for "*"
    if not all(each.holds(version) for each in bounds):
        return False
    if not version.is_prerelease:
        return True
    core = version.key.partition("-")[0]
    return any(each.version.is_prerelease and each.version.key.partition("-")[0] == core for each in bounds)


def _bounds(text: str) -> Iterator[_Bound]:
    """The comparisons that the comparators of one alternative stand for; none for any version."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        yield from _of(">=", *hyphen.group(1, 2, 3, 4))
        yield from _of("<=", *hyphen.group(5, 6, 7, 8))
        return
    at = 0
    while at < len(text):
        match = _COMPARATOR.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(text)
        at = match.end()
        yield from _of(match[1] or "", *match.group(2, 3, 4, 5))


def _of(sign: str, *parts: str | None) -> Iterator[_Bound]:
    major, minor, patch = (int(each) if each is not None and each.isdigit() else None for each in parts[:3])
    pre = f"-{parts[3]}" if parts[3] and patch is not None else ""
    if major is None:
        if sign in ("<", ">"):
            yield _Bound("<", _NOTHING)
        return
    low = f"{major}.{minor or 0}.{0 if minor is None else patch or 0}{pre if minor is not None else ''}"
    whole = minor is not None and patch is not None
    above = _above(sign, major, minor, patch)
    match sign:
        case "^" | "~" | "~>":
            yield from (_Bound(">=", low), _Bound("<", f"{above}-0"))
        case ">":
            yield _Bound(">", low) if whole else _Bound(">=", above)
        case ">=":
            yield _Bound(">=", low)
        case "<":
            yield _Bound("<", low if whole else f"{low}-0")
        case "<=":
            yield _Bound("<=", low) if whole else _Bound("<", f"{above}-0")
        case _ if whole:
            yield _Bound("=", low)
        case _:
            yield from (_Bound(">=", low), _Bound("<", f"{above}-0"))


def _above(sign: str, major: int, minor: int | None, patch: int | None) -> str:
    """The first version above all that begin with these parts, or above those that ``^`` takes for compatible."""
    if minor is None or (sign == "^" and major > 0):
        return f"{major + 1}.0.0"
    if sign == "^" and minor == 0 and patch is not None:
        return f"0.0.{patch + 1}"
    return f"{major}.{minor + 1}.0"


_PARTS: Final = re.compile(r"[v=]*([0-9]+)(?:\.([0-9]+))?((?:\.[xX*])*)", re.ASCII)  # any of which may be missing


def _builds(text: str) -> tuple[bytes, bytes]:
    """The sort keys of a version; of ``1.2`` and ``1.2.x`` those of all 1.2."""
    found = _PARTS.fullmatch(text)
    if found is None:
        key = parse_version(text).sort
        return key, key + b"\0"
    low, high = _of("", found[1], found[2], None, None)
    return (_Bound(">=", f"{low.text}-0") if found[3] else low).key, high.key


def _among(text: str) -> Test:
    """The test of comparators that stand for two bounds; prereleases within them count."""
    if not is_range(text):
        raise Invalid(f"{text!r} is no range of npm")
    bounds = [each for each in _bounds(text) if (each.sign, each.text) != (">=", "0.0.0")]
    bounds = [each if each.text in text or each.sign == "<" else _Bound(each.sign, f"{each.text}-0") for each in bounds]
    for each in bounds:
        if find_version(each.text) is None:
            raise Invalid(f"the numbers of {text!r} are too large")
    return lambda version: all(each.holds(parse_version(version)) for each in bounds)


def _other(text: str) -> Test | None:
    """The test of a hyphen range, or of ``x``."""
    return _among(text) if _HYPHEN.fullmatch(text) or text in ("x", "X") else None


RANGES: Final = Ranges(
    sort=lambda text: parse_version(text).sort,
    builds=_builds,
    operators={sign: lambda bound, sign=sign: _among(f"{sign}{bound}") for sign in ("^", "~", "~>")},  # type: ignore[misc]
    begins=lambda start: _among(f"{start}.x"),
    other=_other,
    written="^1.5, ~1.5.2, >=1.5 <2.0, 1.x, 1.2 - 1.4 or 1.5.0",
)
