"""Writes parts files."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from pkgrepo.errors import Invalid

from .compression import compress
from .layout import (
    GROUP_ENTRIES,
    GROUP_SIZE,
    HEADER,
    LARGEST_BLOCK,
    PATH,
    TRAILER,
    Block,
    Group,
    Table,
    hash_path,
)
from .values import Entry, Normalised


class Output(Protocol):
    """A binary file; it is only written, so it may be a pipe."""

    def write(self, data: bytes, /) -> object:
        """Write all of the bytes."""


def write_parts(out: Output, normalised: Normalised) -> None:
    """
    Write a whole parts file. Unless they are ordered, all entries are in memory until they are sorted.

    :raises Invalid: one entry, ``top`` or the number of entries is too large
    """
    writer = _Writer(out)
    writer.write(HEADER)
    groups: list[Group] = []
    paths: list[tuple[int, int]] = []
    count = 0
    for group in _groups(normalised.entries if normalised.ordered else _sorted(normalised.entries)):
        count += len(group)
        paths += [(hash_path(file.path), len(groups)) for entry in group for file in entry.files]
        groups.append(writer.write_group(group))
    top = writer.write_packed(normalised.top)
    index = writer.write_block(b"".join(PATH.pack(*each) for each in sorted(paths)))
    table = writer.write_packed(Table(count, top, index, groups))
    writer.write(TRAILER.pack(table.offset, table.size, table.length, table.checksum))


def _sorted(entries: Iterable[Entry]) -> Iterator[Entry]:
    # A dict keeps the last of several entries with the same place.
    found = {(entry.sort, entry.key): entry for entry in entries}
    return (found[place] for place in sorted(found))


def _groups(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    size = 0
    for entry in entries:
        group.append(entry)
        size += sum(map(len, entry.fragments.values()))
        if len(group) == GROUP_ENTRIES or size >= GROUP_SIZE:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Writer:
    def __init__(self, out: Output) -> None:
        self._out = out
        self._offset = 0
        self._encoder = msgspec.msgpack.Encoder()

    def write(self, data: bytes) -> None:
        self._out.write(data)
        self._offset += len(data)

    def write_group(self, group: list[Entry]) -> Group:
        heads = self.write_packed([msgspec.structs.replace(entry, fragments={}) for entry in group])
        kinds = sorted({kind for entry in group for kind in entry.fragments})
        fragments = {
            kind: self.write_packed(
                [(entry.sort, entry.key, entry.fragments[kind]) for entry in group if kind in entry.fragments]
            )
            for kind in kinds
        }
        return Group(group[0].sort, group[0].key, heads, fragments)

    def write_packed(self, value: object) -> Block:
        return self.write_block(self._encoder.encode(value))

    def write_block(self, data: bytes) -> Block:
        if len(data) > LARGEST_BLOCK:
            raise Invalid(f"a part of the document has more than {LARGEST_BLOCK} bytes")
        packed = compress(data)
        block = Block(self._offset, len(packed), len(data), zlib.crc32(packed))
        self.write(packed)
        return block
