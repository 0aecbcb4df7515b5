"""Files of which an upstream has sent wrong bytes: the next time, clients get none before all are verified."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST: Final = 1000  # in memory

Place = tuple[int, str]  # id of a repository, and the path of a file in it, or its identity


class MistrustedFiles:
    """Remembers places of files. ``on_note`` is told each, for other processes; ``add`` is for what they tell."""

    def __init__(self, on_note: Callable[[int, str], None] = lambda *_: None) -> None:
        self._on_note = on_note
        self._places: OrderedDict[Place, None] = OrderedDict()

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def note(self, place: Place) -> None:
        """Remember a place in all processes."""
        self.add(*place)
        self._on_note(*place)

    def add(self, repository_id: int, path: str) -> None:
        """Remember a place in this process."""
        self._places[repository_id, path] = None
        if len(self._places) > MOST:
            self._places.popitem(last=False)

    def discard(self, place: Place) -> None:
        """Forget a place: its file is kept."""
        self._places.pop(place, None)
