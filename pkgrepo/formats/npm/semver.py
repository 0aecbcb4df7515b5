"""
The grammar and the order of versions (semantic versioning 2.0.0).

Two maintained libraries exist. ``semver`` refuses the prefixes that npm strips (``v``, ``=``); ``node-semver``, a port
of npm's own, accepts them. Neither makes keys that a database can sort by, and of ranges only the grammar is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

LONGEST_VERSION: Final = 256  # characters
LARGEST_NUMBER: Final = 2**53 - 1  # Number.MAX_SAFE_INTEGER in JavaScript

_NUMBER = r"0|[1-9][0-9]*"
_BUILD_ID = r"[0-9A-Za-z-]+"
_PRE_ID = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"

_VERSION: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<pre>{_PRE_ID}(?:\.{_PRE_ID})*))?"
    rf"(?:\+(?P<build>{_BUILD_ID}(?:\.{_BUILD_ID})*))?",
    re.ASCII,
)
# npm strips any mix of these from the front.
_BEFORE: Final = re.compile(r"[v=\s]*", re.ASCII)

# The grammar of a range, one comparator at a time: an operator, and a version any part of which may be missing or "x".
_PART = rf"(?:{_NUMBER}|[xX*])"
_PARTIAL = (
    rf"[v=]*{_PART}(?:\.{_PART}(?:\.{_PART}(?:-{_PRE_ID}(?:\.{_PRE_ID})*)?(?:\+{_BUILD_ID}(?:\.{_BUILD_ID})*)?)?)?"
)
_COMPARATOR: Final = re.compile(rf"(?:\^|~>?|[<>]?=?)\s*{_PARTIAL}(?!\S)", re.ASCII)
_HYPHEN: Final = re.compile(rf"\s*{_PARTIAL}\s+-\s+{_PARTIAL}\s*", re.ASCII)


@frozen
class Version:
    """
    One version.

    ``text`` is its spelling without the prefixes that npm strips. ``key`` has no build metadata: hosted versions that
    differ in nothing else are the same one, and those of an upstream are not. ``sort`` orders bytewise as versions do.
    """

    text: str
    key: str
    sort: bytes
    is_prerelease: bool


def padded(text: str) -> str:
    """A bound of a range as people write it: ``1`` and ``1.2`` stand for ``1.0.0`` and ``1.2.0``."""
    return text + ".0" * (2 - text.count(".")) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else text


def parse_version(text: str) -> Version:
    """
    The version in a text.

    :raises Invalid: the text is no version
    """
    if len(text) > LONGEST_VERSION:
        raise Invalid(
            f"invalid version: it is {len(text)} characters long, and {LONGEST_VERSION} are the most", "version"
        )
    version = find_version(text)
    if version is None:
        raise Invalid(
            f"invalid version: {quoted(text)} is not MAJOR.MINOR.PATCH as semantic versioning 2.0 has it", "version"
        )
    return version


def find_version(text: str) -> Version | None:
    """The version in a text, or None when it is no version."""
    return _find_version(text) if len(text) <= LONGEST_VERSION else None


@lru_cache(maxsize=4096)
def _find_version(text: str) -> Version | None:
    text = text[_BEFORE.match(text).end() :].rstrip()  # type: ignore[union-attr]
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    core = [int(match[part]) for part in ("major", "minor", "patch")]
    if max(core) > LARGEST_NUMBER:
        return None
    pre = match["pre"]
    return Version(
        text=text,
        key=text.partition("+")[0],
        sort=b"".join(map(_number, core)) + _prerelease(pre),
        is_prerelease=pre is not None,
    )


def highest_version(texts: Sequence[str]) -> Version | None:
    """The last release in a sorted list of versions, or else the last version; None without versions."""
    # From the end: there may be thousands, and usually one of the last is a release.
    highest: Version | None = None
    for text in reversed(texts):
        found = find_version(text)
        highest = highest or found
        if found is not None and not found.is_prerelease:
            return found
    return highest


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


def _prerelease(pre: str | None) -> bytes:
    """
    The part of a sort key behind the numbers.

    A release has the byte 02. Prereleases have 01 and so sort first; behind it each identifier is 01 and a number, or
    02, a text and 00; a final 00 sorts fewer identifiers before more (section 11.4).
    """
    if pre is None:
        return b"\x02"
    ids = (
        b"\x01" + _number(int(each)) if each.isdigit() else b"\x02" + each.encode("ascii") + b"\x00"
        for each in pre.split(".")
    )
    return b"\x01" + b"".join(ids) + b"\x00"


def _number(value: int) -> bytes:
    """A number as one byte for its length, and its bytes, most significant first."""
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")
