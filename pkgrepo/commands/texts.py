"""Texts from outside on a terminal."""

from __future__ import annotations

import re

# Control characters, and those that change the direction of what follows: both could make a terminal show what is not.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A text from outside without control characters, which could change the terminal."""
    return _CONTROL.sub("?", text)
