"""Texts from outside in sentences of ours."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A text, quoted, short enough for a sentence and without characters that a terminal would obey."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")
