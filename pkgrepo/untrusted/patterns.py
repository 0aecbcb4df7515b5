"""Patterns that texts from outside match, with what they mean in words: no sentence shows a regular expression."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.untrusted.text import ONE_LINE

_UNMATCHED: Final = re.compile(r"Expected `str` matching regex (.*)", re.DOTALL)
_IN_WORDS: Final = dict[str, str]()  # as msgspec writes the pattern


def pattern(regex: str, words: str) -> str:
    """The pattern of a field, which a message calls by these ``words``, such as "a user name"."""
    _IN_WORDS[repr(regex)] = words
    return regex


def in_words(message: str) -> str:
    """What msgspec says of a value that is wrong, without the pattern that it does not match."""
    found = _UNMATCHED.fullmatch(message)
    return message if found is None else f"Expected {_IN_WORDS.get(found[1], 'a text of another form')}"


def has_words(regex: str) -> bool:
    """Whether a pattern is known in words."""
    return repr(regex) in _IN_WORDS


pattern(ONE_LINE, "one line without control characters")
