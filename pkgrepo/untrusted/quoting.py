"""Quoting of texts from outside in messages."""

from __future__ import annotations


def quoted(text: str) -> str:
    """A text in quotes, cut to 80 characters, with control and non-ASCII characters escaped."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")
