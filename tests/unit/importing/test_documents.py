"""Documents of sources are read with what is wrong in them: a bad entry is left out, and the others are taken."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.imported import _read_records, _source_package
from pkgrepo.formats.container.imported.images import ImageSource
from pkgrepo.formats.npm.imported import _names_in, read_packument
from pkgrepo.formats.python.imported import About, _states
from pkgrepo.formats.python.names import parse_filename, parse_upload
from pkgrepo.gateway.imported.described import count_of, digests_of
from pkgrepo.gateway.imported.items import Fact, Item, downloads_of
from pkgrepo.importing.servers.devpi import DevpiExport
from pkgrepo.model import VersionState
from pkgrepo.storage.catalog.imported_downloads import Downloads
from pkgrepo.untrusted.text import time_ms

SHA1 = "0" * 40


class Nowhere:
    modified_ms = None

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""


def place(url: str) -> Nowhere | None:
    return Nowhere() if url.endswith(".tgz") else None


def test_a_packument_is_taken_as_far_as_it_can_be_read() -> None:
    versions = {
        "1.0.0": {"dist": {"tarball": "http://old/A/-/A-1.0.0.tgz", "shasum": SHA1, "integrity": "sha512-no base64"}},
        "1.1.0": {"dist": {"tarball": "http://old/A/-/A-1.1.0.tgz"}, "deprecated": "gone", "_npmUser": {"name": "ann"}},
        "2.0.0": {"dist": {"tarball": "http://old/elsewhere"}},
        "latest": {"dist": {}},
        "3.0.0": "no manifest",
    }
    tags = {"latest": "1.1.0", "next": "9.9.9", "1.x": "1.0.0", "beta": 7}
    times = {"1.0.0": "2012-03-04T05:06:07.890Z", "1.1.0": "not a time"}
    document = {
        "name": "A",
        "versions": versions,
        "dist-tags": tags,
        "time": times,
        "maintainers": [{"name": "ann"}, 1],
    }
    source_package = read_packument("A", json.dumps(document).encode(), place)
    assert {each.version: (dict(each.digests), each.published_ms, each.publisher) for each in source_package.items} == {
        "1.1.0": ({}, None, "ann"),
        "1.0.0": ({"sha1": SHA1}, 1330837567890, None),
    }
    assert source_package.tags == {"latest": "1.1.0"}
    assert source_package.states == {"1.1.0": (VersionState.DEPRECATED, "gone")}
    assert source_package.meta == {"maintainers": [{"name": "ann"}]}
    assert {name for name, _ in source_package.left_out} == {"2.0.0", "latest", "3.0.0", "tag 1.x"}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"name": "other"}', b"\xff"])
def test_what_is_no_packument_is_refused(content: bytes) -> None:
    with pytest.raises(Invalid):
        read_packument("a", content, place)


@pytest.mark.parametrize(
    ("found", "names"),
    [
        ({"_updated": 1, "a": {}, "@b/c": {}, "../d": {}}, ["a", "@b/c"]),
        ({"rows": [{"id": "a"}, {"id": "_design/app"}, {}, 1]}, ["a"]),
        ([{"name": "a"}, {"name": 1}, "b"], ["a"]),
        ("nothing", []),
    ],
)
def test_names_are_read_from_each_kind_of_list(found: object, names: list[str]) -> None:
    assert _names_in(found) == names


def test_a_version_is_yanked_if_all_its_files_are() -> None:
    names = ("a-1.0-py3-none-any.whl", "a-1.0.tar.gz", "a-2.0.tar.gz", "a-3.0.tar.gz")
    parsed = [parse_filename(each) for each in names]
    items = [
        Item(name=each.filename, path=each.filename, place=Nowhere(), version=each.version_text, about=About(each))
        for each in parsed
    ]
    left_out: list[tuple[str, str]] = []
    yanked = {"a-1.0.tar.gz": "half", "a-2.0.tar.gz": "broken"}
    assert _states(items, yanked, left_out) == {"2.0": (VersionState.YANKED, "broken")}
    assert left_out == [("yank of 1.0", "only some of its files are yanked there: a-1.0.tar.gz")]


def test_an_egg_is_read_and_not_uploaded() -> None:
    parsed = parse_filename("Old.Lib-0.1_1-py2.7-linux-x86_64.egg", eggs=True)
    assert (parsed.project_key, parsed.version_text, parsed.kind) == ("old-lib", "0.1-1", "bdist_egg")
    for refused in ("Old-0.1.egg", "x.egg", "a-1.0-cp39.egg"):
        with pytest.raises(Invalid):
            parse_filename(refused, eggs=True)
    with pytest.raises(Invalid):
        parse_upload("Old.Lib-0.1-py2.7.egg")


def test_records_of_a_channel_are_grouped_by_package() -> None:
    packages = {"a-b-1-0.tar.bz2": {"md5": "A" * 32, "timestamp": 1_400_000_000}, "odd.tar.bz2": {}}
    content = json.dumps({"packages": packages, "packages.conda": {"a-b-2-0.conda": 5}}).encode()
    records = _read_records(content)
    source_package = _source_package("noarch/a-b", records["a-b"], lambda _: Nowhere())
    assert [(each.name, each.digests, each.published_ms) for each in source_package.items] == [
        ("a-b-1-0.tar.bz2", {"md5": "a" * 32}, 1_400_000_000_000)
    ]
    assert [name for name, _ in source_package.left_out] == ["a-b-2-0.conda"]
    with pytest.raises(Invalid):
        _read_records(b"<html>")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x/a-1.0.tar.gz", "a/../../a-1.0.tar.gz", "", "a//a-1.0.tar.gz"])
def test_a_file_outside_of_an_export_is_no_item(path: str) -> None:
    with pytest.raises(Invalid):
        DevpiExport(None, [])._item("a", path, {})  # type: ignore[arg-type]


async def test_images_are_renamed_by_the_longest_beginning() -> None:
    class Store:
        async def tags(self, _: str) -> dict[str, str]:
            return {"1.0": "sha256:" + "0" * 64, "no tag!": "x"}

    source = ImageSource(Store(), {"team/": "", "team/app": "apps/app", "bad": "UPPER/"})  # type: ignore[arg-type]
    keys = [(await source.package(each)).key for each in ("team/app1", "team/other", "base")]
    assert keys == ["apps/app1", "other", "base"]
    assert (await source.package("base")).left_out == [("no tag!", "it is no tag")]
    for name in ("bad", "../../etc", "team/"):
        with pytest.raises(Invalid):
            await source.package(name)


def test_downloads_are_summed_for_versions_and_in_no_text_of_a_fact() -> None:
    items = [
        Item(name=f"demo-{each}", path=each, place=Nowhere(), version=each[:1]) for each in ("1.whl", "1.tar", "2")
    ]
    facts = {"demo-1.whl": Fact(downloads=3), "demo-1.tar": Fact(downloads=4), "2": Fact(downloads=5)}
    assert downloads_of(items, facts) == Downloads(0, {"1": 7, "2": 5})
    assert downloads_of(items, {"": Fact(downloads=9), "3": Fact(downloads=2)}) == Downloads(9)
    assert downloads_of(items, {"1": Fact()}) is None
    assert repr(Fact(downloads=3)) == repr(Fact())
    assert [count_of(each) for each in (3, 0, -3, True, "3", 3.0, None, 2**60)] == [3, 0, 0, 0, 0, 0, 0, 0]


def test_digests_and_times_of_apis_are_read_or_left_out() -> None:
    assert digests_of(
        {"sha1": SHA1.upper(), "sha2": "short", "md5": 1}, {"sha1": "sha1", "sha2": "sha256", "md5": "md5"}
    ) == {"sha1": SHA1}
    assert digests_of("nothing", {"sha1": "sha1"}) == {}
    assert time_ms("2019-03-04T05:06:07.000+01:00") == 1551672367000
    assert [time_ms(each) for each in (None, 5, "yesterday", "0001-01-01T00:00:00Z")] == [None] * 4
