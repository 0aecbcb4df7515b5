"""Actions in repositories, as callers of this and of other servers spell them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pkgrepo.errors import Invalid
from pkgrepo.model import Action

_ORDER = list(Action)


def parse_action(text: str) -> Action | None:
    """The action of this name in any case, also as ``repository:read`` or ``ReadRepository``; None for others."""
    word = text.casefold().removeprefix("repository:").removesuffix("repository")
    try:
        return Action(word)
    except ValueError:
        return None


def parse_actions(texts: Iterable[str], pointer: str) -> frozenset[Action]:
    """
    A set of actions.

    :raises Invalid: with the pointer of what is none
    """
    found = set()
    for index, text in enumerate(texts):
        action = parse_action(text)
        if action is None:
            raise Invalid(f"there is no action {text!r}; there are {', '.join(Action)}", f"{pointer}/{index}")
        found.add(action)
    return frozenset(found)


def show_actions(actions: Iterable[Action]) -> Sequence[str]:
    """Actions as words, from the least to the most."""
    return [str(action) for action in sorted(actions, key=_ORDER.index)]
