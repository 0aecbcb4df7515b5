"""
Code in an archive that people cannot read: minified, packed or obfuscated. Pure; for the thread that reads the archive.

==============================  ====================================================================================
what is counted of a file       when
==============================  ====================================================================================
the bytes of its long lines     they are ``LEAST`` or more together; a line is long with more than ``LONG`` bytes
all of its bytes                JavaScript with names as obfuscators make them (``_0x1a2b``); Python that runs what it
                                decodes, as in ``exec(base64.b64decode(...))``
those after the first           always: nothing looks at them
``MOST_READ``
==============================  ====================================================================================

Code is told by the ending of a name, or by a name without any that is not in capitals (``LICENSE``). Lines are found by
steps of ``LONG`` bytes, each with one search for the last newline in it: that takes 0.6 ms for a megabyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

LONG: Final = 500  # bytes of a line; builders that wrap minified code do so at 500 characters or later
LEAST: Final = 2048  # bytes of a file
MOST_READ: Final = 8 * 1024 * 1024  # bytes of a file
MOST_PLACES: Final = 50  # of one archive
GROWTH: Final = 4
LEAST_GROWTH: Final = 256 * 1024  # bytes

Place = tuple[str, str, int]  # a folder, the path in it of its largest file, and the bytes of all that are alike
Places = tuple[Place, ...]

_OF_KIND: Final = {
    "js": "js cjs mjs jsx ts cts mts",
    "py": "py pyw",
    "rb": "rb",
    "sh": "sh bash zsh ps1 psm1 bat cmd",
}
_KINDS: Final[Mapping[str, str]] = {"": "", **{each: kind for kind, some in _OF_KIND.items() for each in some.split()}}
_TYPES: Final = (".d.ts", ".d.cts", ".d.mts")  # declarations, which nothing runs

_NAME: Final = b"_0x"
_MOST_NAMES: Final = 20
_EXEC: Final = b"exec("
_DECODED: Final = re.compile(
    rb"\s*(?:[\w.]+\(\s*){0,4}?[\w.]*?(?:b64decode|b85decode|unhexlify|fromhex|decompress|marshal\.loads)\("
)


def is_code(name: str) -> bool:
    """Whether a file may be run, by its name."""
    ending = _ending(name)
    if not ending:
        return not name.rpartition("/")[2].isupper()
    return ending in _KINDS and not name.lower().endswith(_TYPES)


def unreadable_bytes(name: str, data: bytes, size: int) -> int:
    """How many bytes of a file people cannot read; ``data`` are its first ``MOST_READ``, of a ``size`` in bytes."""
    kind = kind_of(name)
    if not kind and b"\0" in data[:LONG]:  # machine code, which is found by other words
        return 0
    if _is_obscured(data, kind):
        return max(size, LEAST)
    found = _in_long_lines(data) + max(size - len(data), 0)
    return found if found >= LEAST else 0


def places_of(found: Mapping[str, int]) -> Places:
    """
    Where an archive has such code: the files of one kind in a folder together, by their names with sizes in bytes.

    With more than ``MOST_PLACES`` the folders in folders count as one; of what is left the largest are kept.
    """
    for depth in (None, 3, 2, 1):
        places: dict[tuple[str, str], tuple[str, int]] = {}
        sizes: dict[tuple[str, str], int] = {}
        for name, size in sorted(found.items()):
            folder, file = _split(name, depth)
            place = folder, kind_of(name)
            sizes[place] = sizes.get(place, 0) + size
            places[place] = max(places.get(place, (file, size)), (file, size), key=lambda each: each[1])
        if len(places) <= MOST_PLACES:
            break
    kept = sorted(places, key=lambda each: (-sizes[each], each))[:MOST_PLACES]
    return tuple(sorted((place[0], places[place][0], sizes[place]) for place in kept))


def new_places(before: Places, after: Places) -> Iterator[str]:
    """
    The names of files with such code where an archive before has none of that kind, also not in a folder above.

    If it is in the same places, but more than ``GROWTH`` times as much, and by ``LEAST_GROWTH`` bytes, they are those
    of all places. The largest come first.
    """
    there = {(folder, kind_of(file)) for folder, file, _ in before}
    found = [each for each in after if there.isdisjoint(_covering(each[0], kind_of(each[1])))]
    old, new = (sum(size for *_, size in each) for each in (before, after))
    if not found and new > GROWTH * old and new - old > LEAST_GROWTH:
        found = [*after]
    return (f"{folder}/{file}" if folder else file for folder, file, _ in sorted(found, key=lambda each: -each[2]))


def kind_of(name: str) -> str:
    """The kind of code that a file has by its name: js, py, rb, sh or nothing, and whether it is called minified."""
    stem = name.rpartition("/")[2].lower().rpartition(".")[0]
    return _KINDS.get(_ending(name), "") + (".min" if stem.endswith((".min", "-min")) else "")


def _ending(name: str) -> str:
    return name.rpartition("/")[2].lower().partition(".")[2].rpartition(".")[2]


def _split(name: str, depth: int | None) -> tuple[str, str]:
    """A folder of at most so many parts, and the path of a file in it."""
    parts = name.split("/")
    count = len(parts) - 1 if depth is None else min(depth, len(parts) - 1)
    return "/".join(parts[:count]), "/".join(parts[count:])


def _covering(folder: str, kind: str) -> Iterator[tuple[str, str]]:
    """The places of which one before is enough: code that is called minified is nothing new beside other such code."""
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        yield above, kind
        yield above, kind.removesuffix(".min")


def _in_long_lines(data: bytes) -> int:
    at, found, size = 0, 0, len(data)
    while size - at > LONG:
        end = data.rfind(b"\n", at, at + LONG + 1)
        if end < 0:
            end = data.find(b"\n", at + LONG)
            end = size if end < 0 else end
            found += end - at
        at = end + 1
    return found


def _is_obscured(data: bytes, kind: str) -> bool:
    """Whether there is what tells it without long lines; one search of all bytes takes 0.5 ms for a megabyte."""
    if kind != "py":
        return kind.startswith("js") and data.count(_NAME) >= _MOST_NAMES
    at = data.find(_EXEC)
    while at >= 0:
        if _DECODED.match(data, at + len(_EXEC)):
            return True
        at = data.find(_EXEC, at + len(_EXEC))
    return False
