"""Servers on the same data, their faults, and how they go on after one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from attrs import frozen


@frozen
class Fault:
    """
    A fault by its name in the results. ``chance`` is how often it is chosen, compared with others.

    ``strike`` returns when it is over, or when what it hit is dead; L{Estate.mend} comes after it.
    """

    name: str
    chance: int
    strike: Callable[[random.Random], None]


class Estate(Protocol):
    """
    What runs. ``urls`` are the addresses of the servers; they may change with L{mend}.

    ``faults`` are those that can be had on this machine, and ``left_out`` are sentences about others.
    """

    urls: Sequence[str]
    faults: Sequence[Fault]
    left_out: Sequence[str]

    def mend(self) -> bool:
        """Start what is dead, and wait until every server answers. Returns whether anything was dead."""

    def end(self) -> list[str]:
        """Stop everything in order, and look at the data. Returns what is wrong with them, in sentences."""


@frozen
class Engine:
    """
    A kind of estate: its name on the command line, and what it is, for the page.

    ``run`` is given a new folder and a part of the configuration of servers; what it started ends with the context.
    """

    name: str
    about: str
    run: Callable[[Path, str], AbstractContextManager[Estate]]
