"""Bulk matching of brackets in JSON."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.publish import scanner as scanner_module
from pkgrepo.formats.npm.publish.brackets import skip_brackets
from pkgrepo.formats.npm.publish.scanner import PublishScanner

TEXT = st.text(st.sampled_from('ab"\\{}[],:é'), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("text", "left", "opened", "size"),
    [
        (b'"a":1,"b":{"c":[]}', b"}", 2, 18),
        (b'"a":{"b":[1', b"}}]", 2, 11),
        (b"]},{", b"}}", 1, 4),
        (rb'"\"{":"\\","}":["\\\"["]', b"}", 1, 24),
        (b'"a":{},"be', b"}", 1, 7),
        (b'"a":{},"b\\', b"}", 1, 7),
        (b'"a":"{[","b":"}"', b"}", 0, 16),
    ],
)
def test_open_brackets_after_a_piece_are_known(text: bytes, left: bytes, opened: int, size: int) -> None:
    nesting = list(b"}}]" if text.startswith(b"]") else b"}")
    assert skip_brackets(text, nesting, 64, 100) == (size, opened)
    assert bytes(nesting) == left


@pytest.mark.parametrize("text", [b"1}", b"]", b"{]", b"[}}", b"}{", b'"a":[[[[['])
def test_pieces_that_need_the_slow_path_are_not_skipped(text: bytes) -> None:
    nesting = list(b"}")
    assert skip_brackets(text, nesting, 5, 100) == (0, 0)
    assert bytes(nesting) == b"}"


@pytest.mark.parametrize("pair", [b"[]", b"{}"])
@pytest.mark.parametrize("count", [4, 5, 100_000])
def test_nested_brackets_are_skipped_up_to_the_depth_limit(pair: bytes, count: int) -> None:
    opening, closing = pair[:1] + b"[", b"]" + pair[1:]
    text = opening * (count // 2) + pair[:1] * (count % 2) + pair[1:] * (count % 2) + closing * (count // 2)
    assert skip_brackets(text, list(b"}"), 5, 200_000) == ((len(text), count) if count == 4 else (0, 0))


def test_too_many_brackets_are_found_before_matching() -> None:
    nesting = list(b"}")
    assert skip_brackets(b"[]" * 100, nesting, 5, 99) == (0, 100)
    assert skip_brackets(b"[]" * 100, nesting, 5, 100) == (200, 100)


@given(VALUES, st.lists(st.integers(0, 5000), max_size=6), st.randoms(use_true_random=False))
def test_bulk_skipping_does_not_change_the_result(value: Any, cuts: list[int], rng: random.Random) -> None:
    whole = {"a": value, "versions": [value, {"x": value}], "z": rng.choice(["{", "]", ""])}
    body = json.dumps(whole, ensure_ascii=False).encode()
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner_module, "BULK_SIZE", 1)
        scanner = PublishScanner()
        for begin, end in itertools.pairwise(edges):
            scanner.feed(body[begin:end])
        assert scanner.finish().value() == whole


def test_brackets_are_counted_in_bulk_skipping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner_module, "FREE_BRACKETS", 3000)
    scanner = PublishScanner()
    scanner.feed(b'{"a":[1')
    scanner.feed(b",[]" * 2000)
    with pytest.raises(Invalid, match="more than 3000 objects and arrays"):
        scanner.feed(b",[]" * 2000)


def test_mismatched_brackets_are_refused_with_their_offset_in_bulk_skipping() -> None:
    scanner = PublishScanner()
    scanner.feed(b'{"a":[1')
    with pytest.raises(Invalid, match="at byte 6012"):
        scanner.feed(b",{ }" * 1500 + b",[1,2}")
