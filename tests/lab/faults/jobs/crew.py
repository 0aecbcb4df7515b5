"""The tasks of one run: some of them work in each round, and are asked after it what is wrong; in the end all are."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.lab.faults.checkers.secrets import in_arguments
from tests.lab.faults.clients import Client, Lab
from tests.lab.faults.ledger import Ledger
from tests.lab.faults.rounds import AUTH, Finding, Job, Round

from .backing import Backing
from .blocking import Blocking
from .carrying import Carrying
from .collecting import Collecting
from .importing import Importing
from .limiting import Limiting
from .people import People
from .promoting import Promoting
from .proxying import Proxying
from .replicating import Replicating
from .retaining import Retaining
from .staging import Staging
from .tagging import Tagging
from .task import Task, TaskClient, told
from .tokens import Tokens
from .trashing import Trashing
from .twins import Twins
from .uploading import Uploading

PRIVATE: Final = 'proxy.allow_private = ["127.0.0.1"]\n'  # where the upstreams of the tasks are
WATCHED_S: Final = 0.2  # between two looks at the processes
AT_ONCE: Final = 3  # tasks that work in a round
OTHERS: Final = 1  # tasks that did not, and are asked after it what is wrong
TASKS: Final[Sequence[type[Task]]] = (
    Backing,
    Blocking,
    Carrying,
    Collecting,
    Importing,
    Limiting,
    People,
    Promoting,
    Proxying,
    Replicating,
    Retaining,
    Staging,
    Tagging,
    Tokens,
    Trashing,
    Twins,
    Uploading,
)


class Watcher(Client):
    """Looks for secrets in the arguments of all processes of the lab while the others work."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab
        self.start()

    def _chosen(self) -> str:
        return "look at processes"

    def _do(self, what: str) -> None:
        time.sleep(WATCHED_S)
        found = [*in_arguments([*self._lab.secrets], os.getpid())]
        assert not found, found[0]


class Crew:
    """The tasks of a run, with their states; ``folder`` is on a disk that no fault reaches."""

    def __init__(
        self, folder: Path, ledger: Ledger, rng: random.Random, *, near: bool = True, lag_s: float = 0
    ) -> None:
        self.folder = folder
        self.lab = Lab([], AUTH, ledger, lag_s)
        self.lab.secrets.append(AUTH[1])
        self.tasks = [self._make(each, folder, rng) for each in TASKS if near or not each.near]
        settings = PRIVATE + "".join(each.settings(each.folder) for each in self.tasks)
        self._worked: list[Task] = []
        self.job = Job(self.begin, self.prepare, settings)

    def _make(self, kind: type[Task], folder: Path, rng: random.Random) -> Task:
        place = folder / kind.__name__.lower()
        place.mkdir(parents=True)
        return kind(self.lab, place, random.Random(rng.random()))

    def prepare(self, url: str) -> None:
        """Make what tasks need, at a new server that has the repositories of the writers."""
        self.lab.urls[:] = [url]
        for each in self.tasks:
            each.prepare()

    def close(self) -> None:
        """End what tasks have started."""
        for each in self.tasks:
            each.close()

    def begin(self, round_: Round) -> list[Client]:
        """The threads of some of the tasks."""
        self.lab.urls[:] = round_.urls
        # By Efraimidis and Spirakis, Weighted random sampling with a reservoir (2006).
        weights = {each.name: round_.rng.random() ** (1 / each.chance) for each in self.tasks}
        chosen = sorted(self.tasks, key=lambda each: weights[each.name])[-AT_ONCE:]
        self._worked = chosen
        clients: list[Client] = [TaskClient(each) for each in chosen for _ in range(each.threads)]
        return [*clients, Watcher(self.lab)]

    def check(self, round_: Round) -> Iterator[Finding]:
        """What is wrong after a fault, of tasks that worked; of the round without writers, the last one, of all."""
        self.lab.urls[:] = round_.urls
        others = [each for each in self.tasks if each not in self._worked]
        asked = [*self._worked, *round_.rng.sample(others, min(OTHERS, len(others)))]
        for each in asked if round_.writers else self.tasks:
            try:
                found = [*(each.check() if round_.writers else each.finish())]
            except AssertionError as error:
                found = [told(error)]
            yield from (Finding(f"{each.name}: {text}") for text in found)
