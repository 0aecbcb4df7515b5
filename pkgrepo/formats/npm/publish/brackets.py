"""
Bulk matching of brackets in a long piece of JSON, without a Python step for each bracket.

A change of a package with thousands of versions sends a document of 10 MB, nearly all of it inside one object. Stepping
from bracket to bracket takes six times as long.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.untrusted.strict_json import CLOSING

_NO_MARKS: Final = bytes(set(range(256)) - set(b'{}[]"'))


def skip_brackets(text: bytes, nesting: list[int], deepest: int, most: int) -> tuple[int, int]:
    """
    The number of bytes skipped at the front of a piece of JSON, and the number of brackets opened in them.

    The piece must begin outside a string. ``nesting`` holds the closing bracket of each open one, and is updated. A
    string that does not end in the piece is not skipped. Nothing is skipped, and the caller then goes byte by byte,
    when brackets do not match, when more than ``deepest`` may be open at once, or when the last one is closed. Nothing
    is skipped either when more than ``most`` are opened; that is found before any matching.
    """
    # Remove escaped quotes. A backslash outside a string is no JSON; the parse of the whole document refuses it later.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    if text.count(b'"') % 2:
        text = text[: text.rindex(b'"')]
    marks = text.translate(None, _NO_MARKS).replace(b'""', b"")  # brackets between two quotes are in a string
    found = b"".join(marks.split(b'"')[::2])
    opened = found.count(b"{") + found.count(b"[")
    if opened > most:
        return 0, opened
    left, depth = found, len(nesting)
    # Each turn removes the pairs that contain nothing, which is one level of nesting.
    while depth <= deepest and (b"{}" in left or b"[]" in left):
        left = left.replace(b"{}", b"  ").replace(b"[]", b"  ").replace(b" ", b"")
        depth += 1
    opens = left.lstrip(b"}]")
    closes = left[: len(left) - len(opens)]
    kept = len(nesting) - len(closes)
    if kept <= 0 or depth + len(opens) > deepest:
        return 0, 0
    if opens.strip(b"{[") or closes != bytes(reversed(nesting[kept:])):
        return 0, 0
    nesting[kept:] = map(CLOSING.__getitem__, opens)
    return len(text), opened
