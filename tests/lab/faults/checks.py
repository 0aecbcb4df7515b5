"""What a server has after a fault, compared with the ledger."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Final

import requests
from attrs import frozen

from tests.support.timeouts import TIMEOUT_S

from .ledger import Item, Ledger, State, sha256_of

SAMPLE: Final = 300  # items of earlier rounds that are read again after each one
INDEXES: Final = 60  # of which the index is read, too
GONE: Final = (404, 410)


@frozen
class Fault:
    """What is wrong with an item, in a sentence."""

    item: Item
    why: str


class Checker:
    """Reads items as clients do."""

    def __init__(self, url: str, auth: tuple[str, str]) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.auth = auth
        self._session.trust_env = False
        self._indexes: dict[str, str] = {}

    def check(self, states: Iterable[State], ledger: Ledger) -> Iterator[Fault]:
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
                yield Fault(each.item, "it has other bytes than those that were acknowledged")
            elif not there and status not in GONE:
                yield Fault(each.item, f"it is answered with {status}")
            elif each.open:
                ledger.settle(each, there=there)
            elif each.there != there:
                why = (
                    f"lost: it was acknowledged, and is answered with {status}"
                    if each.there
                    else "it was deleted, and is there"
                )
                yield Fault(each.item, why)

    def check_indexes(self, states: Iterable[State]) -> Iterator[Fault]:
        """What indexes say otherwise than files."""
        for each in states:
            if not each.item.index or each.open:
                continue
            listed = each.item.listed in self._index(each.item.index)
            if listed != each.there:
                yield Fault(each.item, f"its index {'lists' if listed else 'does not list'} it")

    def _index(self, path: str) -> str:
        if path not in self._indexes:
            status, data = self._get(path)
            self._indexes[path] = data.decode() if status == 200 else ""
        return self._indexes[path]

    def _get(self, path: str) -> tuple[int, bytes]:
        answer = self._session.get(f"{self._url}/{path}", timeout=TIMEOUT_S)
        return answer.status_code, answer.content


def sampled(ledger: Ledger, begun: int, rng: random.Random) -> list[State]:
    """The items of the last round, which are those after the first ``begun``, and some of earlier ones."""
    every = [*ledger.states()]
    opened = [each for each in every[:begun] if each.open]
    return [*every[begun:], *opened, *rng.sample(every[:begun], min(SAMPLE, begun))]
