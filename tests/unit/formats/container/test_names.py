"""What images, tags and digests can be called, and what an address means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.container.names import (
    DigestInvalid,
    NameInvalid,
    TagInvalid,
    find_digest,
    parse_digest,
    parse_name,
    parse_tag,
)
from pkgrepo.formats.container.paths import ImagePath, PathKind, parse_path

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


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b"/a/manifests/latest", ImagePath("a", PathKind.MANIFEST, "latest")),
        (b"/a/b/c/manifests/sha256:00", ImagePath("a/b/c", PathKind.MANIFEST, "sha256:00")),
        (b"/a/blobs/sha256%3A00", ImagePath("a", PathKind.BLOB, "sha256:00")),
        (b"/a/blobs/uploads/", ImagePath("a", PathKind.UPLOADS)),
        (b"/a/blobs/uploads", ImagePath("a", PathKind.UPLOADS)),
        (b"/a/blobs/uploads/id", ImagePath("a", PathKind.UPLOAD, "id")),
        (b"/a/tags/list", ImagePath("a", PathKind.TAGS)),
        (b"/a/referrers/sha256:00", ImagePath("a", PathKind.REFERRERS, "sha256:00")),
        (b"/a/blobs/b/manifests/latest", ImagePath("a/blobs/b", PathKind.MANIFEST, "latest")),
        (b"/a/manifests/b/blobs/x", ImagePath("a/manifests/b", PathKind.BLOB, "x")),
        (b"/blobs/uploads/tags/list", ImagePath("blobs/uploads", PathKind.TAGS)),
        (b"/tags/manifests/list", ImagePath("tags", PathKind.MANIFEST, "list")),
        (b"/a/blobs/uploads/b/blobs/uploads/id", ImagePath("a/blobs/uploads/b", PathKind.UPLOAD, "id")),
        (b"/A/manifests/latest", ImagePath("A", PathKind.MANIFEST, "latest")),
        (b"/a%2Fb/manifests/latest", ImagePath("a/b", PathKind.MANIFEST, "latest")),
        (b"/a/manifests/%2561", ImagePath("a", PathKind.MANIFEST, "%61")),
    ],
)
def test_the_last_marker_that_leaves_a_name_counts(raw: bytes, place: ImagePath) -> None:
    assert parse_path(raw) == place


@pytest.mark.parametrize(
    "raw", [b"/", b"/a", b"/a/b", b"/manifests/x", b"/a/manifests/", b"/tags/list", b"/a/manifests/b/c"]
)
def test_other_addresses_mean_nothing(raw: bytes) -> None:
    assert parse_path(raw) is None


COMPONENT = st.sampled_from(["a", "blobs", "uploads", "manifests", "tags", "list", "referrers"])


@given(
    st.lists(COMPONENT, min_size=1, max_size=6),
    st.sampled_from(["manifests/v1", "blobs/sha256:0", "referrers/sha256:0"]),
)
def test_every_name_can_be_addressed(components: list[str], rest: str) -> None:
    name = "/".join(components)
    place = parse_path(f"/{name}/{rest}".encode())
    assert place is not None
    assert (place.name, place.rest) == (name, rest.partition("/")[2])
