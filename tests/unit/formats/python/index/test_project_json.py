"""The JSON metadata of projects, and releases as pages list them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from pkgrepo.formats.python.index.project_json import Release, ReleaseFile, newest, project_json, read_listed
from pkgrepo.formats.python.upload.metadata import meta_json, parse_metadata
from pkgrepo.formats.python.versions import parse_version
from tests.support.python_packages import make_metadata

BASE = "https://demo.example/repositories/main/py"


def release(version: str, *, yanked: str | None = None, meta: dict[str, Any] | None = None) -> Release:
    def file(filename: str, kind: str, python: str) -> ReleaseFile:
        return ReleaseFile(
            filename=filename,
            url=f"{BASE}/packages/demo-pkg/{version}/{filename}",
            packagetype=kind,
            python_version=python,
            size=1447,
            digests={"sha256": "ab" * 32, "md5": "cd" * 16},
            upload_time=datetime(2024, 1, 2, 3, 4, 5, 678000, UTC),
            requires_python=">=3.8",
            has_sig=kind == "sdist",
            comment="said",
        )

    files = (
        file(f"demo_pkg-{version}.tar.gz", "sdist", "source"),
        file(f"demo_pkg-{version}-py3-none-any.whl", "bdist_wheel", "py3"),
    )
    return Release(version, parse_version(version)[1], meta or {"name": "Demo.Pkg"}, files, yanked)


def render(*releases: Release, **options: Any) -> Any:
    return msgspec.json.decode(
        project_json(releases, name="Demo.Pkg", project_key="demo-pkg", base_url=BASE, serial=42, **options)
    )


def test_document_says_everything_of_a_version() -> None:
    fields = [
        ("Keywords", "a,b"),
        ("Platform", "any"),
        ("Platform", "linux"),
        ("Home-page", "https://home.example/"),
        ("Project-URL", "Source, https://source.example/"),
        ("Project-URL", "nonsense"),
        ("Requires-Dist", "attrs"),
        ("License-Expression", "MIT"),
        ("Dynamic", "License"),
    ]
    metadata = make_metadata(
        "Demo.Pkg", "1.0", summary="A demo", requires_python=">=3.8", fields=fields, description="#"
    )
    value = render(release("1.0", meta=meta_json(parse_metadata(metadata, "METADATA"))))
    assert value["info"] == {
        "name": "Demo.Pkg",
        "version": "1.0",
        "summary": "A demo",
        "description": "#",
        "description_content_type": "",
        "keywords": "a,b",
        "license": "",
        "license_expression": "MIT",
        "license_files": None,
        "classifiers": [],
        "author": "",
        "author_email": "",
        "maintainer": "",
        "maintainer_email": "",
        "requires_python": ">=3.8",
        "requires_dist": ["attrs"],
        "provides_extra": None,
        "platform": "any, linux",
        "project_url": f"{BASE}/simple/demo-pkg/",
        "package_url": f"{BASE}/simple/demo-pkg/",
        "release_url": f"{BASE}/pypi/demo-pkg/1.0/",
        "project_urls": {"Source": "https://source.example/", "Homepage": "https://home.example/"},
        "home_page": "https://home.example/",
        "download_url": "",
        "docs_url": None,
        "bugtrack_url": None,
        "downloads": {"last_day": -1, "last_week": -1, "last_month": -1},
        "yanked": False,
        "yanked_reason": None,
        "dynamic": ["License"],
    }
    assert value["last_serial"] == 42
    assert "vulnerabilities" not in value
    assert value["urls"] == value["releases"]["1.0"]
    assert value["urls"][1] == {
        "filename": "demo_pkg-1.0.tar.gz",
        "packagetype": "sdist",
        "python_version": "source",
        "size": 1447,
        "url": f"{BASE}/packages/demo-pkg/1.0/demo_pkg-1.0.tar.gz",
        "digests": {"sha256": "ab" * 32, "md5": "cd" * 16},
        "md5_digest": "cd" * 16,
        "upload_time": "2024-01-02T03:04:05",
        "upload_time_iso_8601": "2024-01-02T03:04:05.678000Z",
        "requires_python": ">=3.8",
        "yanked": False,
        "yanked_reason": None,
        "has_sig": True,
        "comment_text": "said",
        "downloads": -1,
    }


@pytest.mark.parametrize(
    ("versions", "best"),
    [
        (["1.0", "1.10", "1.9"], "1.10"),
        (["1.0", "2.0rc1", "2.0.dev1"], "1.0"),
        (["1.0rc1", "1.0.dev1"], "1.0rc1"),
        (["1.0", "2.0 yanked"], "1.0"),
        (["1.0rc1", "2.0 yanked"], "1.0rc1"),
        (["1.0 yanked", "2.0 yanked", "3.0rc1 yanked"], "2.0"),
        (["1.0", "1.0.post1", "1.0+local"], "1.0.post1"),
    ],
)
def test_newest_is_the_highest_final_release_that_is_not_yanked(versions: list[str], best: str) -> None:
    releases = [release(text.split()[0], yanked="" if " " in text else None) for text in versions]
    assert render(*releases)["info"]["version"] == best
    assert render(*reversed(releases))["info"]["version"] == best
    chosen = newest(releases)
    assert chosen is not None
    assert chosen.version == best


def test_unreadable_version_is_newest_only_when_alone() -> None:
    legacy = Release("2004d", parse_version("2004d")[1])
    assert newest([legacy]) is legacy
    assert newest([legacy, release("0.1.dev1")]) != legacy
    assert newest([]) is None


def test_selected_version_has_its_own_info_and_all_releases() -> None:
    old, new = release("1.0", yanked="broken"), release("2.0", yanked="")
    value = render(old, new, selected=old)
    assert (value["info"]["version"], value["info"]["yanked"], value["info"]["yanked_reason"]) == (
        "1.0",
        True,
        "broken",
    )
    assert list(value["releases"]) == ["1.0", "2.0"]
    assert value["urls"] == value["releases"]["1.0"]
    assert [file["yanked_reason"] for file in value["releases"]["2.0"]] == [None, None]
    assert all(file["yanked"] for file in value["releases"]["2.0"])


def test_simple_files_stand_beside_the_rest() -> None:
    fragments = [b'{"filename":"a"}', b'{"filename":"b"}']
    assert render(release("1.0"), simple_files=fragments)["files"] == [{"filename": "a"}, {"filename": "b"}]
    assert render(release("1.0"), simple_files=[])["files"] == []
    assert "files" not in render(release("1.0"))


def test_project_without_releases_is_a_valid_document() -> None:
    value = render()
    assert (value["info"]["name"], value["info"]["version"], value["urls"]) == ("Demo.Pkg", "", [])


def test_versions_are_encoded_in_addresses() -> None:
    assert render(release("1!2.0+cu121"))["info"]["release_url"] == f"{BASE}/pypi/demo-pkg/1%212.0%2Bcu121/"


LISTED_BASE = "https://p.example/repositories/main/py"
WHEEL = "x-1.0-py3-none-any.whl"
SDIST = "x-1.0.0.tar.gz"


def listed(filename: str, **members: Any) -> bytes:
    value = {"filename": filename, "url": f"../../packages/x/1.0/{filename}", "hashes": {}, "yanked": False, **members}
    return json.dumps({**value, "core-metadata": False}).encode()


def read(*fragments: bytes) -> dict[str, Release]:
    return read_listed(fragments, "x", LISTED_BASE)


def test_spellings_of_a_version_are_one_release() -> None:
    found = read(listed(WHEEL), listed(SDIST), listed("x-2.0-py3-none-any.whl"))
    assert {key: (each.version, len(each.files)) for key, each in found.items()} == {"1": ("1.0", 2), "2": ("2.0", 1)}


def test_files_have_absolute_addresses_and_what_is_known_of_them() -> None:
    members = {"size": 3, "upload-time": "2024-01-01T00:00:00.000000Z", "requires-python": ">=3", "gpg-sig": True}
    (known,) = read(listed(WHEEL, hashes={"sha256": "ab"}, **members))["1"].files
    assert known.url == f"{LISTED_BASE}/packages/x/1.0/{WHEEL}"
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
