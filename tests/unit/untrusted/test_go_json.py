"""Objects of JSON as programs written in Go read them."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.untrusted.go_json import folded, values_of, with_keys

KEYS = {"name": None, "config": {"User": None, "Labels": None}, "history": {"by": None}}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"name": "a", "other": 1}, {"name": "a"}),
        ({"NAME": "a"}, {"name": "a"}),
        ({"name": "a", "Name": "b"}, {"name": "b"}),
        ({"name": "a", "Name": None}, {"name": "a"}),
        ({"Config": {"u\u017fer": "x"}}, {"config": {"User": "x"}}),
        (
            {"config": {"User": "x"}, "CONFIG": {"labels": {"User": "y"}}},
            {"config": {"User": "x", "Labels": {"User": "y"}}},
        ),
        ({"config": {"User": "x"}, "CONFIG": None}, {"config": None}),
        ({"History": [{"BY": 1}, "x", None]}, {"history": [{"by": 1}, "x", None]}),
        ([{"NAME": 1}], [{"name": 1}]),
        ("x", "x"),
        (None, None),
    ],
)
def test_keys_are_spelt_as_they_are_known(value: Any, read: Any) -> None:
    assert with_keys(value, KEYS) == read


def test_values_of_all_spellings_are_found() -> None:
    assert values_of([{"a": 1, "A": 2}, 3, {"b": 4}], "A") == [1, 2]
    assert folded("\u017fKEY") == "skey"


def test_lists_in_lists_are_no_objects_however_deep_they_are() -> None:
    value: Any = {"Entrypoint": ["x"]}
    for _ in range(5000):
        value = [value]
    assert with_keys({"Config": value}, {"config": {"Entrypoint": None}}) == {"config": value}
