"""Image layouts in folders and archives: which image is found, and what is refused."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.archives.image_layout import (
    INDEX,
    INDEX_TYPE,
    LARGEST_DOCUMENT,
    Descriptor,
    blob_path,
    find_image,
    names_of,
    open_layout,
    read_document,
    render_index,
)
from pkgrepo.errors import Invalid

ONE, TWO = (f"sha256:{each * 64}" for each in "ab")
NAMED = Descriptor.named("a/b", ONE, 1, "v1")
LOOSE = Descriptor.named("a/b", TWO, 2, None)


def as_folder(folder: Path, index: bytes) -> Path:
    (folder / INDEX).write_bytes(index)
    return folder


def as_archive(folder: Path, index: bytes) -> Path:
    as_folder(folder, index)
    with tarfile.open(folder / "layout.tar", "w") as archive:
        archive.add(folder / INDEX, f"./{INDEX}")
    return folder / "layout.tar"


@pytest.mark.parametrize("make", [as_folder, as_archive])
def test_an_image_is_found_by_its_name(tmp_path: Path, make: Callable[[Path, bytes], Path]) -> None:
    with open_layout(make(tmp_path, render_index([NAMED, LOOSE]))) as layout:
        assert find_image(layout, "v1") == NAMED
        for wanted in ("", "v2"):
            with pytest.raises(Invalid, match="see --source"):
                find_image(layout, wanted)
        with pytest.raises(Invalid, match=f"it has no {blob_path(ONE)}"):
            read_document(layout, blob_path(ONE))


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("[", "index of the image layout is damaged"),
        ("[" * 1_000_000 + "]" * 1_000_000, "index of the image layout is damaged"),
        ({"manifests": ["x"]}, "index of the image layout is damaged"),
        ({"manifests": [{"annotations": "x"}]}, "index of the image layout is damaged"),
        ({}, "has no images"),
        ({"manifests": [{"digest": ONE}]}, "damaged descriptor"),
        ({"manifests": [{"mediaType": "a/b", "digest": "sha512:00", "size": 1}]}, "only sha256 can"),
        (" " * (LARGEST_DOCUMENT + 1), "is longer than"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, index: Any, said: str) -> None:
    data = index if isinstance(index, str) else json.dumps(index)
    with open_layout(as_folder(tmp_path, data.encode())) as layout, pytest.raises(Invalid, match=said):
        find_image(layout, "")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 2000)
    with pytest.raises(Invalid, match="is no image layout"), open_layout(tmp_path / "file"):
        pass


def test_an_index_lists_images_with_their_names() -> None:
    found = json.loads(render_index([NAMED, LOOSE]))
    assert (found["schemaVersion"], found["mediaType"]) == (2, INDEX_TYPE)
    first, second = found["manifests"]
    assert names_of(first["annotations"]) == ("v1",)
    assert second == {"mediaType": "a/b", "digest": TWO, "size": 2}
    assert (names_of(None), names_of({"io.containerd.image.name": "", "x": "y"})) == ((), ())
