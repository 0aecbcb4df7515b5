"""Checks that the names of archive entries are safe: relative paths below the target folder, on every system."""

from __future__ import annotations

import re

from .source import Source

_UNWANTED = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE = re.compile(r"[A-Za-z]:")
# A component that is empty, "." or "..": the path is absolute, leaves the folder, or is another form of a simpler path.
_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")


def is_portable(text: str) -> bool:
    """Whether a path has no control characters, no backslash and no drive letter."""
    return not _UNWANTED.search(text) and not _DRIVE.match(text)


def check_entry_name(source: Source, name: str) -> None:
    """
    Check that a name is a plain relative path. The caller removes a trailing slash first.

    :raises Invalid: the path is absolute, leaves the folder, or has another meaning on another system
    """
    if not is_portable(name):
        raise source.refuse(f"has an entry {name!a} with a backslash, a drive letter or control characters in its name")
    if _BAD_PART.search(name):
        raise source.refuse(f"has an entry {name!a} whose name is not a plain relative path")
