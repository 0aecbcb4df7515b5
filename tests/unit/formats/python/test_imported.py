"""What is read of the pages of an index from which packages are taken in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pkgrepo.formats.python.imported import PythonIndex
from pkgrepo.gateway.imported.items import SourcePackage

URL = "http://there.example/simple/demo/"


def read(content: bytes) -> SourcePackage:
    site: Any = SimpleNamespace(file=lambda url: url)
    return PythonIndex(site)._source_package("demo", content, URL)


def page(**times: str) -> bytes:
    files = [
        {"filename": f"demo-{version[1:]}.tar.gz", "url": f"{version}.tar.gz", "hashes": {}, "upload-time": time}
        for version, time in times.items()
    ]
    return msgspec.json.encode({"meta": {"api-version": "1.1"}, "name": "demo", "files": files})


def test_links_that_cannot_be_fetched_are_named() -> None:
    source_package = read(
        b'<a href="file:///demo-1.0.tar.gz">demo-1.0.tar.gz</a> <a href="x/demo-2.0.tar.gz">demo-2.0.tar.gz</a>'
    )
    assert [(each.name, each.place) for each in source_package.items] == [
        ("demo-2.0.tar.gz", f"{URL}x/demo-2.0.tar.gz")
    ]
    assert source_package.left_out == [("demo-1.0.tar.gz", "its link cannot be fetched")]


@pytest.mark.parametrize("before", [b"", b" \r\n"])
def test_a_page_of_json_is_known_by_its_beginning(before: bytes) -> None:
    source_package = read(before + page(v1="2026-01-02T00:00:00Z"))
    assert [each.name for each in source_package.items] == ["demo-1.tar.gz"]


def test_times_are_those_since_the_epoch() -> None:
    source_package = read(
        page(v1="1970-01-01T00:00:01Z", v2="1969-12-31T23:59:59Z", v3="no time", v4="2026-01-02T00:00:00")
    )
    assert [each.published_ms for each in source_package.items] == [1000, None, None, 1_767_312_000_000]
