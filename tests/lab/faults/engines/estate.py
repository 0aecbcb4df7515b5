"""Servers on the same data, their faults, and how they go on after one."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

import requests
from attrs import frozen

from tests.support.data_folder import DataFolder

RECOVERED_S: Final = 90.0  # seconds in which servers have to answer when all that they need is there again
LONGEST_ANSWER_S: Final = 10.0
PAUSE_S: Final = 0.02
TRACEBACK: Final = re.compile(r"Traceback \(most recent")
UNEXPECTED: Final = re.compile(r"request \S+ failed")
LONGEST_TRACEBACK: Final = 40  # lines


@frozen
class Fault:
    """
    A fault by its name in the results. ``chance`` is how often it is chosen, compared with others.

    ``strike`` returns when it is over, or when what it hit is dead (``is_deadly``); L{Estate.mend} comes after it. It
    returns the names of the faults that it was made of, if it was. With ``is_told`` something that servers need fails,
    which they may log with a traceback.
    """

    name: str
    chance: int
    strike: Callable[[random.Random], Iterable[str] | None]
    is_deadly: bool = False
    is_told: bool = False


class NotRecovered(Exception):
    """Servers do not answer although everything that they need runs."""


class Estate(Protocol):
    """
    What runs. ``urls`` are the addresses of the servers, which do not change.

    ``faults`` are those that can be had on this machine, and ``left_out`` are sentences about others.
    """

    urls: Sequence[str]
    faults: Sequence[Fault]
    left_out: Sequence[str]
    data: DataFolder | None  # on this machine, of a single server

    def outputs(self) -> Sequence[str]:
        """What processes have written."""

    def begin(self) -> None:
        """Begin to start what is dead."""

    def mend(self, after: Fault | None = None) -> None:
        """
        Start what is dead, and wait until every server answers. :raises NotRecovered: one does not

        A server may end by itself if something that it needs failed during its start (``is_told`` of ``after``): a
        service manager starts it again then.
        """

    def settle(self) -> None:
        """Wait until servers know what was changed at others; what they may serve from memory is newer than that."""

    def said(self, after: Fault) -> list[str]:
        """What is wrong in what processes have written since this was asked last."""

    def renew(self) -> None:
        """Restart in order a server that has the data alone: what failed writes have left is removed at its start."""

    def end(self) -> list[str]:
        """Stop everything in order, and look at the data. Returns what is wrong with them, in sentences."""


@frozen
class Engine:
    """
    A kind of estate: its name on the command line, and what it is, for the page.

    ``run`` is given a new folder and a part of the configuration of servers; what it started ends with the context. Of
    servers that are all ``is_near`` each reaches the loopback addresses of this machine. ``lag_s`` is for how many
    seconds a server may not know what another one has acknowledged.
    """

    name: str
    about: str
    run: Callable[[Path, str], AbstractContextManager[Estate]]
    is_near: bool = True
    lag_s: float = 0


class Written:
    """The lines that processes write, which come in threads of their own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.earlier: list[str] = []

    def every(self) -> list[str]:
        """All that they have written."""
        return ["".join([*self.earlier, *self.lines])]

    def tracebacks(self, after: Fault) -> list[str]:
        """
        Those that came since this was asked last, each with the lines around it.

        No fault explains one of a request that ended with an error which nobody expected.
        """
        lines, self.lines[:] = [*self.lines], []
        self.earlier += lines
        wrong = UNEXPECTED if after.is_told else TRACEBACK
        at = [number for number, line in enumerate(lines) if wrong.search(line)]
        return ["".join(lines[max(0, each - 2) : each + LONGEST_TRACEBACK]) for each in at]


def wait_until_ready(url: str) -> None:
    """Wait until a server says that it can do its work. :raises NotRecovered: it does not within ``RECOVERED_S``"""
    ends_at, said = time.monotonic() + RECOVERED_S, "nothing"
    while time.monotonic() < ends_at:
        try:
            answer = requests.get(f"{url}/readyz", timeout=LONGEST_ANSWER_S, proxies={"http": ""})
        except requests.RequestException as error:
            said = str(error)
        else:
            if answer.ok:
                return
            said = f"{answer.status_code} {answer.text}"
        time.sleep(PAUSE_S)
    raise NotRecovered(f"{url} is not ready after {RECOVERED_S:g} s: {said}")
