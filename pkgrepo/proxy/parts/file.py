"""Reads and writes parts files."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from itertools import islice
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import msgspec

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.layout import (
    FRAGMENTS,
    GROUP_ENTRIES,
    GROUP_SIZE,
    HEADER,
    HEADS,
    LARGEST_BLOCK,
    PATH,
    TABLE,
    TOP,
    TRAILER,
    Block,
    Group,
    PartsDamaged,
    Table,
    compress,
    decompress,
    hash_path,
)
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised

T = TypeVar("T")


class PartsFile:
    """
    A parts file, read from a descriptor with pread or from its bytes.

    It owns the descriptor from the call on, also if that raises; ``close``, or the end of a ``with`` block, closes it.
    Every method blocks and may raise ``PartsDamaged`` or ``OSError``. Several threads may read it at a time.
    """

    def __init__(self, source: int | bytes) -> None:
        self._fd = source if isinstance(source, int) else None
        self._data = source if isinstance(source, bytes) else b""
        try:
            self._size = len(self._data) if self._fd is None else os.fstat(self._fd).st_size
            self._table = self._read_table()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor; also twice. No thread may be reading."""
        fd, self._fd = self._fd, None
        self._size = 0
        if fd is not None:
            os.close(fd)

    @property
    def count(self) -> int:
        """The number of entries."""
        return self._table.count

    @property
    def length(self) -> int:
        """The bytes of all blocks, uncompressed."""
        table = self._table
        groups = (each.heads.length + sum(block.length for block in each.fragments.values()) for each in table.groups)
        return table.top.length + table.paths.length + sum(groups)

    @property
    def memory(self) -> int:
        """About how many bytes of memory one takes that was made of bytes and is kept: these, and what was decoded."""
        return self._size + 2 * (self._table.top.length + self._table.paths.length) + 512 * len(self._table.groups)

    @cached_property
    def top(self) -> dict[str, Any]:
        """The format's own data of the document."""
        return self._decode(self._table.top, TOP)

    def fragments(self, kind: str, keep: Callable[[bytes, str], bool] | None = None) -> list[tuple[bytes, str, bytes]]:
        """
        Return the fragments of one kind as (sort, key, fragment), in order.

        ``keep`` is called with sort and key; without it all are returned. The GIL is released between groups.
        """
        found = []
        for group in self.fragment_groups((kind,)):
            each = group[kind]
            found += each if keep is None else [one for one in each if keep(one[0], one[1])]
        return found

    def fragment_groups(self, kinds: Collection[str]) -> Iterator[dict[str, list[tuple[bytes, str, bytes]]]]:
        """
        Iterate over groups of consecutive entries: by kind their fragments as (sort, key, fragment), in order.

        The GIL is released between groups.
        """
        gil = GilReleaser()
        for group in self._table.groups:
            yield {
                kind: self._decode(group.fragments[kind], FRAGMENTS) if kind in group.fragments else []
                for kind in kinds
            }
            gil.release_if_due()

    def entries(self, kinds: Collection[str] | None = None, section: bytes = b"") -> Iterator[Entry]:
        """
        Iterate over the entries in order, with fragments of these kinds only; None for all kinds.

        With a ``section`` only over those whose ``sort`` begins with it, of which alone the groups are read. Without
        fragments (``kinds=()``) this reads a small part of the file. The GIL is released between groups.
        """
        gil = GilReleaser()
        for group in self._groups_of(section):
            heads = [each for each in self._decode(group.heads, HEADS) if each.sort.startswith(section)]
            yield from heads if kinds is not None and not kinds else self._complete(group, heads, kinds)
            gil.release_if_due()

    def has_section(self, section: bytes) -> bool:
        """Whether there are entries whose ``sort`` begins with this."""
        return next(self.entries((), section), None) is not None

    def find(self, sort: bytes, key: str) -> Entry | None:
        """Return the entry at this place, with its fragments, or None."""
        groups = self._table.groups
        number = bisect_right(groups, (sort, key), key=lambda group: (group.sort, group.key)) - 1
        if number < 0:
            return None
        heads = self._decode(groups[number].heads, HEADS)
        return next(
            (self._complete(groups[number], [head])[0] for head in heads if (head.sort, head.key) == (sort, key)), None
        )

    def find_path(self, path: str, section: bytes = b"") -> tuple[Entry, FileSource] | None:
        """
        Return the first entry that has a file with this path, with its fragments, and that file; or None.

        It is looked for among all entries, or among those of a ``section``, see ``entries``.
        """
        if section:
            pairs = ((each, file) for each in self.entries(None, section) for file in each.files)
            return next((pair for pair in pairs if pair[1].path == path), None)
        wanted = hash_path(path)
        places = range(len(self._paths) // PATH.size)
        for place in places[bisect_left(places, (wanted, 0), key=self._path_at) :]:
            hashed, number = self._path_at(place)
            if hashed != wanted:
                break
            group = self._group(number)
            for head in self._decode(group.heads, HEADS):
                source = next((file for file in head.files if file.path == path), None)
                if source is not None:
                    return self._complete(group, [head])[0], source
        return None

    def read_all(self, most: int) -> bytes | None:
        """The bytes of the file; None if it has more than ``most``."""
        return self._read(0, self._size) if self._size <= most else None

    # Below

    def _groups_of(self, section: bytes) -> Iterator[Group]:
        """The groups that may have entries of a section; all groups if it is empty."""
        groups = self._table.groups
        # The section may begin within the group before.
        first = max(bisect_left(groups, section, key=lambda group: group.sort) - 1, 0)
        for group in islice(groups, first, None):
            if group.sort > section and not group.sort.startswith(section):
                return
            yield group

    @cached_property
    def _paths(self) -> bytes:
        return self._read_block(self._table.paths)

    def _path_at(self, place: int) -> tuple[int, int]:
        hashed, number = PATH.unpack_from(self._paths, place * PATH.size)
        return hashed, number

    def _group(self, number: int) -> Group:
        if number >= len(self._table.groups):
            raise PartsDamaged
        return self._table.groups[number]

    def _complete(self, group: Group, heads: list[Entry], kinds: Collection[str] | None = None) -> list[Entry]:
        """Return the entries with their fragments."""
        found: dict[tuple[bytes, str], dict[str, bytes]] = {(head.sort, head.key): {} for head in heads}
        for kind, block in group.fragments.items():
            if kinds is None or kind in kinds:
                for sort, key, fragment in self._decode(block, FRAGMENTS):
                    if (sort, key) in found:
                        found[sort, key][kind] = fragment
        return [msgspec.structs.replace(head, fragments=found[head.sort, head.key]) for head in heads]

    def _read_table(self) -> Table:
        if self._size < len(HEADER) + TRAILER.size or self._read(0, len(HEADER)) != HEADER:
            raise PartsDamaged
        offset, size, length, checksum = TRAILER.unpack(self._read(self._size - TRAILER.size, TRAILER.size))
        return self._decode(Block(offset, size, length, checksum), TABLE)

    def _decode(self, block: Block, decoder: msgspec.msgpack.Decoder[T]) -> T:
        data = self._read_block(block)
        try:
            return decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise PartsDamaged from None

    def _read_block(self, block: Block) -> bytes:
        if block.length > LARGEST_BLOCK:
            raise PartsDamaged
        packed = self._read(block.offset, block.size)
        if zlib.crc32(packed) != block.checksum:
            raise PartsDamaged
        data = decompress(packed, block.length)
        if data is None:
            raise PartsDamaged
        return data

    def _read(self, offset: int, count: int) -> bytes:
        if offset + count > self._size:
            raise PartsDamaged
        data = self._data[offset : offset + count] if self._fd is None else os.pread(self._fd, count, offset)
        if len(data) != count:
            raise PartsDamaged
        return data


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
        try:
            packed = self._encoder.encode(value)
        except (OverflowError, RecursionError, UnicodeEncodeError) as error:
            raise Invalid(f"a part of the document cannot be kept: {error}") from None
        return self.write_block(packed)

    def write_block(self, data: bytes) -> Block:
        if len(data) > LARGEST_BLOCK:
            raise Invalid(f"a part of the document has more than {LARGEST_BLOCK} bytes")
        packed = compress(data)
        block = Block(self._offset, len(packed), len(data), zlib.crc32(packed))
        self.write(packed)
        return block
