"""
Sort keys of versions: bytes that compare in the order of PEP 440.

A key is a sequence of parts. No part is a prefix of another one, so that comparing bytes compares part by part:

=========  ==========================================================================================
part       bytes
=========  ==========================================================================================
kind       00 for text that is no PEP 440 version (the text follows, in UTF-8), 01 for a version
epoch      number
release    01 and number for each component without trailing zeros, then 00
pre        00 for a bare development release, 01 a, 02 b, 03 rc (each with number), 04 for none
post       00 for none, 01 and number
dev        00 and number, 01 for none
local      00 for none; else 01, then for each segment 01 text 00 or 02 number, then 00
=========  ==========================================================================================

A number is its length in bytes, one byte, and the number itself, most significant byte first.
"""

from __future__ import annotations

from packaging.version import Version

PRE_RELEASES = {"a": b"\x01", "b": b"\x02", "rc": b"\x03"}


def sort_key(version: Version) -> bytes:
    """The sort key of a version; equal versions have equal keys."""
    release = list(version.release)
    while release and release[-1] == 0:
        release.pop()
    parts = [b"\x01", _number(version.epoch)]
    parts += [b"\x01" + _number(component) for component in release]
    parts.append(b"\x00")
    if version.pre is not None:
        parts.append(PRE_RELEASES[version.pre[0]] + _number(version.pre[1]))
    else:
        # PEP 440: 1.0.dev1 comes before 1.0a1, but 1.0.post1.dev1 does not.
        parts.append(b"\x00" if version.post is None and version.dev is not None else b"\x04")
    parts.append(b"\x00" if version.post is None else b"\x01" + _number(version.post))
    parts.append(b"\x01" if version.dev is None else b"\x00" + _number(version.dev))
    parts.append(b"\x00" if version.local is None else b"\x01" + _local(version.local))
    return b"".join(parts)


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
