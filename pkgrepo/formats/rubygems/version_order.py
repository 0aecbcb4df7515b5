"""
Sort keys of versions: bytes that compare in the order of ``Gem::Version``.

A version is split into runs of digits and runs of letters. Zeros at the end are dropped, and so are zeros before the
first letters. Versions are compared part by part; a missing part counts as zero, and letters come before numbers:
``1.a < 1 < 1.0.1``. A key is a sequence of tokens, and no token is a prefix of another one:

==========================  ===============================================================================
token                       bytes
==========================  ===============================================================================
k zeros, then letters       01, k (4 bytes), the letters, 00
the end                     02; every missing part is zero
k zeros, then a number      03, 2**32 - 1 - k (4 bytes), the number's length in bytes (1 byte), the number
==========================  ===============================================================================

After more zeros, letters make the version less small, and a number makes it less large.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_PARTS: Final = re.compile(r"[0-9]+|[A-Za-z]+")
_END: Final = b"\x02"
_MOST: Final = 0xFFFFFFFF


@lru_cache(maxsize=4096)
def order_key(number: str) -> bytes:
    """The sort key of a version number without platform; versions that Ruby takes for equal have the same key."""
    tokens: list[bytes] = []
    zeros = 0
    numeric = True
    for part in _PARTS.findall(number.replace("-", ".pre.")):
        if part[0].isalpha():
            if numeric:
                numeric, zeros = False, 0
            tokens.append(b"\x01" + zeros.to_bytes(4, "big") + part.encode("ascii") + b"\x00")
            zeros = 0
        elif not part.strip("0"):
            zeros += 1
        else:
            tokens.append(b"\x03" + (_MOST - zeros).to_bytes(4, "big") + _number(int(part)))
            zeros = 0
    return b"".join(tokens) + _END


def sort_key(number: str, platform: str) -> bytes:
    """The sort key of a version with its platform: first by number, then by the platform's text."""
    return order_key(number) + platform.encode("ascii")


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return bytes((size,)) + value.to_bytes(size, "big")
