"""Search queries, and results of upstreams."""

import functools
import json
import operator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from pkgrepo.formats.npm.search.merged_requests import UpstreamResults, read_results, search_question
from pkgrepo.formats.npm.search.requests import MOST_SIZE, Page, read_page, read_query
from pkgrepo.formats.npm.search.rows import Person, Row, encode_row, read_entry
from pkgrepo.repositories.search_index import Query, SearchIndex, facet, facet_with

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALICE, BOB = Person("alice", "a@example.org"), Person("bob")


def row(name: str, **fields: object) -> Row:
    return Row(name=name, version="1.0.0", date=AT, publisher=ALICE, **fields)


ROWS = [
    row("left-pad", description="Pads on the left", keywords=["pad", "string"], author="Azer", maintainers=[ALICE]),
    row("pad", description="Pads", downloads=10),
    row("right-pad", description="Pads on the right", keywords=["Pad"], maintainers=[BOB], downloads=100),
    row("@acme/pad-tools", description="Tools", maintainers=[ALICE, BOB]),
    row("paddle", description="Boats", deprecated=True),
    row("other", description="Nothing to do with it"),
]


def make_index() -> SearchIndex:
    index = SearchIndex()
    for each in ROWS:
        index.put(read_entry(each.name, encode_row(each), each.downloads))
    return index


def names_of(text: str, page: Page | None = None) -> list[str]:
    page = page or Page()
    return [key for key, _ in make_index().find(read_query(text), page.start, page.size).keys]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("", Query()),
        ("  Left  PAD ", Query(words=("left", "pad"))),
        ("keywords:a,B x", Query(words=("x",), facets=((facet("keyword", "a"), facet("keyword", "b")),))),
        (
            "author:Azer maintainer:bob",
            Query(facets=((facet("maintainer", "bob"),),), patterns=(facet_with("author", "azer"),)),
        ),
        ("scope:acme", Query(facets=((facet("scope", "acme"),),))),
        ("scope:@acme", Query(facets=((facet("scope", "acme"),),))),
        ("@acme", Query(facets=((facet("scope", "acme"),),))),
        ("@acme/x", Query(words=("@acme/x",))),
        ("words:x is:unstable author:", Query(words=("words:x", "is:unstable", "author:"))),
    ],
)
def test_queries_are_read(text: str, query: Query) -> None:
    assert read_query(text) == query


def test_long_queries_are_cut() -> None:
    assert len(read_query("a " * 1000).words) == 8
    assert len(read_query("a" * 1000).words[0]) == 500
    assert (read_query("a " * 9 + "scope:b").facets, len(read_query("scope:a " * 30).facets)) == (
        ((facet("scope", "b"),),),
        20,
    )


def test_best_match_comes_first() -> None:
    assert names_of("pad") == ["pad", "@acme/pad-tools", "right-pad", "left-pad", "paddle"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("left pad", ["left-pad"]),
        ("pads on", ["right-pad", "left-pad"]),
        ("string", ["left-pad"]),
        ("keywords:pad", ["right-pad", "left-pad"]),
        ("keywords:string,nothing", ["left-pad"]),
        ("keywords:string keywords:pad", ["left-pad"]),
        ("author:azer", ["left-pad"]),
        ("maintainer:bob", ["right-pad", "@acme/pad-tools"]),
        ("maintainer:alice maintainer:bob", ["@acme/pad-tools"]),
        ("@acme", ["@acme/pad-tools"]),
        ("@acme/pad-tools", ["@acme/pad-tools"]),
        ("scope:acme left", []),
        ("nothing-like-this", []),
    ],
)
def test_all_terms_must_match(text: str, found: list[str]) -> None:
    assert names_of(text) == found


def test_empty_query_finds_everything() -> None:
    assert sorted(names_of("")) == sorted(each.name for each in ROWS)
    assert make_index().find(Query(), 0, 1).keys[0][1] == 1


def test_pages_follow_each_other() -> None:
    whole = names_of("")
    pages = [names_of("", Page(size=4, start=start)) for start in (0, 4, 8)]
    assert functools.reduce(operator.iadd, pages, []) == whole
    assert [len(page) for page in pages] == [4, 2, 0]
    assert make_index().find(Query(), 0, 1).total == len(ROWS)


@pytest.mark.parametrize(
    ("size", "start", "page"),
    [
        (None, None, Page(20, 0)),
        ("5", "10", Page(5, 10)),
        ("0", "0", Page(0, 0)),
        ("9999", "99999", Page(250, 10_000)),
        ("-1", "x", Page(20, 0)),
        ("", "1.5", Page(20, 0)),
        ("٣", "9" * 5000, Page(20, 0)),
    ],
)
def test_paging_is_bounded(size: str | None, start: str | None, page: Page) -> None:
    assert read_page(size, start) == page


def result(name: Any) -> dict[str, Any]:
    return {"package": {"name": name, "version": "1.0.0", "unknown": 1}, "searchScore": 1}


def test_results_are_kept_as_they_are() -> None:
    found = read_results(json.dumps({"objects": [result("b"), result("@sc/a"), result("b")], "total": 70}).encode())
    assert found.total == 70
    assert [json.loads(msgspec.json.encode(each)) for each in found.objects.values()] == [result("b"), result("@sc/a")]


def test_results_without_a_usable_name_are_left_out() -> None:
    odd = [7, None, {}, {"package": 1}, result(None), result("../x"), result("__proto__"), result("good")]
    assert list(read_results(json.dumps({"objects": odd}).encode()).objects) == ["good"]


def test_number_of_results_is_bounded() -> None:
    many = [result(f"x{number}") for number in range(MOST_SIZE * 2)]
    assert len(read_results(json.dumps({"objects": many}).encode()).objects) == MOST_SIZE


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"objects":{}}', b'{"objects":[],"total":"x"}', b'{"objects":["\xff"]}', b"[" * 9999],
)
def test_answer_that_cannot_be_read_has_no_results(body: bytes) -> None:
    assert read_results(body) == UpstreamResults()


def test_question_has_the_text_and_the_page() -> None:
    parts = urlsplit(search_question("a b&size=9", Page(size=5, start=10)).path)
    assert parse_qs(parts.query) == {"text": ["a b&size=9"], "size": ["5"], "from": ["10"]}
