"""Readers of what was there before a round, while its fault comes: an answer may be an error, but never a wrong one."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import requests

from tests.support.timeouts import TIMEOUT_S

from .ledger import Ledger, State, sha256_of
from .rounds import AUTH, Complaint, Job, Round

GONE: Final = (404, 410)
REST_S: Final = 0.05  # after a response that is no success
PAUSE_S: Final = 0.01
KNOWN: Final = 200  # items that the readers of a round know

# What a client prints of an error, in the body of the response, by format; others print its reason or its text, as
# cargo does of an error whose form is not its own.
TOLD: Final[Mapping[str, Callable[[Any], str]]] = {
    "docker": lambda body: str(body["errors"][0]["message"]),
    "npm": lambda body: str(body["error"]),
}


class Reader:
    """One client in a thread that reads items which nothing changes in this round; see L{Worker}."""

    def __init__(self, url: str, states: list[State], ledger: Ledger, rng: random.Random) -> None:
        self._url = url
        self._states = states
        self._ledger = ledger
        self._rng = rng
        self._session = requests.Session()
        self._session.auth = AUTH
        self._session.trust_env = False
        self._stopped = threading.Event()
        self.counts: Counter[str] = Counter()
        self.wrong: list[Complaint] = []
        self.longest = (0.0, "read")
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_S):
            state = self._rng.choice(self._states)
            try:
                answer = self._session.get(f"{self._url}/{state.item.file}", timeout=TIMEOUT_S)
            except requests.RequestException:  # there is no server now, or it died while it answered
                self._stopped.wait(REST_S)
                continue
            if not self._ledger.is_still(state):  # something else has begun to change it
                continue
            self._judge(state, answer)
            if answer.status_code >= 500:
                self._stopped.wait(REST_S)

    def _judge(self, state: State, answer: requests.Response) -> None:
        status, said = answer.status_code, f"read during the fault: {state.item.file}: "
        if status >= 500:
            if not is_told(state.item.format, answer):
                said += f"{status} {answer.reason}, without what a client prints: {answer.text[:200]}"
                self.wrong.append(Complaint(said))
            else:
                self.wrong.append(Complaint(f"{said}{status} {answer.text[:200]}", status))
        elif status == 200 and state.there:
            self.counts["read"] += 1
            if sha256_of(answer.content) != state.item.sha256:
                self.wrong.append(Complaint(f"{said}it has other bytes"))
        elif state.there or status not in GONE:
            there = "there" if state.there else "not there"
            self.wrong.append(Complaint(f"{said}{status} {answer.text[:200]}, although it is {there}"))


def is_told(format_: str, answer: requests.Response) -> bool:
    """Whether an error says something to the clients of a format."""
    told = TOLD.get(format_)
    if told is None:
        return bool(answer.text.strip() or answer.reason)
    try:
        return bool(told(answer.json()))
    except (json.JSONDecodeError, LookupError, TypeError):
        return False


def begin(round_: Round) -> list[Reader]:
    """A reader at each server, of some items that are settled."""
    settled = [each for each in round_.ledger.states() if each.item.file and not each.open]
    if not settled:
        return []
    known = round_.rng.sample(settled, min(KNOWN, len(settled)))
    return [Reader(url, known, round_.ledger, random.Random(round_.rng.random())) for url in round_.urls]


READING: Final = Job(begin)
