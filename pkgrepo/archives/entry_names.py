"""Names of archive members that stay where they are unpacked, on every system."""

from __future__ import annotations

import re

from .source import Source

_UNWANTED = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE = re.compile(r"[A-Za-z]:")
# Parts that are empty, "." or "..": absolute, leading out, or a second spelling of another name.
_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")


def is_portable(text: str) -> bool:
    """Whether a path has no control characters, nothing that is a separator elsewhere, and no drive letter."""
    return not _UNWANTED.search(text) and not _DRIVE.match(text)


def check_entry_name(source: Source, name: str) -> None:
    """
    Let a plain relative path pass; a slash at its end is the caller's business.

    :raises Invalid: it is absolute, leads out, or reads differently elsewhere
    """
    if not is_portable(name):
        raise source.refuse(f"has an entry {name!a} with a backslash, a drive letter or control characters in its name")
    if _BAD_PART.search(name):
        raise source.refuse(f"has an entry {name!a} whose name is not a plain relative path")
