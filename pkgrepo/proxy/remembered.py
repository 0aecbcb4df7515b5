"""
What this process remembers for a while: what no upstream has, and which files an upstream has sent with wrong bytes.

It is in memory and bounded, since any client can ask for any name. The other processes are told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from pkgrepo.concurrency.lru import Lru
from pkgrepo.errors import NotFound
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock

MOST_ABSENT: Final = 10_000
MOST_STEPS: Final = 20  # of an absence

MOST_MISTRUSTED: Final = 1000
Place = tuple[int, str]  # id of a repository, and the path of a file in it, or its identity


Steps = Sequence[Mapping[str, Any]]


@define(eq=False)
class NegativeCache:
    """
    Remembers keys for the repository's ``negative_ttl``, with the steps by which upstreams were asked.

    Those of documents are kept with the documents. ``on_note`` is called with the id of a repository, a key, until when
    it counts, and the steps, for the ``add`` of others.
    """

    _clock: Clock
    _on_note: Callable[[int, str, int, Steps], None] = lambda *_: None
    _absences: Lru[tuple[int, str], tuple[int, Steps]] = field(factory=lambda: Lru(MOST_ABSENT), init=False)

    def check(self, repository: Repository, key: str, trace: Trace | None = None, *, what: str = "file") -> None:
        """:raises NotFound: no upstream had it a short while ago; ``what`` it is"""
        until_ms, steps = self._absences.get((repository.id, key)) or (0, ())
        if until_ms > self._clock.now_ms():
            if trace is not None:
                trace.recall(repository.path, steps)
                trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=until_ms)
            raise NotFound(what, key)

    def note(self, repository: Repository, key: str, trace: Trace) -> None:
        """Remember that no upstream has it; ``trace`` has the steps by which they were asked, and no others."""
        until_ms = self._clock.now_ms() + proxy_config_of(repository).negative_ttl_s * 1000
        steps = trace.store()[:MOST_STEPS]
        self.add(repository.id, key, until_ms, steps)
        self._on_note(repository.id, key, until_ms, steps)

    def add(self, repository_id: int, key: str, until_ms: int, steps: Steps) -> None:
        """Remember what another process has noted."""
        self._absences.put((repository_id, key), (until_ms, steps))

    def forget(self, repository: Repository) -> None:
        """Forget all of a repository: upstreams are asked again."""
        for place in self._absences:
            if place[0] == repository.id:
                self._absences.pop(place)


class MistrustedFiles:
    """Remembers places of files. ``on_note`` is told each, for other processes; ``add`` is for what they tell."""

    def __init__(self, on_note: Callable[[int, str], None] = lambda *_: None) -> None:
        self._on_note = on_note
        self._places: Lru[Place, bool] = Lru(MOST_MISTRUSTED)

    def __contains__(self, place: Place) -> bool:
        return place in self._places

    def note(self, place: Place) -> None:
        """Remember a place in all processes."""
        self.add(*place)
        self._on_note(*place)

    def add(self, repository_id: int, path: str) -> None:
        """Remember a place in this process."""
        self._places.put((repository_id, path), True)

    def discard(self, place: Place) -> None:
        """Forget a place: its file is kept."""
        self._places.pop(place)
