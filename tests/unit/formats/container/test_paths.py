"""Parsing of the paths of the registry API."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.container.paths import ImagePath, PathKind, parse_path


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
def test_the_last_marker_with_a_name_before_it_counts(raw: bytes, place: ImagePath) -> None:
    assert parse_path(raw) == place


@pytest.mark.parametrize(
    "raw", [b"/", b"/a", b"/a/b", b"/manifests/x", b"/a/manifests/", b"/tags/list", b"/a/manifests/b/c"]
)
def test_other_paths_are_none_of_the_api(raw: bytes) -> None:
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
