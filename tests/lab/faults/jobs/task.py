"""A task beside the writers: one subject, with the states of what the task has changed, over all rounds."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from attrs import define, field

from tests.lab.faults.clients import Client, Lab
from tests.lab.faults.ledger import sha256_of
from tests.support.first_publishes import Published, Publisher

GONE = (404, 410)


@define
class Task(ABC):
    """
    ``steps`` are the names of methods with their chances; ``threads`` do them at the same time. ``chance`` is how often
    the task works, compared with others.

    A step raises AssertionError for a response that no fault explains, and leaves its state open when there is no
    response. ``folder`` is a folder of the task alone, on a disk that no fault reaches.
    """

    name: ClassVar[str]
    steps: ClassVar[Mapping[str, float]]
    threads: ClassVar[int] = 1
    chance: ClassVar[float] = 1.0
    near: ClassVar[bool] = False  # servers have to reach loopback addresses of this machine

    lab: Lab
    folder: Path
    rng: random.Random
    lock: threading.RLock = field(factory=threading.RLock, init=False)
    _number: int = field(default=0, init=False)

    @staticmethod
    def settings(folder: Path) -> str:
        """Lines for the configuration of the server, in whole sections; ``folder`` is that of the task."""
        return ""

    @abstractmethod
    def prepare(self) -> None:
        """Make repositories and what else is needed, once, at a new server."""

    def check(self) -> Iterator[str]:
        """What is wrong after a fault, at the next server. What had no response is settled."""
        return iter(())

    def finish(self) -> Iterator[str]:
        """What is wrong when all rounds are over; there is still a server."""
        return self.check()

    def close(self) -> None:  # noqa: B027 - most start nothing
        """End what ``prepare`` has started."""

    def api(self) -> Publisher:
        """The admin at one of the nodes."""
        return self.lab.publisher(self.rng)

    def next(self) -> int:
        """A number that no other step of the task has."""
        with self.lock:
            self._number += 1
            return self._number


class TaskClient(Client):
    """One thread of a task, in one round."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task
        self.start()

    def _chosen(self) -> str:
        steps = self._task.steps
        return self._task.rng.choices([*steps], [*steps.values()])[0]

    def _do(self, what: str) -> None:
        getattr(self._task, what)()


@define
class Kept:
    """A published file: its path, and the digest of its bytes."""

    path: str
    sha256: str
    index: str = ""
    listed: str = ""

    @classmethod
    def of(cls, found: Published) -> Kept:
        """What was published."""
        return cls(found.file, sha256_of(found.data), found.index, found.listed)

    def is_there(self, api: Publisher) -> bool:
        """Whether it is served. :raises AssertionError: with other bytes, or with another error than that it is gone"""
        answer = api.send("GET", self.path)
        if answer.status_code in GONE:
            return False
        assert answer.status_code == 200, f"GET {self.path}: {answer.status_code} {answer.text[:200]}"
        assert sha256_of(answer.content) == self.sha256, f"{self.path} has other bytes than those that were published"
        return True

    def is_listed(self, api: Publisher) -> bool:
        """Whether its index lists it."""
        answer = api.send("GET", self.index)
        return answer.status_code == 200 and self.listed in answer.text


def told(error: AssertionError) -> str:
    """The sentence of an error, for a list of what is wrong."""
    return str(error).partition("\n")[0]
