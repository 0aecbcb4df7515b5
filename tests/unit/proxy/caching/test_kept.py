"""Small parts files are kept in memory, within a limit."""

from __future__ import annotations

import io
import os

import pytest

from pkgrepo.proxy.caching.kept import LARGEST, RecentParts
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.parts.values import Normalised


def parts_of(text: str) -> bytes:
    out = io.BytesIO()
    write_parts(out, Normalised({"text": text}, ()))
    return out.getvalue()


def test_added_file_is_found_open() -> None:
    recent = RecentParts()
    recent.add("a", parts_of("one"))
    found = recent.find("a")
    assert found is not None
    assert found.top == {"text": "one"}
    assert recent.find("b") is None


def test_least_recently_used_files_give_way_by_what_they_take_when_decoded() -> None:
    text = "x" * 10_000  # compresses well, and is large when it is decoded
    memory = PartsFile(parts_of(text)).memory
    assert memory > 2 * len(text)
    recent = RecentParts(3 * memory)
    for name in "abc":
        recent.add(name, parts_of(text))
    recent.find("a")
    recent.add("d", parts_of(text))
    assert [name for name in "abcd" if recent.find(name) is not None] == ["a", "c", "d"]
    recent.add("d", parts_of(text))  # again
    assert len(recent) == 3


def test_large_file_is_not_kept() -> None:
    recent = RecentParts()
    large = parts_of(os.urandom(LARGEST).hex())
    assert len(large) > LARGEST
    recent.add("a", large)
    assert len(recent) == 0


def test_dropped_file_makes_room() -> None:
    recent = RecentParts(PartsFile(parts_of("one")).memory)
    recent.add("a", parts_of("one"))
    recent.drop("a")
    recent.drop("a")
    recent.add("b", parts_of("two"))
    assert recent.find("a") is None
    assert recent.find("b") is not None


def test_damaged_file_is_refused() -> None:
    recent = RecentParts()
    with pytest.raises(PartsDamaged):
        recent.add("a", b"no parts")
    assert len(recent) == 0
