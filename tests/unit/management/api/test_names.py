"""Names of actions."""

from __future__ import annotations

import pytest

from pkgrepo.management.api.names import action_names, parse_action
from pkgrepo.model import Action


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
