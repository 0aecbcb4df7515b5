"""
Sort keys of versions: bytes that compare in the order of Maven's ``ComparableVersion``.

The order is that of Maven 3.8.7 and every 3.9, whose classes are the same. Maven 4 differs where a dash stands between
a word and a number: it reads ``1-b-2`` as ``1-b2``, a beta. To Maven 3, and here, that ``b`` is a word like any other.

A version is a list of numbers and words. A ``-``, a change between digits and letters, and a word after a ``.`` begin a
list within the list; it is always the last item, so a version is a chain of lists. Zeros and words for ``""`` at the
end of each list are dropped. Lists compare item by item; an item without counterpart compares with "nothing":

- words: alpha < beta < milestone < rc = cr < snapshot < ``""`` = ga = final = release < sp < other words, by text.
  ``""`` and zero equal nothing. ``a``, ``b`` and ``m`` directly before a digit are alpha, beta and milestone
- a list compares with nothing like its first item that is unequal to nothing
- a word is before a list, and a list before a number, also before zero

These rules have cycles for a few versions: ``1 < 1.sp.1 < 1-alpha < 1``. The keys keep how each list compares with
nothing, so that ``1-alpha < 1 < 1.sp.1``. In a cycle is always a version with a word directly before a ``.`` or ``-``,
or with a zero at the begin of a list, as ``1-0-alpha`` has.

A key has one part for each item, and the mark of a list before its items. No part is a prefix of another one:

=========  ======================================================================================
mark       meaning, and what follows the mark
=========  ======================================================================================
01 02 03   a word, a list, a zero; with what follows, the version is before one that ends here
04         the end
05 06 07   a word, a list, a zero; with what follows, the version is after one that ends here
08         another number: the count of its digits, one byte (ff: four more bytes), and the digits
=========  ======================================================================================

A word is one byte 00 to 06 in the order above, or 07, its text, and 00.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

# Java's characters are units of UTF-16, so a digit beyond the first plane is a letter to the class.
_TOKENS = re.compile(r"((?:(?![\U00010000-\U0010ffff])\d)+)|([.-])|((?:[\U00010000-\U0010ffff]|[^\d.-])+)")

_WORDS: Final = {
    word: rank
    for rank, words in enumerate(
        (("alpha",), ("beta",), ("milestone",), ("rc", "cr"), ("snapshot",), ("", "ga", "final", "release"), ("sp",))
    )
    for word in words
}
_RELEASE: Final = _WORDS[""]
_OTHER: Final = 7
_BEFORE_DIGIT: Final = {"a": "alpha", "b": "beta", "m": "milestone"}

_WORD, _LIST, _ZERO, _NUMBER = 1, 2, 3, 4  # marks; with _AFTER added if the item and what follows are after the end
_END: Final = b"\x04"
_AFTER: Final = 4
_LARGE: Final = 0xFFFFFFFF  # build numbers from here on follow all others, by their length

# mark, what follows it in the key, and how the item compares with nothing: -1 before, 0 equal, 1 after
_Item = tuple[int, bytes, int]


@lru_cache(maxsize=1000)
def sort_key(version: str) -> bytes:
    """
    The sort key of a version; versions that Maven holds for equal (``1``, ``1.0``, ``1-ga``) have equal keys.

    Any text has one, made in time proportional to its length; it has at most five bytes for each of the text. Those of
    the files of one version are asked for one after the other, so recent ones are kept.
    """
    parts = [_END]  # the last one first
    following = 0  # how the rest of the chain compares with nothing; 0 while nothing of it is kept
    dropping = True
    for mark, body, sign in reversed(list(_items(version.lower()))):
        if mark == _LIST:
            dropping = True
            kept = following != 0
        else:
            kept = sign != 0 or not dropping
            dropping = dropping and not kept
            following = sign or following
        if kept:
            parts.append(bytes((mark + (_AFTER if following > 0 else 0),)) + body)
    return b"".join(reversed(parts))


def _items(version: str) -> Iterator[_Item]:
    """The items in the order of the text, as Maven's ``parseVersion`` finds them."""
    number = word = ""  # what was read last, if it is not given out yet; never both
    empty = True  # whether the list that is being filled has no items
    for digits, mark, letters in _TOKENS.findall(version):
        if mark:
            yield _word(word) if word else _number(number)
            empty = mark == "-"
            if empty:
                yield _LIST, b"", 0
            number = word = ""
        elif digits:
            if word:
                yield from _list_with(_BEFORE_DIGIT.get(word, word), empty=empty)
                yield _LIST, b"", 0
                empty = True
            number, word = digits, ""
        else:
            if number:
                yield _number(number)
                yield _LIST, b"", 0
                empty = True
            number, word = "", letters
    if word:
        yield from _list_with(word, empty=empty)
    elif number:
        yield _number(number)


def _list_with(word: str, *, empty: bool) -> Iterator[_Item]:
    """The word, in a list of its own unless the list that is being filled is empty."""
    if not empty:
        yield _LIST, b"", 0
    yield _word(word)


def _word(text: str) -> _Item:
    rank = _WORDS.get(text, _OTHER)
    sign = (rank > _RELEASE) - (rank < _RELEASE)
    return _WORD, bytes((rank,)) + (_utf16_ordered(text) + b"\x00" if rank == _OTHER else b""), sign


def _number(digits: str) -> _Item:
    """An item for digits of any script; no digits are zero."""
    if not digits.isascii():
        digits = "".join(str(unicodedata.decimal(digit)) for digit in digits)
    digits = digits.lstrip("0")
    if not digits:
        return _ZERO, b"", 0
    count = bytes((len(digits),)) if len(digits) < 0xFF else b"\xff" + len(digits).to_bytes(4, "big")
    return _NUMBER, count + digits.encode("ascii"), 1


def _utf16_ordered(text: str) -> bytes:
    """UTF-8 of each unit of UTF-16: bytes that compare as Java's strings do."""
    if text.isascii():
        return text.encode("ascii")
    units = text.encode("utf-16-be", "surrogatepass")
    characters = (chr(int.from_bytes(units[at : at + 2], "big")) for at in range(0, len(units), 2))
    return "".join(characters).encode("utf-8", "surrogatepass")


def build_sort(updated: str, build: int) -> bytes:
    """The place of the files of a snapshot's build, by its time (``yyyyMMddHHmmss``) and number."""
    if build < _LARGE:
        return updated.encode("ascii") + build.to_bytes(4, "big")
    digits = build.to_bytes((build.bit_length() + 7) // 8, "big")
    return updated.encode("ascii") + _LARGE.to_bytes(4, "big") + bytes((len(digits),)) + digits
