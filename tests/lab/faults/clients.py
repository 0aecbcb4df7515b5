"""Threads that do one step after another at a server, until a fault comes."""

from __future__ import annotations

import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from typing import Final

import requests
from attrs import Factory, define

from tests.support.first_publishes import Publisher

from .ledger import Ledger
from .rounds import Complaint

STATUS: Final = re.compile(r": (\d{3}) ")  # in what a publisher says about a response
REST_S: Final = 0.02  # after a step that failed, or did nothing


@define
class Lab:
    """
    What clients work with: the addresses at which the server answers now, the credentials of its admin, the ledger.

    ``lag_s`` is for how many seconds a node may not know what another one has acknowledged. ``secrets`` are passwords
    and tokens of the run, which no log may have.
    """

    urls: list[str]
    auth: tuple[str, str]
    ledger: Ledger
    lag_s: float = 0
    secrets: list[str] = Factory(list)

    def publisher(self, rng: random.Random) -> Publisher:
        """The admin at one of the addresses."""
        return Publisher(rng.choice(self.urls), self.auth)


class Idle(Exception):
    """There is nothing that the step could be done with."""


class Client(ABC):
    """
    A client in a thread; it goes on until ``stop``, also without a server.

    ``wrong`` are responses that no fault explains, ``counts`` the steps that were acknowledged. ``longest`` is the step
    that took the most seconds.
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.counts: Counter[str] = Counter()
        self.wrong: list[Complaint] = []
        self.longest: tuple[float, str] = (0.0, "")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin with the first step."""
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def stop(self) -> None:
        """Let the step end that is being done, and no other one begin."""
        self._stopped.set()

    @abstractmethod
    def _chosen(self) -> str:
        """The name of the next step."""

    @abstractmethod
    def _do(self, what: str) -> None:
        """Do it. :raises AssertionError: the response is not what it should be; :raises Idle: there is nothing to do"""

    def _run(self) -> None:
        while not self._stopped.is_set():
            what, begun = self._chosen(), time.monotonic()
            try:
                self._do(what)
                self.counts[what] += 1
            except (Idle, requests.RequestException):  # the second: there is no server now
                self._stopped.wait(REST_S)
            except AssertionError as error:  # a response other than success
                found = STATUS.search(str(error))
                self.wrong.append(Complaint(f"{what}: {error}", int(found[1]) if found else 0))
                self._stopped.wait(REST_S)
            finally:
                self.longest = max(self.longest, (time.monotonic() - begun, what))
