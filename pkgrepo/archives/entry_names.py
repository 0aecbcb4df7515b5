"""Checks that names of archive members stay below the folder where they are unpacked, on every system."""

from __future__ import annotations

import re

from .source import Source

_UNWANTED = re.compile(r"[\x00-\x1f\x7f\\]")
_DRIVE = re.compile(r"[A-Za-z]:")
# Components that are empty, "." or "..": the path is absolute, leads out, or is a second spelling of another one.
_BAD_PART = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")


def is_portable(text: str) -> bool:
    """Whether a path has no control characters, no backslash and no drive letter."""
    return not _UNWANTED.search(text) and not _DRIVE.match(text)


def check_entry_name(source: Source, name: str) -> None:
    """
    Check that a name is a plain relative path; the caller removes a slash at its end.

    :raises Invalid: it is absolute, leads out, or means something else on another system
    """
    if not is_portable(name):
        raise source.refuse(f"has an entry {name!a} with a backslash, a drive letter or control characters in its name")
    if _BAD_PART.search(name):
        raise source.refuse(f"has an entry {name!a} whose name is not a plain relative path")
