"""
Mutations of inputs: of bytes, of the words and lines in a text, and of the values of a JSON text.

All of them are chosen by a ``random.Random``, so that a seed repeats them, and hypothesis can choose its numbers.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from .target import LARGEST

MOST_CHANGES: Final = 4  # of an input at once

# Texts that readers of many kinds have stumbled over
ODD: Final = (
    b"",
    b"\x00",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xc3\x28",  # no UTF-8
    b"\xed\xa0\x80",  # a surrogate in UTF-8
    b"\\ud800",
    b"\\u0000",
    "\u2028".encode(),
    "\u0661".encode(),  # a digit that is no ASCII
    "\u00b2".encode(),  # isdigit, and no number
    "\u0130".encode(),  # longer in lower case
    b"../",
    b"%2e%2e%2f",
    b"%00",
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"9" * 20,
    b"9" * 5000,  # longer than int() reads
    b"18446744073709551616",
    b"[" * 2000,
    b"{" * 2000,
    b'{"a":' * 2000,
    b"(" * 2000,
    b"- " * 500,
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"&a [*a]",
    b"!!python/object",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>&a;",
)
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    2**63,
    2**64,
    10**400,
    "",
    "\x00",
    "\ud800",
    "a" * 300,
    [],
    {},
    [None],
    [[]],
    {"": None},
    [{"a": [1]}],
    "../../x",
    "9" * 5000,
    "\u0661\u00b2",
)
_WORD: Final = re.compile(rb"[A-Za-z0-9_.+-]+")


def mutate(data: bytes, words: Sequence[bytes], others: Sequence[bytes], chance: random.Random) -> bytes:
    """An input that differs from ``data`` in some places; it may have parts of ``others``."""
    for _ in range(chance.randint(1, MOST_CHANGES)):
        data = chance.choice(_CHANGES)(data, words, others, chance)[:LARGEST]
    return data


Change = Callable[[bytes, Sequence[bytes], Sequence[bytes], random.Random], bytes]


def _span(data: bytes, chance: random.Random) -> tuple[int, int]:
    start = chance.randint(0, len(data))
    return start, min(len(data), start + int(chance.paretovariate(0.7)))


def _flip(data: bytes, _words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    if not data:
        return bytes([chance.randrange(256)])
    changed, at = bytearray(data), chance.randrange(len(data))
    changed[at] = chance.choice((changed[at] ^ (1 << chance.randrange(8)), chance.randrange(256), 0, 0xFF))
    return bytes(changed)


def _delete(data: bytes, _words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + data[end:]


def _repeat(data: bytes, _words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def _insert(data: bytes, words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    start, end = _span(data, chance)
    new = chance.choice(words) if words and chance.random() < 0.5 else chance.choice(ODD)
    return data[:start] + new + data[chance.choice((start, end)) :]


def _replace_word(data: bytes, words: Sequence[bytes], others: Sequence[bytes], chance: random.Random) -> bytes:
    found = list(_WORD.finditer(data))
    if not found:
        return _insert(data, words, others, chance)
    at = chance.choice(found)
    new = chance.choice((*ODD, *words, chance.choice(found)[0]))
    return data[: at.start()] + new + data[at.end() :]


def _move_line(data: bytes, _words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    line = lines.pop(chance.randrange(len(lines)))
    lines.insert(chance.randrange(len(lines) + 1), line * chance.choice((1, 2)))
    return b"".join(lines)


def _join(data: bytes, _words: Sequence[bytes], others: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    start, end = _span(other, chance)
    at, behind = _span(data, chance)
    return data[:at] + other[start:end] + data[behind:]


def _number(data: bytes, _words: Sequence[bytes], _others: Sequence[bytes], chance: random.Random) -> bytes:
    """Write another number over 1 to 8 bytes, as binary formats have them."""
    size, changed = chance.choice((1, 2, 4, 8)), bytearray(data)
    at = chance.randrange(max(1, len(data) - size))
    value = chance.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), len(data), chance.getrandbits(64))) % 2 ** (
        8 * size
    )
    changed[at : at + size] = value.to_bytes(size, chance.choice(("little", "big")))
    return bytes(changed)


def _json_value(data: bytes, words: Sequence[bytes], others: Sequence[bytes], chance: random.Random) -> bytes:
    """Replace, remove or repeat a value of a JSON text."""
    try:
        top = json.loads(data)
    except (ValueError, RecursionError):
        return _replace_word(data, words, others, chance)
    places: list[tuple[Any, Any]] = []
    waiting = [top]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        places += [(each, key) for key in keys]
        waiting += [each[key] for key in keys]
    if not places:
        return json.dumps(chance.choice(VALUES)).encode()
    holder, key = chance.choice(places)
    what = chance.random()
    if what < 0.6:
        holder[key] = chance.choice(VALUES)
    elif what < 0.75:
        del holder[key]
    elif isinstance(holder, dict):
        holder[chance.choice(("", "\x00", "constructor", "..", f"{key}x", "a" * 300))] = holder[key]
    else:
        holder += [holder[key]] * chance.choice((1, 40))
    return json.dumps(top, ensure_ascii=chance.random() < 0.8).encode("utf-8", "surrogatepass")


_CHANGES: Final[tuple[Change, ...]] = (
    _flip,
    _delete,
    _repeat,
    _insert,
    _replace_word,
    _replace_word,
    _move_line,
    _join,
    _number,
    _json_value,
    _json_value,
    _json_value,
)
