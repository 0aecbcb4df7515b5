"""
What the other processes know of the commits of this one, so that a client may go on at any of them.

Each process serves documents from its memory until it is notified of a commit. A client that has published at one node
and reads at another could be faster than the notification. So each process tells the others which commit it has learned
of last, and one that commits answers its clients when all others have told of that commit.

Nobody waits long: a process that says nothing for ``PATIENCE_S`` is left out until it is heard again. It may then serve
what it has in memory for as long as L{changes} says.

==============  ===========================================================  ==========================================
what is told    when                                                         what others do
==============  ===========================================================  ==========================================
``ID hello N``  a process begins to listen                                   they tell what they know
``ID seen N``   it has learned of commit N                                   they wait for it from now on
``ID bye N``    it stops                                                     they wait for it no more
==============  ===========================================================  ==========================================
"""

from __future__ import annotations

import secrets
import threading
import time
from typing import Final

CHANNEL: Final = "pkgrepo_seen"
PATIENCE_S: Final = 0.25
MOST: Final = 1_000  # processes that are waited for

HELLO: Final = "hello"
SEEN: Final = "seen"
BYE: Final = "bye"


class Witnesses:
    """The other processes, by ids that they have made up, and the last commit that each has told of."""

    def __init__(self) -> None:
        self._own = secrets.token_hex(8)
        self._seen: dict[str, int] = {}
        self._heard = threading.Condition()

    def statement(self, kind: str, commit: int) -> tuple[str, tuple[str, str]]:
        """The statement with its parameters that tells the others about this process."""
        return "SELECT pg_notify($1, $2)", (CHANNEL, f"{self._own} {kind} {commit}")

    def hear(self, payload: str) -> bool:
        """Take in what a process has told. Returns whether it wants to know what this one knows."""
        try:
            process, kind, text = payload.split(" ")
            commit = int(text)
        except ValueError:
            return False
        if process == self._own:
            return False
        with self._heard:
            if kind == BYE:
                self._seen.pop(process, None)
            elif process in self._seen or len(self._seen) < MOST:
                self._seen[process] = max(commit, self._seen.get(process, commit))
            self._heard.notify_all()
        return kind == HELLO

    def wait(self, commit: int) -> None:
        """Wait until all others know of a commit, and leave out the slow ones; not in the reactor's thread."""
        until = time.monotonic() + PATIENCE_S
        with self._heard:
            while late := [process for process, seen in self._seen.items() if seen < commit]:
                left = until - time.monotonic()
                if left <= 0:
                    for process in late:
                        del self._seen[process]
                    return
                self._heard.wait(left)
