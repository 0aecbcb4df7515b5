"""
The order of files in a run of whole layers: what waits runs beside what computes, and what takes long begins first.

Half of the time of tests/clients and tests/faults is waits, for pauses that faults need and for one program after
another, and the other layers compute. In turns they keep the processors busy from the beginning to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

TESTS = Path(__file__).parents[1]
WAITING = ("clients", "faults")
# These first: each file of the one takes minutes, those of the other share warm processes, and so stay together.
FIRST = (PurePath("clients", "console"), PurePath("clients", "maven"))
SHARE = 0.8  # of the run, in which those that wait begin: the last files are short ones


def mixed(files: Iterable[Path]) -> Sequence[Path]:
    """Put files of tests into this order; within a layer, and of the first ones, it stays as it is."""
    first: list[Path] = []
    waiting: list[Path] = []
    computing: list[Path] = []
    for each in files:
        place = each.relative_to(TESTS)
        if place.parent in FIRST:
            first.append(each)
        else:
            (waiting if place.parts[0] in WAITING else computing).append(each)
    first.sort(key=lambda each: FIRST.index(each.relative_to(TESTS).parent))
    places = {each: SHARE * at / len(waiting) for at, each in enumerate(waiting)}
    places |= {each: at / len(computing) for at, each in enumerate(computing)}
    return [*first, *sorted(places, key=lambda each: places[each])]
