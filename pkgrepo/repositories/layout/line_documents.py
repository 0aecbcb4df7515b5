"""
JSON documents that end in a long list, with one entry per line, sorted by key.

An entry is found by binary search. To change a few entries, the byte ranges between them are copied. So even a document
of a hundred thousand entries is changed without rendering it again, and with little of it in memory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from attrs import frozen

from pkgrepo.errors import Invalid

TAIL = b"\n]}\n"
_BETWEEN = b",\n"
_PIECE = 256 * 1024  # bytes copied at a time


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=_Comparable)


class Sink(Protocol):
    """The ``write`` method of a binary file."""

    def write(self, data: bytes, /) -> object:
        """Append bytes."""


@frozen
class Form(Generic[K]):
    """A kind of document: its text up to the opening bracket of the list, and the function for the key of an entry."""

    head: bytes
    key_of: Callable[[bytes], K]

    def render(self, entries: Iterable[bytes]) -> bytes:
        """Return a whole document of these sorted entries."""
        return self.head + b"\n" + _BETWEEN.join(entries) + TAIL


class LineWriter:
    """Writes a document from pages of sorted entries."""

    def __init__(self, form: Form[Any], sink: Sink) -> None:
        self._sink = sink
        self._before = form.head + b"\n"

    def add(self, entries: Sequence[bytes]) -> None:
        """Write the next entries."""
        if entries:
            self._sink.write(self._before + _BETWEEN.join(entries))
            self._before = _BETWEEN

    def end(self) -> None:
        """Write the end of the document."""
        self._sink.write((b"" if self._before is _BETWEEN else self._before) + TAIL)


class LineDocument(Generic[K]):
    """An open document on the disk; see L{open_document}."""

    def __init__(self, form: Form[K], descriptor: int, data: mmap.mmap) -> None:
        self._form = form
        self._descriptor = descriptor
        self._data = data
        head = form.head + b"\n"
        self._start, end = len(head), len(data) - len(TAIL)
        if end < self._start or data[: self._start] != head or data[end:] != TAIL:
            raise Invalid("a document of the readable layout is not as it was written")
        # Each entry ends with a comma and a line feed, and the last one with the line feed of the tail.
        self._stop = end if end == self._start else end + 1

    def find(self, key: K) -> bytes | None:
        """
        Return the entry with this key, or None.

        :raises Invalid: the document was changed by hand
        """
        place = self._seek(key, self._start)
        if place == self._stop:
            return None
        entry = self._entry(place)
        return entry if self._key(entry) == key else None

    def write_changed(self, changes: Mapping[K, bytes | None], sink: Sink) -> bool:
        """
        Write a copy with these entries set, or removed where the value is None. Returns False if nothing differs.

        :raises Invalid: the document was changed by hand
        """
        pieces = self._pieces(changes)
        if pieces is None:
            return False
        before = self._form.head + b"\n"
        for piece in pieces:
            sink.write(before)
            if isinstance(piece, bytes):
                sink.write(piece)
            else:
                self._copy(*piece, sink)
            before = _BETWEEN
        sink.write(TAIL if pieces else before + TAIL)
        return True

    def _pieces(self, changes: Mapping[K, bytes | None]) -> list[bytes | tuple[int, int]] | None:
        """Return new entries, and ranges of old ones as (first, stop), in order; or None if nothing differs."""
        pieces: list[bytes | tuple[int, int]] = []
        differs = False
        copied = place = self._start
        for key in sorted(changes):
            entry = changes[key]
            place = self._seek(key, place)
            found = None if place == self._stop else self._entry(place)
            if found is not None and self._key(found) != key:
                found = None
            if found == entry:
                continue
            differs = True
            if copied < place:
                pieces.append((copied, place))
            if entry is not None:
                pieces.append(entry)
            copied = place if found is None else self._next(place)
            place = copied
        if copied < self._stop:
            pieces.append((copied, self._stop))
        return pieces if differs else None

    def _copy(self, start: int, stop: int, sink: Sink) -> None:
        # pread and not the map, because mapped pages would count as memory of this process.
        end = stop - (1 if stop == self._stop else len(_BETWEEN))
        while start < end:
            piece = os.pread(self._descriptor, min(_PIECE, end - start), start)
            if not piece:
                raise Invalid("a document of the readable layout became shorter")
            sink.write(piece)
            start += len(piece)

    def _seek(self, key: K, low: int) -> int:
        """Return the start of the first entry from ``low`` on whose key is not less than ``key``."""
        high = self._stop
        while low < high:
            middle = self._data.rfind(b"\n", low, (low + high) // 2) + 1 or low
            if self._key(self._entry(middle)) < key:
                low = self._next(middle)
            else:
                high = middle
        return low

    def _entry(self, place: int) -> bytes:
        return self._data[place : self._next(place) - 1].removesuffix(b",")

    def _next(self, place: int) -> int:
        return self._data.find(b"\n", place) + 1

    def _key(self, entry: bytes) -> K:
        return self._form.key_of(entry)


@contextmanager
def open_document(form: Form[K], path: Path) -> Iterator[LineDocument[K]]:
    """
    Open a document for reading.

    :raises Invalid: it is missing, or of another form
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield LineDocument(form, file.fileno(), data)
    except (FileNotFoundError, ValueError) as error:  # an empty file cannot be mapped
        raise Invalid(f"{path.name} of the readable layout is not there") from error
