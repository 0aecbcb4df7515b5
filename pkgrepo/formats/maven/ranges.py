"""Which versions a dependency of a POM accepts, and people mean, in the order of Maven's versions."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test, one_build

from .version_order import sort_key

# Blanks around versions are part of these here, so that there is one way only to read many of them.
_RANGE: Final = re.compile(r"\s*([\[(])([^,\[\]()]*)(?:(,)([^,\[\]()]*))?([\])])\s*(?:,|$)")

Limits = tuple[str, str, str | None, str | None, str]  # bracket, version, comma, version, bracket


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a dependency, ``group:artifact[:type][:classifier][:version]`` and limits in brackets, accepts a version.

    A version without brackets is a recommendation, and names that version alone. None if there is none, if a property
    stands for it, or if it cannot be read.
    """
    wanted = re.sub(r" \([a-z, ]+\)$", "", dependency).rpartition(":")[2]
    if dependency.count(":") < 2 or "${" in wanted or not wanted:
        return None
    if wanted[0] not in "[(":
        return sort_key(wanted) == sort_key(version) if wanted[0].isdigit() else None
    limits = _limits(wanted)
    return None if limits is None else any(_within(version, *each) for each in limits)


def _limits(text: str) -> list[Limits] | None:
    """The ranges in brackets that a text consists of; None if it has another form."""
    at, found = 0, list[Limits]()
    while at < len(text):
        match = _RANGE.match(text, at)
        if match is None or (match[3] is None and not match[2].strip()):
            return None
        at = match.end()
        high = None if match[4] is None else match[4].strip()
        found.append((match[1], match[2].strip(), match[3], high, match[5]))
    return found


def _within(version: str, opening: str, low: str, comma: str | None, high: str | None, closing: str) -> bool:
    place = sort_key(version)
    if comma is None:
        return place == sort_key(low)
    above = not low or (place >= sort_key(low) if opening == "[" else place > sort_key(low))
    below = not high or (place <= sort_key(high) if closing == "]" else place < sort_key(high))
    return above and below


def _bracketed(text: str) -> Test | None:
    if text[0] not in "[(":
        return None
    limits = _limits(text)
    if limits is None:
        raise Invalid("it is no range in brackets such as [1.0,2.0)")
    return lambda version: any(_within(version, *each) for each in limits)


RANGES: Final = Ranges(
    sort=sort_key,
    builds=one_build(sort_key),
    other=_bracketed,
    written="[1.5,2.0), >=1.5,<2.0, 1.5.* or 1.5",
)
