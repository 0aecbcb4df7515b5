"""What a server has after a fault, compared with the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import requests

from tests.support.timeouts import TIMEOUT_S

from .ledger import Ledger, State, sha256_of
from .rounds import AUTH, BYTES, LOST, WRONG, Check, Finding, Round

SAMPLE: Final = 60  # items of earlier rounds that are read again after each one
INDEXES: Final = 20  # of which the index is read, too
GONE: Final = (404, 410)


class Checker:
    """Reads items as clients do."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.auth = AUTH
        self._session.trust_env = False
        self._indexes: dict[str, tuple[int, str]] = {}

    def check(self, states: Iterable[State], ledger: Ledger) -> Iterator[Finding]:
        """
        What is wrong with some items.

        A change that had no answer was made or not, as a whole, and counts as settled from now on.
        """
        for each in states:
            if not each.item.file:  # no publish of it was acknowledged
                continue
            status, data = self._get(each.item.file)
            there = status == 200
            if there and sha256_of(data) != each.item.sha256:
                yield Finding("it has other bytes than those that were acknowledged", each.item, BYTES)
            elif not there and status not in GONE:
                yield Finding(f"it is answered with {status}", each.item)
            elif each.open:
                ledger.settle(each, there=there)
            elif each.there != there:
                why = (
                    f"lost: it was acknowledged, and is answered with {status}"
                    if each.there
                    else "it was deleted, and is there"
                )
                yield Finding(why, each.item, LOST if each.there else WRONG)

    def check_indexes(self, states: Iterable[State]) -> Iterator[Finding]:
        """What indexes say otherwise than files."""
        for each in states:
            if not each.item.index or each.open:
                continue
            status, text = self._index(each.item.index)
            if status != 200 and status not in GONE:
                yield Finding(f"its index is answered with {status}: {text[:200]}", each.item)
                continue
            listed = status == 200 and each.item.listed in text
            if listed != each.there:
                yield Finding(f"its index {'lists' if listed else 'does not list'} it ({status})", each.item)

    def _index(self, path: str) -> tuple[int, str]:
        if path not in self._indexes:
            status, data = self._get(path)
            self._indexes[path] = (status, data.decode(errors="replace"))
        return self._indexes[path]

    def _get(self, path: str) -> tuple[int, bytes]:
        answer = self._session.get(f"{self._url}/{path}", timeout=TIMEOUT_S)
        return answer.status_code, answer.content


def sampled(states: Sequence[State], begun: int, rng: random.Random) -> list[State]:
    """The items of the last round, which are those after the first ``begun``, and some of earlier ones."""
    opened = [each for each in states[:begun] if each.open]
    return [*states[begun:], *opened, *rng.sample(states[:begun], min(SAMPLE, begun))]


def check_items(round_: Round) -> Iterator[Finding]:
    """
    The items of the round, some of earlier ones, and some indexes, through each server.

    Of the round without writers, which is the last one, everything.
    """
    every = [*round_.ledger.states()]
    states = sampled(every, round_.begun, round_.rng) if round_.writers else every
    indexed = round_.rng.sample(states, min(INDEXES, len(states))) if round_.writers else every
    for url in round_.urls:
        checker = Checker(url)
        yield from checker.check(states, round_.ledger)
        yield from checker.check_indexes(indexed)


CHECKS: Final[Sequence[Check]] = (check_items,)  # in the order in which they look after each round, and in the end
