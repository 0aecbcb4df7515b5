"""Documents of upstream channels become entries: what is kept of hostile and odd ones."""

import bz2
import json

import pytest
import zstandard

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.proxied.normaliser import (
    NAMES,
    SUBDIRS,
    normalise_channeldata,
    normalise_exports,
    normalise_repodata,
)
from pkgrepo.proxy.parts.values import Context, section_of

MD5, SHA256 = "a" * 32, "B" * 64
CONTEXT = Context("noarch", "https://cdn.example/x", "", "https://channel.example/c/noarch/repodata.json.zst")


def record(name="demo", version="1.0", build="0", **more):
    found = {"name": name, "version": version, "build": build, "md5": MD5, "sha256": SHA256, "size": 7, **more}
    return {key: each for key, each in found.items() if each is not None}


def normalise(conda=None, packages=None, context=CONTEXT, **info):
    document = {"info": {"subdir": "noarch", **info}, "packages": packages or {}, "packages.conda": conda or {}}
    made = normalise_repodata(json.dumps(document).encode(), context)
    return made, list(made.entries)


def test_entries_are_in_the_order_of_names_and_versions():
    versions = ["1.10", "1.9", "1.9rc1", "2!0.1"]
    records = {f"b-{each}-0.conda": record("b", each) for each in versions}
    records["b-c-1.0-0.conda"] = record("b-c")
    made, entries = normalise(records, {"a-1.0-0.tar.bz2": record("a")})
    assert made.ordered
    assert made.top[NAMES] == ["a", "b", "b-c"]
    assert [(each.sort, each.key) for each in entries] == sorted((each.sort, each.key) for each in entries)
    assert [each.version for each in entries if each.sort.startswith(section_of("b"))] == [
        "1.9rc1",
        "1.9",
        "1.10",
        "2!0.1",
    ]


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        (None, "https://channel.example/c/noarch/"),
        ("../files", "https://channel.example/c/files/"),
        ("https://files.example/x/", "https://files.example/x/"),
    ],
    ids=["none", "relative", "absolute"],
)
def test_files_are_below_the_channel_or_base_url(base_url, expected):
    _, [entry] = normalise({"demo-1.0+l-0.conda": record(version="1.0+l")}, base_url=base_url)
    [file] = entry.files
    assert (file.path, file.url, file.size) == ("noarch/demo-1.0+l-0.conda", f"{expected}demo-1.0%2Bl-0.conda", 7)
    assert file.digests == {"md5": MD5, "sha256": SHA256.lower()}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"timestamp": 1_700_000_000_000}, 1_700_000_000_000),
        ({"timestamp": 1_700_000_000}, 1_700_000_000_000),
        ({"timestamp": 1_700_000_000_000, "indexed_timestamp": 1_800_000_000_000}, 1_800_000_000_000),
        ({"timestamp": -5}, None),
        ({"timestamp": 1e300}, None),
    ],
    ids=["none", "milliseconds", "seconds", "indexed", "negative", "huge"],
)
def test_a_file_is_as_old_as_the_channel_says(fields, expected):
    assert normalise({"demo-1.0-0.conda": record(**fields)})[1][0].published_ms == expected


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("demo-1.0-0.conda", {"md5": None, "sha256": None}),
        ("demo-1.0-0.conda", {"sha256": "0"}),
        ("demo-1.0-0.conda", {"name": "other"}),
        ("demo-1.0-0.conda", {"depends": [1]}),
        ("demo-1.0-0.conda", {"name": None}),
        ("demo-1.0-0.zip", {}),
        ("../demo-1.0-0.conda", {"name": "../demo"}),
        ("demo-1.0.conda", {}),
        (f"demo-1.0-{'0' * 300}.conda", {"build": "0" * 300}),
    ],
    ids=["no-digest", "digest", "name", "depends", "nameless", "ending", "path", "short", "long"],
)
def test_a_record_that_cannot_be_served_takes_no_other_with_it(file, fields):
    _, entries = normalise({file: record(**fields), "good-1.0-0.conda": record("good")})
    assert [each.key for each in entries] == ["good-1.0-0.conda"]


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"[]",
        b"nothing",
        b'{"info":{"subdir":"linux-64"}}',
        b'{"info":{"subdir":"noarch","base_url":"file:///etc"}}',
        b'{"packages":[]}',
        zstandard.compress(b"{}")[:-3],
        bz2.compress(b"{}"),
    ],
    ids=["empty", "list", "text", "folder", "scheme", "type", "cut", "bz2"],
)
def test_a_document_that_is_none_is_refused(source):
    with pytest.raises(Invalid):
        list(normalise_repodata(source, CONTEXT).entries)


@pytest.mark.parametrize("sized", [True, False])
def test_a_document_is_unpacked_within_bounds(sized):
    for size, fits in ((90_000, True), (110_000, False)):
        source = json.dumps({"x": " " * size}).encode()
        if sized:
            packed = zstandard.compress(source)
        else:
            packer = zstandard.ZstdCompressor().compressobj()
            packed = packer.compress(source) + packer.flush()
        if fits:
            assert list(normalise_repodata(packed, CONTEXT, most=100_000).entries) == []
        else:
            with pytest.raises(Invalid, match="more than 100000 bytes"):
                normalise_repodata(packed, CONTEXT, most=100_000)


def test_run_exports_and_channel_data_are_entries_of_the_same_places():
    exports = {"run_exports": {"weak": ["demo"]}}
    document = {"packages.conda": {"demo-1.0-0.conda": exports, "bad-1.0-0.conda": {"run_exports": []}}}
    [entry] = normalise_exports(json.dumps(document).encode(), CONTEXT).entries
    assert (entry.sort, json.loads(entry.fragments["exports.conda"])) == (
        normalise({"demo-1.0-0.conda": record()})[1][0].sort,
        exports,
    )
    document = {"packages": {"demo": {"summary": "x"}, "../up": {}, "odd": []}, "subdirs": ["noarch"]}
    made = normalise_channeldata(json.dumps(document).encode(), CONTEXT)
    assert [(each.key, each.fragments) for each in made.entries] == [("demo", {"about": b'{"summary": "x"}'})]
    assert made.top[SUBDIRS] == ["noarch"]
