"""The small parts that every route stands on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Refusal
from pkgrepo.management.api.etags import check_unchanged, tag_of
from pkgrepo.management.api.names import action_names, parse_action
from pkgrepo.management.api.pages import PageRequest, cursor_of
from pkgrepo.management.api.parsing import parse_json
from pkgrepo.management.api.problems import PROBLEM_TYPES, PreconditionFailed
from pkgrepo.management.api.schema import Record
from pkgrepo.management.metrics.reactor_lag import STEP_S, ReactorLag
from pkgrepo.model import Action


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
def test_a_wrong_value_is_pointed_at(text: bytes, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_json(text, Outer)
    assert caught.value.pointer == pointer
    assert "`$" not in caught.value.message


def test_an_empty_body_is_an_empty_object() -> None:
    assert parse_json(b" \n", Outer) == Outer()


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
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


def test_a_tag_stands_for_every_byte_but_guards_only_what_people_set() -> None:
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


@given(st.text() | st.integers(0, 2**60))
def test_a_cursor_gives_its_key_back(key: str | int) -> None:
    assert PageRequest(10, cursor_of(key), count=False).after("" if isinstance(key, str) else 0) == key


@given(st.text(max_size=30))
def test_a_cursor_made_up_is_refused_or_harmless(text: str) -> None:
    page_request = PageRequest(10, text or "x", count=False)
    try:
        key: object = page_request.after("")
    except Invalid as error:
        key = error.pointer
    assert isinstance(key, str)


@given(st.lists(st.text(max_size=3), unique=True), st.integers(1, 4))
def test_pages_of_a_list_in_memory_join_to_the_list(names: list[str], limit: int) -> None:
    every = sorted(name for name in names if name)
    seen: list[str] = []
    cursor = None
    while True:
        page = PageRequest(limit, cursor, count=True).page_of_all(every, str, str)
        assert page.total == len(every)
        seen += page.items
        cursor = page.next
        if cursor is None:
            break
    assert seen == every


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("read", Action.READ),
        ("Write", Action.WRITE),
        ("repository:delete", Action.DELETE),
        ("EditRepository", Action.EDIT),
        ("fly", None),
        ("", None),
    ],
)
def test_actions_are_read_in_several_spellings(text: str, action: Action | None) -> None:
    assert parse_action(text) == action


def test_actions_are_shown_from_the_least_to_the_most() -> None:
    assert action_names(set(Action)) == ["read", "write", "overwrite", "delete", "edit", "admin"]


def test_problems_say_what_they_mean() -> None:
    for title, explanation in PROBLEM_TYPES.values():
        assert title[0].isupper()
        assert explanation.endswith(".")


def test_lag_is_how_late_the_reactor_calls() -> None:
    from twisted.internet.task import Clock

    clock = Clock()
    lag = ReactorLag(clock)
    lag.startService()
    clock.advance(STEP_S)
    clock.advance(STEP_S + 0.015)
    lag.stopService()
    (family,) = lag.snapshot()()
    samples = {sample.labels.get("le", sample.name): sample.value for sample in family.samples}
    assert samples["pkgrepo_reactor_lag_seconds_count"] == 2
    assert (samples["0.001"], samples["0.01"], samples["0.02"], samples["+Inf"]) == (1, 1, 2, 2)
    assert clock.getDelayedCalls() == []
