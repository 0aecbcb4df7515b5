"""Grammar of names of images, tags and digests."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.names import (
    DigestInvalid,
    NameInvalid,
    TagInvalid,
    find_digest,
    parse_digest,
    parse_name,
    parse_tag,
)

HEX = "0123456789abcdef" * 4


@pytest.mark.parametrize("name", ["a", "a/b", "a.b_c__d---e/f", "0/1", "a" * 255])
def test_names_of_the_grammar_are_names(name: str) -> None:
    assert parse_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "A", "a//b", "/a", "a/", "a..b", "a___b", "-a", "a-", "ä", "a b", "a" * 256, "a\n"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(NameInvalid):
        parse_name(name)


@pytest.mark.parametrize("tag", ["latest", "_x", "1.0-rc.1", "A" * 128])
def test_tags_of_the_grammar_are_tags(tag: str) -> None:
    assert parse_tag(tag) == tag


@pytest.mark.parametrize("tag", ["", ".x", "-x", "a:b", "a/b", "A" * 129, "a\n"])
def test_other_tags_are_refused(tag: str) -> None:
    with pytest.raises(TagInvalid):
        parse_tag(tag)


@pytest.mark.parametrize("text", [f"sha256:{HEX}", f"sha512:{HEX}{HEX}"])
def test_digests_are_read_and_written_alike(text: str) -> None:
    assert str(parse_digest(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256",
        "sha256:",
        "sha256:abc123",
        f"sha256:{HEX.upper()}",
        f"sha512:{HEX}",
        f"md5:{HEX[:32]}",
        f"sha256:{HEX}0",
    ],
)
def test_other_digests_are_refused(text: str) -> None:
    with pytest.raises(DigestInvalid):
        parse_digest(text)
    assert find_digest(text) is None
