"""What a round is: what works beside the fault, what is looked at after it, and what either may find wrong."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from attrs import Factory, frozen

from tests.support.python_index import PASSWORD, USER

from .ledger import Item, Ledger

AUTH: Final = (USER, PASSWORD)
WRITERS: Final = 8  # more of them make so many items that reading them all takes longer than the rounds
LOST, BYTES, WRONG = "lost", "with other bytes", "wrong otherwise"
KINDS: Final = (LOST, BYTES, WRONG)


@frozen
class Round:
    """
    One round, from the beginning of its writers to the end of its checks.

    ``urls`` are the addresses of the servers, of which there may be several on the same data. ``begun`` is the number
    of items that the ledger had before. ``writers`` is how many write. Choices are made by ``rng``, before threads
    start.
    """

    number: int
    urls: Sequence[str]
    ledger: Ledger
    rng: random.Random
    begun: int
    writers: int


@frozen
class Finding:
    """What is wrong, in a sentence; with an item, if it is about one. ``kind`` is of ``KINDS``."""

    why: str
    item: Item | None = None
    kind: str = WRONG


@frozen
class Complaint:
    """
    A response that is no success, or that is a wrong one, to something that works beside the fault.

    One that came after the fault began (``at``, monotonic seconds) is excused if it only says that the server could not
    do its work, which is a status from 500 on (``status``; 0 for what no fault explains).
    """

    what: str
    status: int = 0
    at: float = Factory(time.monotonic)


class Worker(Protocol):
    """
    What works in threads beside the fault; ``counts`` are its steps that were done, by kind.

    ``longest`` is the step that took the most seconds, for those who look where the time of a round goes.
    """

    counts: Counter[str]
    wrong: list[Complaint]
    longest: tuple[float, str]

    def stop(self) -> None:
        """Let the step end that is being done, and no other one begin."""

    def join(self) -> None:
        """Wait until it has ended."""


def nothing(_url: str) -> None:
    """What needs no preparation."""


@frozen
class Job:
    """
    A kind of work beside the fault: ``begin`` starts the workers of a round.

    ``prepare`` is called once, with the address of a new server; ``configuration`` is a part of that of all servers.
    """

    begin: Callable[[Round], Sequence[Worker]]
    prepare: Callable[[str], None] = nothing
    configuration: str = ""


Check = Callable[[Round], Iterable[Finding]]
