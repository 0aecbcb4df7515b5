"""
Which versions a range accepts, and people mean, as npm's ``node-semver`` decides.

A range is alternatives with ``||`` between them, each of them comparators that all have to hold, or two versions with
a hyphen between them. Where people say which versions they mean, prereleases within the bounds count
(``includePrerelease``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import Bound, Version, all_hold, bounds_of, builds
from pkgrepo.repositories.version_ranges import Ranges, Test

from .semver import find_version, is_range, parse_version

_PARTIAL: Final = (
    r"[v=\s]*([0-9]+|[xX*])?(?:\.([0-9]+|[xX*]))?(?:\.([0-9]+|[xX*]))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
# They are for texts without blanks at their ends. What is partial may begin with blanks, so nothing before it ends so.
_HYPHEN: Final = re.compile(rf"{_PARTIAL}\s+-(?=\s){_PARTIAL}", re.ASCII)
_COMPARATOR: Final = re.compile(rf"(\^|~>?|>=|<=|>|<|=)?{_PARTIAL}(?:\s+|$)", re.ASCII)


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a dependency, which is a name, a blank and what is wanted, accepts a version.

    None if it names no range, but a dist-tag, an address or another package, or if one of them cannot be read.
    """
    wanted, found = dependency.partition(" ")[2], find_version(version)
    if found is None or not is_range(wanted):
        return None
    try:
        alternatives = [list(_bounds(each.strip())) for each in wanted.split("||")]
    except (Invalid, ValueError):
        return None
    if any(find_version(each.text) is None for bounds in alternatives for each in bounds):
        return None  # its numbers are too large
    return any(_holds(bounds, found) for bounds in alternatives)


def _holds(bounds: list[Bound], version: Version) -> bool:
    bounds = [each for each in bounds if (each.sign, each.text) != (">=", "0.0.0")]  # npm takes that for "*"
    return all_hold(bounds, version)


def _bounds(text: str) -> Iterator[Bound]:
    """The comparisons that the comparators of one alternative stand for; none for any version."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        yield from bounds_of(">=", *hyphen.group(1, 2, 3, 4))
        yield from bounds_of("<=", *hyphen.group(5, 6, 7, 8))
        return
    at = 0
    while at < len(text):
        match = _COMPARATOR.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(text)
        at = match.end()
        yield from bounds_of(match[1] or "", *match.group(2, 3, 4, 5))


def _among(text: str) -> Test:
    """The test of comparators that stand for two bounds; prereleases within them count."""
    if not is_range(text):
        raise Invalid(f"{text!r} is no range of npm")
    bounds = [each for each in _bounds(text) if (each.sign, each.text) != (">=", "0.0.0")]
    bounds = [each if each.text in text or each.sign == "<" else Bound(each.sign, f"{each.text}-0") for each in bounds]
    for each in bounds:
        if find_version(each.text) is None:
            raise Invalid(f"the numbers of {text!r} are too large")
    return lambda version: all(each.holds(parse_version(version)) for each in bounds)


def _other(text: str) -> Test | None:
    """The test of a hyphen range, or of ``x``."""
    return _among(text) if _HYPHEN.fullmatch(text) or text in ("x", "X") else None


def _builds(text: str) -> tuple[bytes, bytes]:
    """The sort keys of a version, without what npm strips of it, or of all that a part of one stands for."""
    found = find_version(text)
    return builds(text if found is None else found.text)


RANGES: Final = Ranges(
    sort=lambda text: parse_version(text).sort,
    builds=_builds,
    operators={sign: lambda bound, sign=sign: _among(f"{sign}{bound}") for sign in ("^", "~", "~>")},  # type: ignore[misc]
    begins=lambda start: _among(f"{start}.x"),
    other=_other,
    written="^1.5, ~1.5.2, >=1.5 <2.0, 1.x, 1.2 - 1.4 or 1.5.0",
)
