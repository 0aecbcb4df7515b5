"""What writers have begun and what was acknowledged, on a disk that no fault reaches."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from os import SEEK_END
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from tests.support.first_publishes import Published

LAST: Final = 2  # notes at the end of a history
MOST: Final = 20  # notes between the changes of an item


@frozen
class Item:
    """A version of a package, with what it is read by, and the digest of its file."""

    format: str
    name: str
    version: str
    file: str = ""
    index: str = ""
    listed: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        return f"{self.format} {self.name} {self.version}"

    def published(self, found: Published) -> Item:
        """The item, as it was published."""
        return Item(self.format, self.name, self.version, found.file, found.index, found.listed, sha256_of(found.data))


@define
class State:
    """
    Of an item, whether it is ``there`` by the last acknowledged change; ``open`` while a change has no answer.

    What was open when a fault came is there or is not; it is never there by halves. ``since`` is when the last change
    began or was acknowledged, by the monotonic clock.
    """

    item: Item
    there: bool = False
    open: bool = False
    since: float = field(factory=time.monotonic)


@define
class Changes:
    """How often a kind of change of an item was asked for, and how often it was acknowledged."""

    item: Item | None = None
    begun: int = 0
    acknowledged: int = 0


class Ledger:
    """Appends a line to a file for each step, and keeps the state of each item; writers are threads."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("ab+")
        self._lock = threading.Lock()
        self._places: dict[str, list[int]] = defaultdict(list)  # where the lines about an item begin in the file
        self._notes: list[int] = []  # and those about no item
        self._states: dict[tuple[str, str, str], State] = {}
        self.acknowledged = 0
        self.changes: dict[tuple[str, str], Changes] = defaultdict(Changes)  # by their kind and the item

    def begin(self, what: str, item: Item) -> None:
        """Note that a change is asked for."""
        with self._lock:
            state = self._states.setdefault(key_of(item), State(item))
            state.open, state.since = True, time.monotonic()
            self.changes[what, str(item)].begun += 1
            self._write(what, "begun", str(item))

    def end(self, what: str, item: Item, *, there: bool) -> None:
        """Note that a change was acknowledged: the item is there now, or is not."""
        with self._lock:
            self._states[key_of(item)] = State(item, there)
            self.acknowledged += 1
            self.changes[what, str(item)].acknowledged += 1
            self.changes[what, str(item)].item = item
            self._write(what, "acknowledged", str(item))

    @contextmanager
    def step(self, what: str, about: str) -> Iterator[None]:
        """Note that a step of a task is asked for, and, unless there is an error, that it was acknowledged."""
        with self._lock:
            self._write(what, "begun", about)
        yield
        with self._lock:
            self.acknowledged += 1
            self._write(what, "acknowledged", about)

    def settle(self, state: State, *, there: bool) -> None:
        """Note what became of a change that had no answer."""
        with self._lock:
            state.open, state.there = False, there
            self._write(f"is {'there' if there else 'not there'}", "settled", str(state.item))

    def states(self) -> Iterator[State]:
        """Every item that a change was asked for, in the order of the first one."""
        with self._lock:
            return iter([*self._states.values()])

    def is_still(self, state: State) -> bool:
        """Whether nothing has begun to change an item since its state was taken, which was not open then."""
        with self._lock:
            return not state.open and self._states[key_of(state.item)] is state

    def note(self, **fields: Any) -> None:
        """Add a line about something else, such as a fault."""
        with self._lock:
            self._line(fields)

    def history(self, about: Item | str) -> list[str]:
        """The lines about an item, or what a task names so, those about faults between them, and the last ones."""
        with self._lock:
            own, notes = self._places.get(str(about), []), self._notes
            between = [each for each in notes if own and own[0] < each < own[-1]]
            return [self._read(each) for each in sorted({*own, *between[-MOST:], *notes[-LAST:]})]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, place: int) -> str:
        self._file.seek(place)
        return self._file.readline().decode().rstrip("\n")

    def _write(self, what: str, step: str, about: str) -> None:
        self._line({"what": what, "step": step, "item": about})

    def _line(self, fields: dict[str, Any]) -> None:
        place = self._file.seek(0, SEEK_END)
        (self._places[fields["item"]] if "item" in fields else self._notes).append(place)
        self._file.write(json.dumps({"at": round(time.time(), 3), **fields}).encode() + b"\n")
        self._file.flush()  # the process that writes it is not among those that die


def key_of(item: Item) -> tuple[str, str, str]:
    """What an item is known by."""
    return (item.format, item.name, item.version)


def sha256_of(data: bytes) -> str:
    """The digest of bytes, as hex."""
    return hashlib.sha256(data).hexdigest()
