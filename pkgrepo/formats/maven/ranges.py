"""Whether a dependency of a POM accepts a version, in the order of Maven's versions."""

from __future__ import annotations

import re
from typing import Final

from .version_order import sort_key

_RANGE: Final = re.compile(r"\s*([\[(])\s*([^,\[\]()]*?)\s*(?:(,)\s*([^,\[\]()]*?)\s*)?([\])])\s*(?:,|$)")


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
    at, found = 0, False
    while at < len(wanted):
        match = _RANGE.match(wanted, at)
        if match is None:
            return None
        at = match.end()
        found = found or _within(version, *match.groups())
    return found


def _within(version: str, opening: str, low: str, comma: str | None, high: str | None, closing: str) -> bool:
    place = sort_key(version)
    if comma is None:
        return place == sort_key(low)
    above = not low or (place >= sort_key(low) if opening == "[" else place > sort_key(low))
    below = not high or (place <= sort_key(high) if closing == "]" else place < sort_key(high))
    return above and below
