"""The readers of bytes from outside, by what they read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tests.lab.fuzz.target import Target

from . import archives, documents, heads, in_archives, locks, names


@cache
def all_targets() -> Mapping[str, Target]:
    """Every target by its name."""
    rooms = (archives, documents, heads, in_archives, locks, names)
    found = [each for room in rooms for each in room.targets()]
    by_name = {each.name: each for each in found}
    assert len(by_name) == len(found), "two targets have one name"
    return by_name
