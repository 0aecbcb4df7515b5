"""What no upstream has, remembered for a short time. In memory and bounded: anybody can ask for any name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock

from .configuration import proxy_config_of
from .trace import StepKind, Trace

MOST: Final = 10_000


class Absences:
    """
    Remembers keys for the repository's ``negative_ttl``.

    ``on_note`` is called with the id of a repository, a key, and until when it counts, for the ``add`` of others.
    """

    def __init__(
        self,
        clock: Clock,
        on_note: Callable[[int, str, int], None] = lambda _repository_id, _key, _until_ms: None,
    ) -> None:
        self._clock = clock
        self._on_note = on_note
        self._until_ms: OrderedDict[tuple[int, str], int] = OrderedDict()

    def check(self, repository: Repository, key: str, trace: Trace | None = None, *, what: str = "file") -> None:
        """:raises NotFound: no upstream had it a short while ago; ``what`` it is"""
        until_ms = self._until_ms.get((repository.id, key), 0)
        if until_ms > self._clock.now_ms():
            if trace is not None:
                trace.add(StepKind.CACHED, repository=repository.path, fresh_until_ms=until_ms)
            raise NotFound(what, key)

    def note(self, repository: Repository, key: str) -> None:
        """Remember that no upstream has it."""
        until_ms = self._clock.now_ms() + proxy_config_of(repository).negative_ttl_s * 1000
        self.add(repository.id, key, until_ms)
        self._on_note(repository.id, key, until_ms)

    def add(self, repository_id: int, key: str, until_ms: int) -> None:
        """Remember what another process has noted."""
        place = (repository_id, key)
        self._until_ms[place] = until_ms
        self._until_ms.move_to_end(place)
        if len(self._until_ms) > MOST:
            self._until_ms.popitem(last=False)

    def forget(self, repository: Repository) -> None:
        """Forget all of a repository: upstreams are asked again."""
        for place in [each for each in self._until_ms if each[0] == repository.id]:
            del self._until_ms[place]
