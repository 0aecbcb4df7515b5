"""Versions of Python packages (PEP 440): their keys, and the order of their sort keys."""

from __future__ import annotations

from functools import lru_cache

from packaging.utils import canonicalize_version
from packaging.version import Version

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

LONGEST_VERSION = 255  # characters; longer texts are not parsed, so that a number's length fits in one byte of the key


_PRE_RELEASES = {"a": b"\x01", "b": b"\x02", "rc": b"\x03"}


def parse_version(text: str) -> tuple[str, bytes]:
    """
    The key of a version, equal for every spelling of it, and its sort key.

    ``1.0``, ``v1`` and ``1.0.0`` are one version with key ``1``. Text that PEP 440 does not allow is its own key and
    sorts first: older indexes have such versions.
    """
    return _parse_version(text) if len(text) <= LONGEST_VERSION else (text, legacy_sort_key(text))


def version_key(text: str) -> str:
    """The key of a version, equal for every spelling of it."""
    return parse_version(text)[0]


def is_prerelease(text: str) -> bool:
    """Whether a version is a prerelease or a development release; false for text that PEP 440 does not allow."""
    found = find_version(text)
    return found is not None and found.is_prerelease


def find_version(text: str) -> Version | None:
    """The parsed version, or None if PEP 440 does not allow the text."""
    return _find_version(text) if len(text) <= LONGEST_VERSION else None


@lru_cache(maxsize=4096)
def _find_version(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:  # also of a number that is too long
        return None


@lru_cache(maxsize=4096)
def _parse_version(text: str) -> tuple[str, bytes]:
    version = find_version(text)
    if version is None:
        return text, legacy_sort_key(text)
    return canonicalize_version(version), sort_key(version)


def sort_key(version: Version) -> bytes:
    """
    The sort key of a version: bytes that compare in the order of PEP 440. Equal versions have equal keys.

    A key is a sequence of parts. No part is a prefix of another one, so that comparing bytes compares part by part:

    =========  ======================================================================================
    part       bytes
    =========  ======================================================================================
    kind       00 for text that is no PEP 440 version (the text follows, in UTF-8), 01 for a version
    epoch      number
    release    01 and number for each component without trailing zeros, then 00
    pre        00 for a bare development release, 01 a, 02 b, 03 rc (each with number), 04 for none
    post       00 for none, 01 and number
    dev        00 and number, 01 for none
    local      00 for none; else 01, then for each segment 01 text 00 or 02 number, then 00
    =========  ======================================================================================

    A number is its length in bytes, one byte, and the number itself, most significant byte first.
    """
    release = list(version.release)
    while release and release[-1] == 0:
        release.pop()
    parts = [b"\x01", _number(version.epoch)]
    parts += [b"\x01" + _number(component) for component in release]
    parts.append(b"\x00")
    if version.pre is not None:
        parts.append(_PRE_RELEASES[version.pre[0]] + _number(version.pre[1]))
    else:
        # PEP 440: 1.0.dev1 comes before 1.0a1, but 1.0.post1.dev1 does not.
        parts.append(b"\x00" if version.post is None and version.dev is not None else b"\x04")
    parts.append(b"\x00" if version.post is None else b"\x01" + _number(version.post))
    parts.append(b"\x01" if version.dev is None else b"\x00" + _number(version.dev))
    parts.append(b"\x00" if version.local is None else b"\x01" + _local(version.local))
    return b"".join(parts)


def bound_key(text: str) -> bytes:
    """The sort key of a version that bounds a range. :raises Invalid: PEP 440 does not allow the text"""
    version = find_version(text)
    if version is None:
        raise Invalid(f"{quoted(text)} is not a version as PEP 440 has it", "version")
    return sort_key(version)


def builds(text: str) -> tuple[bytes, bytes]:
    """
    The sort keys of a version, and of its local versions if it has no local part, to the second (exclusive).

    PEP 440, version matching: a version without a local part matches whatever local part a candidate has.
    """
    version, key = find_version(text), parse_version(text)[1]
    if version is None or version.local is not None:
        return key, key + b"\0"
    return key, key[:-1] + b"\x02"  # above the mark 01 of all local parts


def legacy_sort_key(text: str) -> bytes:
    """The sort key of text that is no PEP 440 version: below every version, ordered by text."""
    return b"\x00" + text.encode("utf-8", "surrogatepass")


def _local(local: str) -> bytes:
    segments = (
        b"\x02" + _number(int(segment)) if segment.isdigit() else b"\x01" + segment.encode("ascii") + b"\x00"
        for segment in local.split(".")
    )
    return b"".join(segments) + b"\x00"


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")
