"""The lists over all gems: of names, and of the legacy index."""

from __future__ import annotations

from pkgrepo.formats.rubygems import legacy
from pkgrepo.formats.rubygems.index.gem_lists import NAMES
from pkgrepo.formats.rubygems.legacy import LATEST, PRERELEASES, SPECS, join_rows, list_row

from .conftest import Gems, make_spec


async def test_empty_lists(gems: Gems) -> None:
    assert await gems.listed(NAMES) == b"---\n\n"
    for form in (SPECS, LATEST, PRERELEASES):
        assert await gems.listed(form) == b"\x04\x08[\x00"


async def test_lists_show_live_versions_after_each_change(gems: Gems) -> None:
    gems.push(make_spec("b", "1.0"))
    gems.push(make_spec("b", "1.10"))
    gems.push(make_spec("b", "1.9"))
    gems.push(make_spec("b", "1.9", "java"))
    gems.push(make_spec("b", "2.0.pre"))
    gems.push(make_spec("a", "0.1.a"))
    assert await gems.listed(NAMES) == b"---\na\nb\n"
    releases = [("b", "1.0", "ruby"), ("b", "1.9", "java"), ("b", "1.9", "ruby"), ("b", "1.10", "ruby")]
    assert await gems.listed(SPECS) == join_rows([list_row(*row) for row in releases])
    assert sorted(read(await gems.listed(LATEST))) == [("b", "1.10", "ruby"), ("b", "1.9", "java")]
    assert read(await gems.listed(PRERELEASES)) == [("a", "0.1.a", "ruby"), ("b", "2.0.pre", "ruby")]
    gems.yank("a", "0.1.a")
    gems.yank("b", "1.10")
    assert await gems.listed(NAMES) == b"---\nb\n"
    assert sorted(read(await gems.listed(LATEST))) == [("b", "1.9", "java"), ("b", "1.9", "ruby")]
    assert read(await gems.listed(PRERELEASES)) == [("b", "2.0.pre", "ruby")]
    gems.delete("b", "2.0.pre")
    assert await gems.listed(PRERELEASES) == b"\x04\x08[\x00"


def read(data: bytes) -> list[tuple[str, str, str]]:
    """The rows of a list, found by writing each of those that the tests push."""
    names = [
        (name, number, platform)
        for name in "ab"
        for number in ("0.1.a", "1.0", "1.9", "1.10", "2.0.pre")
        for platform in ("java", "ruby")
    ]
    found = []
    for row in names:
        written = list_row(*row)
        if written in data or legacy.first_row(written) in data:
            found.append(row)
    assert len(data) == len(join_rows([list_row(*row) for row in found]))
    return found
