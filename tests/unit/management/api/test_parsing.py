"""JSON bodies become values, or errors with a pointer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Refusal
from pkgrepo.management.api.schema import parse_json


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
