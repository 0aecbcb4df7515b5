"""
The brackets of a long piece of JSON, found without looking at each.

A change of a package of thousands of versions comes with a document of ten megabytes, nearly all of which is inside of
one object. Going through it from bracket to bracket takes six times as long.
"""

from __future__ import annotations

from typing import Final

CLOSING: Final = {ord("{"): ord("}"), ord("["): ord("]")}

_NO_MARKS: Final = bytes(set(range(256)) - set(b'{}[]"'))


def pass_over(text: bytes, nesting: list[int], deepest: int, most: int) -> tuple[int, int]:
    """
    Go through a piece of JSON that begins outside of strings: how many bytes that is, and how many brackets it opens.

    ``nesting`` are the brackets that close what is open before it, and then after it. A string that the piece does not
    end is left out. Nothing is passed over where brackets do not fit together, or where more than ``deepest`` may be
    open at once, or when all were closed: that is for who goes byte for byte. Nor where more than ``most`` are opened,
    which is seen at once.
    """
    # Quotes that end no string. Outside of one no JSON has a backslash: what is made of that is refused later.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    if text.count(b'"') % 2:
        text = text[: text.rindex(b'"')]
    marks = text.translate(None, _NO_MARKS).replace(b'""', b"")  # what is left between two quotes is in a string
    found = b"".join(marks.split(b'"')[::2])
    opened = found.count(b"{") + found.count(b"[")
    if opened > most:
        return 0, opened
    left, depth = found, len(nesting)
    # Each turn takes out what nothing is in, one level: a pair that it empties waits for the next.
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
