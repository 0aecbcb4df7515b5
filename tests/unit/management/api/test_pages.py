"""Cursors and pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.management.api.names import action_names, parse_action
from pkgrepo.management.api.pages import PageRequest, cursor_of
from pkgrepo.model import Action


@given(st.text() | st.integers(0, 2**60))
def test_a_cursor_decodes_to_its_key(key: str | int) -> None:
    assert PageRequest(10, cursor_of(key), count=False).after("" if isinstance(key, str) else 0) == key


@given(st.text(max_size=30))
def test_an_invented_cursor_is_refused_or_decodes_to_text(text: str) -> None:
    page_request = PageRequest(10, text or "x", count=False)
    try:
        key: object = page_request.after("")
    except Invalid as error:
        key = error.pointer
    assert isinstance(key, str)


@given(st.lists(st.text(max_size=3), unique=True), st.integers(1, 4))
def test_the_pages_of_a_list_in_memory_contain_the_list(names: list[str], limit: int) -> None:
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
def test_actions_are_parsed_in_several_spellings(text: str, action: Action | None) -> None:
    assert parse_action(text) == action


def test_action_names_are_ordered_from_the_least_to_the_most() -> None:
    assert action_names(set(Action)) == ["read", "write", "overwrite", "delete", "edit", "admin"]
