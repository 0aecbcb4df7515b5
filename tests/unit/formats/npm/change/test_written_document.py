"""Reading a written-back document one version at a time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.change.written_document import PullParser, WrittenDocument, read_written
from pkgrepo.formats.npm.publish.scanner import PublishScanner

TEXT = st.text(st.sampled_from('ab"\\{}[],:é\n'), max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXT, children, max_size=3),
    max_leaves=12,
)


def read(body: bytes) -> WrittenDocument:
    scanner = PublishScanner()
    scanner.feed(body)
    return read_written(scanner.finish())


def take_all(text: bytes) -> dict[str, Any]:
    reader = PullParser(text)
    return {name: reader.piece().value() for name in reader.names()}


def test_only_parts_that_a_change_needs_are_kept() -> None:
    document = {
        "_id": "x",
        "name": "x",
        "versions": {"1.0.0": {"deprecated": "old", "dist": {"a": [{"b": 1}]}}, "1.1.0": {"name": "x"}, "2.0.0": None},
        "dist-tags": {"latest": "1.1.0"},
        "time": {"1.0.0": "2020"},
        "readme": "x" * 1000,
        "maintainers": [{"name": "ann"}],
        "users": {"ann": True},
    }
    assert read(json.dumps(document).encode()) == WrittenDocument(
        members={key: document[key] for key in ("_id", "name", "dist-tags", "maintainers", "users")},
        versions={"1.0.0": "old", "1.1.0": None, "2.0.0": None},
    )


@pytest.mark.parametrize(
    ("body", "versions", "members"),
    [
        (b"{}", None, {}),
        (b' { "versions" : { } } ', {}, {}),
        (b'{"versions":null}', None, {"versions": None}),
        (b'{"versions":["1"]}', None, {"versions": ["1"]}),
        (b'{"versions":{"1":{"deprecated":false},"2":{"deprecated":""}}}', {"1": False, "2": ""}, {}),
        (b'{"versions":{"1":{"\\u0064eprecated":"x"}}}', {"1": "x"}, {}),
        (b'{"versions":{"1":{"keywords":["deprecated"],"deprecated":"x"}}}', {"1": "x"}, {}),
        (b'{"versions":{"1":{"x":{"deprecated":"y"}}}}', {"1": None}, {}),
        (b'{"versions":{"1":{"x":[[[[[[{"a":"}"}]]]]]],"deprecated":"z"}}}', {"1": "z"}, {}),
    ],
)
def test_spellings_of_one_document_are_read_alike(body: bytes, versions: Any, members: dict[str, Any]) -> None:
    assert read(body) == WrittenDocument(members=members, versions=versions)


@pytest.mark.parametrize(
    "body",
    [
        b'{"versions":{"1":{},"1":{}}}',
        b'{"versions":{"1":{},"\\u0031":{}}}',
        b'{"versions":{"1":{"deprecated":"a","deprecated":"b"}}}',
        b'{"versions":{"1":{"deprecated":"a","\\u0064eprecated":"b"}}}',
        b'{"users":{"ann":true,"ann":false}}',
    ],
)
def test_duplicate_keys_are_refused(body: bytes) -> None:
    with pytest.raises(Invalid, match=r"key '(1|deprecated|ann)' twice"):
        read(body)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"versions":{"1":{} "2":{}}}', "',' is missing near byte 20"),
        (b'{"versions":{"1" {}}}', "':' is missing near byte 17"),
        (b'{"versions":{1:{}}}', "a key is missing near byte 13"),
        (b'{"versions":{"1":{},}}', "a key is missing near byte 20"),
        (b'{"versions":{"1":}}', "a value is missing near byte 17"),
        (b'{"versions":{"1":{"a":nul}}}', "invalid character near byte 2"),
        (b'{"versions":{"1":nul}}', "near byte"),
        (b'{"time":{"a" 1}}', "expected ':' near byte 13"),
        (b'{"versions":{"\xff":1}}', "not UTF-8 near byte 14"),
    ],
)
def test_invalid_json_is_refused_with_its_offset(body: bytes, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        read(body)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"a":{"b":1}', b'{"a":"b', b'{"a":{"b', b'{"a":1', b'{"a', b'{"a":{"b":"}']
)
def test_a_text_that_ends_early_is_refused(text: bytes) -> None:
    with pytest.raises(Invalid, match="the body is not JSON"):
        take_all(text)


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.sampled_from([None, 1]))
def test_members_are_those_that_a_whole_document_parser_finds(document: dict[str, Any], indent: int | None) -> None:
    assert take_all(json.dumps(document, indent=indent, ensure_ascii=False).encode()) == document


def test_versions_of_a_document_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkgrepo.formats.npm.change.written_document.MOST_VERSIONS", 3)
    document: dict[str, Any] = {"name": "x", "versions": {f"1.0.{n}": {} for n in range(3)}}
    assert len(read(json.dumps(document).encode()).versions or ()) == 3
    document["versions"]["2.0.0"] = {}
    with pytest.raises(Invalid, match="more than 3 versions"):
        read(json.dumps(document).encode())
