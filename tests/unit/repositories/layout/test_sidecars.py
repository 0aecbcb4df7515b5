"""Sidecars are read as they were written."""

import json
from datetime import UTC, datetime

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.model import Package, RepositoryType, Version, VersionState, Visibility
from pkgrepo.repositories.layout.sidecars import (
    FileSidecar,
    PackageSidecar,
    RepositorySidecar,
    VersionSidecar,
    decode,
    encode,
)
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository, publish

AT = datetime(2026, 2, 3, 4, 5, 6, 789000, UTC)
PACKAGE = Package(
    id=1,
    repository_id=1,
    key="ü",
    name="Ü",
    latest=None,
    serial=3,
    meta={"status": "x"},
    created_at=AT,
    updated_at=AT,
    modified_s=round(AT.timestamp()),
)
TAGS = {"latest": "1.0"}
VERSION = Version(
    id=1,
    package_id=1,
    key="1",
    text="1.0",
    sort=b"\x00\xff",
    state=VersionState.YANKED,
    reason="</script>",
    meta={"nested": [1, {"a": None}]},
    published_at=AT,
    publisher="alice",
)


@pytest.fixture
def repository():
    found = MemoryCatalog().do(add_repository)
    return evolve(
        found,
        visibility=Visibility.PRIVATE,
        type=RepositoryType.HOSTED,
        active=False,
        description="ours",
        settings={"policy": {"allow_overwrite": True}},
    )


@pytest.fixture
def file():
    catalog = MemoryCatalog()
    return catalog.do(publish, catalog.do(add_repository), "packages/demo/1.0/demo.whl")


def test_every_sidecar_survives_the_round_trip(repository, file):
    entry = FileSidecar.of(file, "py/demo/1.0/demo.whl")
    for sidecar in (
        RepositorySidecar.of(repository),
        PackageSidecar.of(PACKAGE, TAGS),
        VersionSidecar.of(PACKAGE, VERSION, [entry]),
    ):
        assert decode(encode(sidecar), type(sidecar), "here") == sidecar


def test_a_version_with_its_file_keeps_what_a_rebuilt_catalog_needs(file):
    told = json.loads(encode(VersionSidecar.of(PACKAGE, VERSION, [FileSidecar.of(file, "place")])))
    assert (told["state"], told["reason"], told["publisher"]) == ("yanked", "</script>", "alice")
    assert told["published_at"] == "2026-02-03T04:05:06.789000Z"
    [entry] = told["files"]
    assert (entry["path"], entry["sha256"], entry["size"]) == (file.path, file.sha256, file.size)


def test_equal_sidecars_are_written_alike_and_indented(repository):
    data = encode(RepositorySidecar.of(repository))
    assert data == encode(RepositorySidecar.of(repository))
    assert data.endswith(b"}\n")
    assert b'\n "name": "py",\n' in data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"key": 1, "name": "x", "meta": {}}', b"\xff"])
def test_an_invalid_sidecar_is_refused_with_its_place(data):
    with pytest.raises(Invalid, match=r"py/demo/\.package\.json"):
        decode(data, PackageSidecar, "py/demo/.package.json")


def test_unknown_fields_are_ignored():
    data = encode(PackageSidecar.of(PACKAGE, TAGS)).replace(b'"key"', b'"of_tomorrow": [1],\n "key"')
    assert decode(data, PackageSidecar, "here") == PackageSidecar.of(PACKAGE, TAGS)
