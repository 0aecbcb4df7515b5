"""Queries of searches, filters of versions, and badges, whose texts come from anybody."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.search.query import Query, filter_versions, read_number, read_query


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Query()),
        ("*:*", Query()),
        ("guava", Query(words=("guava",))),
        ("spring core", Query(words=("spring", "core"))),
        ("g:com.example AND a:app", Query(group="com.example", artifact="app")),
        ('g:"com.example"  a:"app" AND v:"1.0 x"', Query(group="com.example", artifact="app", version="1.0 x")),
        ("1:ABCDEF", Query(sha1="ABCDEF")),
        ("p:jar l:sources words", Query(packaging="jar", classifier="sources", words=("words",))),
        ('x:y "a b" AND', Query(words=("x:y", "a b"))),
        ('"unclosed', Query(words=('"unclosed',))),
    ],
)
def test_queries(text, expected):
    assert read_query(text) == expected


@pytest.mark.parametrize(
    "text", ["x" * 501, "g:a g:b", "fc:com.example.Main", "a:b AND c:Main", " ".join("abcdefghijkl"), "AND " * 100]
)
def test_queries_that_are_refused(text):
    with pytest.raises(Invalid):
        read_query(text)


def test_patterns_are_escaped():
    assert read_query("g:com.* a:a_b%").match().keys == (r"com.%:a\_b\%",)
    assert read_query(r"50%\x").match().keys == ("%:%", r"%50\%\\x%")
    assert read_query('l:"').match().attrs == r'"classifier":"\""'


@pytest.mark.parametrize(("text", "value"), [(None, 20), ("", 20), ("5", 5), ("0", 0), ("999", 200)])
def test_numbers(text, value):
    assert read_number(text, 20, 200, "rows") == value


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "9" * 10, "٣"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(Invalid):
        read_number(text, 20, 200, "rows")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, ["1.0", "1.1-rc", "2.0"]),
        ("1.", ["1.0", "1.1-rc"]),
        ("has:rc", ["1.1-rc"]),
        ("none:rc", ["1.0", "2.0"]),
        ("1.|none:-", ["1.0"]),
        ("3", []),
    ],
)
def test_filters(wanted, found):
    assert filter_versions(["1.0", "1.1-rc", "2.0"], wanted) == found
