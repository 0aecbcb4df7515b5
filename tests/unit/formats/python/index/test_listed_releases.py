"""Releases as the fragments of a page list them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.formats.python.index.project_json import Release, read_listed

BASE = "https://p.example/repositories/main/py"
WHEEL = "x-1.0-py3-none-any.whl"
SDIST = "x-1.0.0.tar.gz"


def listed(filename: str, **members: Any) -> bytes:
    value = {"filename": filename, "url": f"../../packages/x/1.0/{filename}", "hashes": {}, "yanked": False, **members}
    return json.dumps({**value, "core-metadata": False}).encode()


def read(*fragments: bytes) -> dict[str, Release]:
    return read_listed(fragments, "x", BASE)


def test_spellings_of_a_version_are_one_release() -> None:
    found = read(listed(WHEEL), listed(SDIST), listed("x-2.0-py3-none-any.whl"))
    assert {key: (each.version, len(each.files)) for key, each in found.items()} == {"1": ("1.0", 2), "2": ("2.0", 1)}


def test_files_have_absolute_addresses_and_what_is_known_of_them() -> None:
    members = {"size": 3, "upload-time": "2024-01-01T00:00:00.000000Z", "requires-python": ">=3", "gpg-sig": True}
    (known,) = read(listed(WHEEL, hashes={"sha256": "ab"}, **members))["1"].files
    assert known.url == f"{BASE}/packages/x/1.0/{WHEEL}"
    assert (known.packagetype, known.python_version, known.size) == ("bdist_wheel", "py3", 3)
    assert (known.upload_time, known.has_sig) == (datetime(2024, 1, 1, tzinfo=UTC), True)
    assert (known.digests, known.requires_python) == ({"sha256": "ab"}, ">=3")
    (unknown,) = read(listed(SDIST))["1"].files
    assert (unknown.size, unknown.upload_time, unknown.packagetype) == (None, None, "sdist")


@pytest.mark.parametrize(
    ("yanked", "expected"),
    [
        ((False, False), None),
        (("bad", "worse"), "bad"),
        ((True, True), ""),
        (("bad", False), None),
        ((False, True), None),
    ],
)
def test_a_release_is_yanked_if_all_its_files_are(yanked: tuple[Any, Any], expected: str | None) -> None:
    assert read(listed(WHEEL, yanked=yanked[0]), listed(SDIST, yanked=yanked[1]))["1"].yanked == expected
