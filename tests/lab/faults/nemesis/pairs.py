"""Faults that come shortly after another one, to what has not recovered from it."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

from tests.lab.faults.engines.estate import Estate, Fault

PAUSE_S: Final = (0.0, 1.0)  # between both, in which a start has begun
MOST_KILLS: Final = 3


def pairs(estate: Estate, every: Sequence[Fault], *, two: int, deaths: int) -> list[Fault]:
    """
    Two faults of an estate, the second one in the middle of the start after the first, if that was deadly.

    ``two`` is the chance of any two, ``deaths`` that of two or three which are deadly.
    """
    deadly = [each for each in every if each.is_deadly]

    def strike(first: Fault, others: Sequence[Fault], rng: random.Random) -> list[str]:
        names = [*(first.strike(rng) or [first.name])]
        for each in others:
            estate.begin()
            time.sleep(rng.uniform(*PAUSE_S))
            names += each.strike(rng) or [each.name]
        return names

    def any_two(rng: random.Random) -> list[str]:
        return strike(rng.choice(every), [rng.choice(every)], rng)

    def starts(rng: random.Random) -> list[str]:
        first, *others = rng.choices(deadly, [each.chance for each in deadly], k=rng.randint(2, MOST_KILLS))
        return strike(first, others, rng)

    return [
        Fault("another fault shortly after one", two, any_two, is_told=True),
        Fault("another death during the start", deaths, starts, is_told=any(each.is_told for each in deadly)),
    ]
