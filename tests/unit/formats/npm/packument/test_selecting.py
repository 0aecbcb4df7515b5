"""Versions and tags of a packument that is not joined yet."""

import pytest

from pkgrepo.formats.npm.packument.document import Top, full_fragment, splice_full, splice_short
from pkgrepo.formats.npm.packument.requests import find_fragment, read_tags

TAGS = {"latest": "1.0.0", "next": "2.0.0-rc.1+b"}
VERSIONS = ("1.0.0", "1.0.1", "2.0.0-rc.1+b", "3.0.0", "3.0.0+b")
FRAGMENTS = [full_fragment({"name": "x", "version": text, "dist": {}}) for text in VERSIONS]
SPLICED = splice_full(Top(name="x", tags=TAGS, fields={"readme": '"# x"'}), [b'"1.0.0":"t"'], FRAGMENTS)


@pytest.mark.parametrize(
    ("selector", "index"),
    [
        ("1.0.0", 0),
        ("v1.0.0", 0),
        ("=1.0.1", 1),
        ("latest", 0),
        ("next", 2),
        ("2.0.0-rc.1", 2),
        ("2.0.0-rc.1+b", 2),
        ("2.0.0-rc.1+other", 2),
        ("3.0.0", 3),
        ("v3.0.0+b", 4),
        ("3.0.0+other", 3),
    ],
)
def test_version_is_found_by_number_and_tag(selector: str, index: int) -> None:
    assert find_fragment(SPLICED, selector) == FRAGMENTS[index]


@pytest.mark.parametrize("selector", ["1.0", "1.0.2", "2.0.0", "2.0.0-rc", "dist", "^1.0.0", ""])
def test_other_selectors_find_nothing(selector: str) -> None:
    assert find_fragment(SPLICED, selector) is None


def test_tags_are_read_from_each_form() -> None:
    assert read_tags(SPLICED) == TAGS
    assert read_tags(splice_short(Top(name="x", tags=TAGS), [], FRAGMENTS)) == TAGS
