"""Lists and ``.info`` of upstreams, what is asked of these, and lock files."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.go.mirrored import read_requires, read_sum
from pkgrepo.formats.go.normaliser import normalise_info, normalise_list
from pkgrepo.formats.go.proxied import described_by, file_question, question
from pkgrepo.proxy.parts.values import Context

X = "example.com/X"
PSEUDO = "v0.0.0-20240102030405-abcdefabcdef"
H1 = f"h1:{'A' * 43}="


def test_a_list_has_the_versions_that_the_module_can_have() -> None:
    lines = f"v1.1.0\r\nv1.0.0 2024-01-01T00:00:00Z\n\n{PSEUDO}\nv2.0.0\nv3\nvx\nv4.0.0+incompatible"
    entries = list(normalise_list(lines.encode(), Context(X, "")).entries)
    assert [(each.version, each.fragments) for each in entries] == [
        ("v1.1.0", {"list": b"v1.1.0"}),
        ("v1.0.0", {"list": b"v1.0.0"}),
        (PSEUDO, {"pseudo": PSEUDO.encode()}),
        ("v4.0.0+incompatible", {"list": b"v4.0.0+incompatible"}),
    ]
    assert [each.published_ms for each in entries] == [None, None, 1704164645000, None]


def test_a_list_may_be_empty() -> None:
    assert list(normalise_list(b"\n", Context(X, "")).entries) == []


@pytest.mark.parametrize("source", [b"<html>\n<p>Log in</p>", b"not found: x", b'{"error":"x"}'])
def test_what_is_no_list(source: bytes) -> None:
    with pytest.raises(Invalid, match="no list"):
        normalise_list(source, Context(X, ""))


def test_a_list_that_ends_in_the_middle_of_a_line() -> None:
    with pytest.raises(Invalid, match="in the middle of a line"):
        normalise_list(b"v1.0.0\nv1.1", Context(X, ""))


def test_an_info_is_kept_as_it_is() -> None:
    source = b'{"Version":"v1.0.0","Time":"2024-01-02T03:04:05+01:00","Origin":{"VCS":"git"},"x":1}'
    entry = next(normalise_info(source, Context(f"{X}@main", "")).entries)
    assert (entry.version, entry.published_ms, entry.fragments) == ("v1.0.0", 1704161045000, {"info": source})


@pytest.mark.parametrize(
    "source",
    [b"", b"[]", b"<html>", b'{"Time":"2024-01-02T03:04:05Z"}', b'{"Version":"v2.0.0"}', b'{"Version":"main"}'],
)
def test_what_is_no_info_of_the_module(source: bytes) -> None:
    with pytest.raises(Invalid):
        normalise_info(source, Context(f"{X}@main", ""))


@pytest.mark.parametrize(
    ("key", "url"),
    [
        (X, "https://up.example/example.com/!x/@v/list"),
        (f"{X}@latest", "https://up.example/example.com/!x/@latest"),
        (f"{X}@feature-X", "https://up.example/example.com/!x/@v/feature-!x.info"),
        (f"{X}@a b", "https://up.example/example.com/!x/@v/a%20b.info"),
    ],
)
def test_what_is_asked_of_an_upstream(key: str, url: str) -> None:
    asked = question(key)
    assert (asked.package_key, list(asked.urls("https://up.example"))) == (X, [url])


def test_files_of_versions_last_and_those_of_a_database_are_settled() -> None:
    of_version = file_question(X, "example.com/!x/@v/v1.0.0.mod")
    assert (of_version.lasting, of_version.version_key) == (True, "v1.0.0")
    tile = file_question("", "sumdb/sum.example/tile/8/0/000")
    assert (tile.lasting, tile.settled, tile.may_be_empty) == (False, True, False)
    lookup = file_question(X, "sumdb/sum.example/lookup/example.com/!x@v1.0.0")
    assert (lookup.settled, lookup.package_key) == (True, X)
    head = file_question("", "sumdb/sum.example/latest")
    assert (head.settled, head.most_ttl_s) == (False, 60)
    assert file_question("", "sumdb/sum.example/supported").may_be_empty


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("", "example.com/!x/@v/v1.0.0.mod"),
        ("example.com/y", "example.com/!x/@v/v1.0.0.mod"),
        ("", "sumdb/sum.example/lookup/example.com/!x@v1.0.0"),
        (X, "sumdb/sum.example/latest"),
        (X, "example.com/!x/@v/list"),
        (X, "other"),
    ],
)
def test_files_of_something_else_are_not_asked_for(key: str, path: str) -> None:
    with pytest.raises(NotFound):
        file_question(key, path)


def test_a_version_is_described_by_its_info_and_its_zip() -> None:
    described = ["example.com/!x/@v/v1.0.0.info", "example.com/!x/@v/v1.0.0.zip"]
    assert described_by("example.com/!x/@v/v1.0.0.mod") == described
    assert not described_by("sumdb/sum.example/latest")


def test_a_go_sum_names_zips_and_go_mods() -> None:
    lock = read_sum(f"{X} v1.0.0 {H1}\n{X} v1.0.0/go.mod {H1}\na.b/c v0.1.0/go.mod {H1}\n")
    assert [(each.name, each.version, each.file) for each in lock.wanted] == [
        (X, "v1.0.0", ""),
        (X, "v1.0.0", "v1.0.0.mod"),
        ("a.b/c", "v0.1.0", "v0.1.0.mod"),
    ]


def test_a_list_names_modules_with_versions() -> None:
    assert [(each.name, each.version) for each in read_sum(f"{X}@v1.0.0\n\na.b/c v1.2.3\n").wanted] == [
        (X, "v1.0.0"),
        ("a.b/c", "v1.2.3"),
    ]


def test_another_file_is_no_lock() -> None:
    with pytest.raises(Invalid, match="no module with a version"):
        read_sum("left-pad==1.0\n")
    with pytest.raises(Invalid, match="names no module"):
        read_requires("left-pad==1.0\n")


def test_a_go_mod_names_all_that_it_requires() -> None:
    lock = read_requires(f"module a.b/c\nrequire {X} v1.0.0\nrequire a.b/d v1.1.0 // indirect\n")
    assert [(each.name, each.version) for each in lock.wanted] == [(X, "v1.0.0"), ("a.b/d", "v1.1.0")]
