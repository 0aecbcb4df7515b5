"""What no upstream has, remembered for a short time. In memory and bounded: anybody can ask for any name."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.repositories.clock import Clock

MOST: Final = 10_000


class Absences:
    """Remembers keys for the repository's ``negative_ttl``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until_ms: OrderedDict[tuple[int, str], int] = OrderedDict()

    def check(self, repository: Repository, key: str) -> None:
        """:raises NotFound: no upstream had it a short while ago"""
        if self._until_ms.get((repository.id, key), 0) > self._clock.now_ms():
            raise NotFound("image", key)

    def note(self, repository: Repository, key: str) -> None:
        """Remember that no upstream has it."""
        place = (repository.id, key)
        self._until_ms[place] = self._clock.now_ms() + proxy_config_of(repository).negative_ttl_s * 1000
        self._until_ms.move_to_end(place)
        if len(self._until_ms) > MOST:
            self._until_ms.popitem(last=False)
