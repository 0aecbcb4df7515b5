"""
Versions as npm reads them: it strips prefixes (``v``, ``=``), and has numbers of JavaScript.

Of ranges only the grammar is here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories import semver
from pkgrepo.repositories.semver import BUILD_ID, LONGEST_VERSION, NUMBER, PRERELEASE_ID, Version, highest_version

LARGEST_NUMBER: Final = 2**53 - 1  # Number.MAX_SAFE_INTEGER in JavaScript

# npm strips any mix of these from the front.
_BEFORE: Final = re.compile(r"[v=\s]*", re.ASCII)

# The grammar of a range, one comparator at a time: an operator, and a version any part of which may be missing or "x".
_PART = rf"(?:{NUMBER}|[xX*])"
_PARTIAL = (
    rf"[v=]*{_PART}(?:\.{_PART}(?:\.{_PART}(?:-{PRERELEASE_ID}(?:\.{PRERELEASE_ID})*)?"
    rf"(?:\+{BUILD_ID}(?:\.{BUILD_ID})*)?)?)?"
)
_COMPARATOR: Final = re.compile(rf"(?:\^|~>?|[<>]?=?)\s*{_PARTIAL}(?!\S)", re.ASCII)
_HYPHEN: Final = re.compile(rf"\s*{_PARTIAL}\s+-\s+{_PARTIAL}\s*", re.ASCII)


def parse_version(text: str) -> Version:
    """
    The version in a text.

    :raises Invalid: the text is no version
    """
    found = find_version(text)
    if found is None:
        semver.parse_version(text)
        raise Invalid(f"invalid version: {text} has a number above {LARGEST_NUMBER}", "version")
    return found


def find_version(text: str) -> Version | None:
    """The version in a text, or None when it is no version; its text has no prefixes."""
    if len(text) > LONGEST_VERSION:
        return None
    found = semver.find_version(text[_BEFORE.match(text).end() :].rstrip())  # type: ignore[union-attr]
    return None if found is None or found.largest > LARGEST_NUMBER else found


def latest_instead_of(text: str, shown: Sequence[str]) -> Version | None:
    """
    The version that becomes ``latest`` in place of one that is not shown, of a sorted list; None without versions.

    It is the highest release below it, else the highest one of all.
    """
    before = find_version(text)
    below = [each for each in shown if (found := find_version(each)) and before and found.sort < before.sort]
    latest = highest_version(below)
    return highest_version(shown) if latest is None or latest.is_prerelease else latest


def is_same(text: object, version: Version) -> bool:
    """
    Whether a text is a spelling of this version.

    Build metadata is ignored: npm strips it from what it sends, but keeps it in the package.json of the tarball.
    """
    found = find_version(text) if isinstance(text, str) else None
    return found is not None and found.key == version.key


def is_range(text: str) -> bool:
    """Whether npm takes a text for a range of versions: ``1``, ``^1.2``, ``>=1 <2``, ``1 - 2``, ``x``, even nothing."""
    if len(text) > LONGEST_VERSION:
        return False
    return all(_is_comparators(part.strip()) for part in text.split("||"))


def _is_comparators(text: str) -> bool:
    if not text or _HYPHEN.fullmatch(text):
        return True
    at = 0
    while at < len(text):
        match = _COMPARATOR.match(text, at)
        if match is None:
            return False
        at = match.end()
        while at < len(text) and text[at].isspace():
            at += 1
    return True
