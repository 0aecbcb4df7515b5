"""JSON bodies become values, or errors with a pointer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal
from pkgrepo.management.api.problems import PROBLEM_TYPES, PreconditionFailed
from pkgrepo.management.api.schema import Record, check_unchanged, parse_json, tag_of


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: list[Inner] = []
    by_name: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (b'{"inner": [{"number": 1}, {"number": "x"}]}', "/inner/1/number"),
        (b'{"inner": [{}]}', "/inner/0/number"),
        (b'{"inner": [{"number": 1, "more": 2}]}', "/inner/0/more"),
        (b'{"inner": 7}', "/inner"),
        (b'{"a/b": 7}', "/a~1b"),
        (b"7", ""),
    ],
)
def test_a_wrong_value_has_its_pointer(text: bytes, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_json(text, Outer)
    assert caught.value.pointer == pointer
    assert "`$" not in caught.value.message


def test_an_empty_body_is_an_empty_object() -> None:
    assert parse_json(b" \n", Outer) == Outer()


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_or_refused_with_400(data: bytes) -> None:
    refusals: list[Refusal] = []
    try:
        parse_json(data, Any)
    except Refusal as refusal:
        refusals.append(refusal)
    assert [each.status for each in refusals] in ([], [400])


class Thing(Record):
    name: str
    uses: int

    measured = frozenset({"uses"})


def test_a_tag_depends_on_all_fields_but_if_match_compares_no_measured_ones() -> None:
    thing, used, renamed = Thing(name="a", uses=1), Thing(name="a", uses=2), Thing(name="b", uses=1)
    tags = {tag_of(each) for each in (thing, used, renamed)}
    assert len(tags) == 3
    check_unchanged(tag_of(thing), used)
    check_unchanged(None, renamed)
    check_unchanged(b"*", renamed)
    for condition in (tag_of(thing), b"nonsense", b'""', b'W/"x"'):
        with pytest.raises(PreconditionFailed):
            check_unchanged(condition, renamed)


def test_a_tag_does_not_depend_on_the_order_of_keys() -> None:
    assert tag_of({"a": 1, "b": {"c": 2, "d": 3}}) == tag_of({"b": {"d": 3, "c": 2}, "a": 1})


def test_each_problem_type_has_a_title_and_an_explanation() -> None:
    for title, explanation in PROBLEM_TYPES.values():
        assert title[0].isupper()
        assert explanation.endswith(".")
