"""
The MD5 of each gem's ``/info`` as a list of versions names it, in parts files: found without reading the list.

A table has 16 bytes for each name: 64 bits of BLAKE2b of the name, and half of the MD5. It is cut into fragments by the
first bits of the hashes. What was appended to a list since has no table and is searched, from its end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry

from .pieces import PIECE

SUMS: Final = "sums"  # the kind of the fragments of a table
BITS: Final = "sum_bits"  # in ``top``: how many bits of a hash are the number of its fragment

_NAMES_IN_FRAGMENT: Final = 512  # 8 KiB
_HASH: Final = 8  # bytes
_ROW: Final = 2 * _HASH
_MD5_DIGITS: Final = 32
_PREFIX: Final = b"\xff"  # of the places of these fragments: behind those of all pieces


def table_entries(lines: bytes) -> tuple[int, Iterator[Entry]]:
    """The number of bits and the entries of the table for the lines of a list."""
    sums: dict[bytes, bytes] = {}
    for line in lines.splitlines():
        name, _, rest = line.partition(b" ")
        sums[name] = rest[-_MD5_DIGITS:]
    bits = max(0, (len(sums) // _NAMES_IN_FRAGMENT).bit_length())
    return bits, _table(sums, bits)


def confirms(name: str, md5: str, base: PartsFile, tail: PartsFile | None = None) -> bool | None:
    """
    Whether a list names a gem with this MD5 (hex) of its ``/info``; None if it does not name the gem, or has no table.

    ``tail`` are the parts of what was appended to the list.
    """
    raw_name = name.encode()
    appended = None if tail is None else _last_sum(tail, raw_name)
    if appended is not None:
        return appended == md5.encode()
    bits = base.top.get(BITS)
    if bits is None:
        return None
    hashed = _hash(raw_name)
    entry = base.find(_place(hashed, bits), "")
    table = b"" if entry is None else entry.fragments.get(SUMS, b"")
    at = table.find(hashed)
    while at % _ROW and at >= 0:
        at = table.find(hashed, at + 1)
    return None if at < 0 else table[at + _HASH : at + _ROW] == bytes.fromhex(md5)[:_HASH]


def _table(sums: dict[bytes, bytes], bits: int) -> Iterator[Entry]:
    fragments: dict[bytes, bytearray] = {}
    for name, digits in sums.items():
        hashed = _hash(name)
        try:
            md5 = bytes.fromhex(digits.decode("ascii"))
        except ValueError:
            continue
        if len(md5) == _ROW:
            fragments.setdefault(_place(hashed, bits), bytearray()).extend(hashed + md5[:_HASH])
    for sort, rows in fragments.items():
        yield Entry(
            sort=sort,
            key="",
            version="",
            published_ms=0,
            first_seen=False,
            fragments={SUMS: bytes(rows)},
            files=[],
        )


def _hash(name: bytes) -> bytes:
    return hashlib.blake2b(name, digest_size=_HASH).digest()


def _place(hashed: bytes, bits: int) -> bytes:
    number = int.from_bytes(hashed, "big") >> (8 * _HASH - bits) if bits else 0
    return _PREFIX + number.to_bytes(4, "big")


def _last_sum(tail: PartsFile, name: bytes) -> bytes | None:
    start = name + b" "
    for _, _, piece in reversed(tail.fragments(PIECE)):
        at = piece.rfind(b"\n" + start) + 1
        if at or piece.startswith(start):
            return piece[at : piece.index(b"\n", at)].rpartition(b" ")[2]
    return None
