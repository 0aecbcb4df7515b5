"""
JSON documents that end in a long list, with an entry to a line and in the order of their keys.

One entry is found by bisection, and a few that changed are put between long stretches that are copied as they are: of
a document of a hundred thousand entries little is read, next to nothing is in memory, and nothing is rendered again.
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
_PIECE = 256 * 1024  # bytes that are copied at a time


class _Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=_Comparable)


class Sink(Protocol):
    """Takes bytes, as a file does."""

    def write(self, data: bytes, /) -> object:
        """Add them."""


@frozen
class Form(Generic[K]):
    """What such a document begins with, up to the opening bracket, and how to tell the key of an entry."""

    head: bytes
    key_of: Callable[[bytes], K]

    def render(self, entries: Iterable[bytes]) -> bytes:
        """A whole document of a few entries, which are in order."""
        return self.head + b"\n" + _BETWEEN.join(entries) + TAIL


class LineWriter:
    """Writes a document from pages of entries, which come in order."""

    def __init__(self, form: Form[Any], sink: Sink) -> None:
        self._sink = sink
        self._before = form.head + b"\n"

    def add(self, entries: Sequence[bytes]) -> None:
        """The next of them."""
        if entries:
            self._sink.write(self._before + _BETWEEN.join(entries))
            self._before = _BETWEEN

    def end(self) -> None:
        """There are no more."""
        self._sink.write((b"" if self._before is _BETWEEN else self._before) + TAIL)


class LineDocument(Generic[K]):
    """A document on the disk, as it was when it was opened; see L{open_document}."""

    def __init__(self, form: Form[K], descriptor: int, data: mmap.mmap) -> None:
        self._form = form
        self._descriptor = descriptor
        self._data = data
        head = form.head + b"\n"
        self._start, end = len(head), len(data) - len(TAIL)
        if end < self._start or data[: self._start] != head or data[end:] != TAIL:
            raise Invalid("a document of the readable layout is not as it was written")
        # An entry ends where the next begins: with a comma and a line feed, or, the last one, with that of the tail.
        self._stop = end if end == self._start else end + 1

    def find(self, key: K) -> bytes | None:
        """
        The entry of this key, or None.

        :raises Invalid: the document is not as it was written
        """
        place = self._seek(key, self._start)
        if place == self._stop:
            return None
        entry = self._entry(place)
        return entry if self._key(entry) == key else None

    def write_changed(self, changes: Mapping[K, bytes | None], sink: Sink) -> bool:
        """
        Write the document with these entries in it, or, for None, without that of the key; False if nothing differs.

        :raises Invalid: the document is not as it was written
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
        """New entries, and stretches of whole old ones as (first, stop); None where all is as it should be."""
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
        # By reading rather than from the map, which would have all of it count as this process's memory.
        end = stop - (1 if stop == self._stop else len(_BETWEEN))
        while start < end:
            piece = os.pread(self._descriptor, min(_PIECE, end - start), start)
            if not piece:
                raise Invalid("a document of the readable layout became shorter")
            sink.write(piece)
            start += len(piece)

    def _seek(self, key: K, low: int) -> int:
        """Where the first entry from this place on begins whose key is not less than this one."""
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
    A document for reading.

    :raises Invalid: there is none, or none of this form
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield LineDocument(form, file.fileno(), data)
    except (FileNotFoundError, ValueError) as error:  # an empty file cannot be mapped
        raise Invalid(f"{path.name} of the readable layout is not there") from error
