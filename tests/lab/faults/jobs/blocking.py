"""Blocks and freezes that come and go: what is acknowledged holds for each later read, on all workers and nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.checkers.histories import History, Operation, stale_reads
from tests.lab.faults.clients import Idle
from tests.support.first_publishes import REPOSITORIES, Publisher

from .task import Kept, Task

FORMATS: Final = ("python", "npm", "helm", "docker")
PACKAGE: Final = "blockable"
FROZEN: Final = "frozen"  # a virtual repository of npm
SERVED, REFUSED = "served", "refused"
VERSION: Final = "1.0.0"


@define
class Blocking(Task):
    """Each register is a file: what is read of it is ``served`` or ``refused``."""

    name: ClassVar = "blocks and freezes"
    steps: ClassVar = {"block": 2, "unblock": 2, "freeze": 1, "thaw": 1, "read": 14}
    threads: ClassVar = 3

    history: History = field(factory=History, init=False)
    files: dict[str, Kept] = field(factory=dict, init=False)
    blocks: dict[str, str] = field(factory=dict, init=False)  # what is held now by its id
    busy: set[str] = field(factory=set, init=False)  # what a thread changes, or whose last change had no answer

    def prepare(self) -> None:
        api = self.api()
        for format_ in FORMATS:
            self.files[format_] = Kept.of(api.publish(format_, PACKAGE, VERSION))
        members = [f"main/{REPOSITORIES['npm']}"]
        config = {"type": "Virtual", "members": members}
        value = {"name": FROZEN, "storage": "main", "format": "npm", "visibility": "public", "config": config}
        api.ask("POST", "api/repository", json=value)
        # A package of its own, since the blocks of a member hold in a virtual repository, too.
        found = Kept.of(api.publish("npm", "freezable", VERSION))
        self.files[FROZEN] = Kept(found.path.replace(members[0] + "/", f"main/{FROZEN}/"), found.sha256)
        for key in self.files:
            self.history.first(key, SERVED)

    def block(self) -> None:
        """Block a package."""
        if (key := self._take([each for each in FORMATS if each not in self.blocks])) is None:
            raise Idle
        body = {"repository": f"main/{REPOSITORIES[key]}", "package": PACKAGE, "reason": "of the lab"}
        with self._changing("block", key, REFUSED):
            self.blocks[key] = self.api().ask("POST", "api/policy/blocks", json=body).json()["id"]
        self.busy.discard(key)

    def unblock(self) -> None:
        """Remove a block."""
        if (key := self._take([each for each in self.blocks if each != FROZEN])) is None:
            raise Idle
        with self._changing("unblock", key, SERVED):
            self.api().ask("DELETE", f"api/policy/blocks/{self.blocks[key]}")
            del self.blocks[key]
        self.busy.discard(key)

    def freeze(self) -> None:
        """Freeze the virtual repository as it was before anything was published."""
        if FROZEN in self.blocks or self._take([FROZEN]) is None:
            raise Idle
        body = {"repositories": [f"main/{FROZEN}"], "at": "2020-01-01T00:00:00Z", "reason": "of the lab"}
        with self._changing("freeze", FROZEN, REFUSED):
            self.blocks[FROZEN] = self.api().ask("POST", "api/policy/freeze", json=body).json()["id"]
        self.busy.discard(FROZEN)

    def thaw(self) -> None:
        """Remove the freeze."""
        if FROZEN not in self.blocks or self._take([FROZEN]) is None:
            raise Idle
        with self._changing("thaw", FROZEN, SERVED):
            self.api().ask("DELETE", f"api/policy/freeze/{self.blocks[FROZEN]}")
            del self.blocks[FROZEN]
        self.busy.discard(FROZEN)

    def read(self) -> None:
        """Read one of the files."""
        self._read(self.api(), self.rng.choice([*self.files]))

    def check(self) -> Iterator[str]:
        self.history.settle()
        api = self.api()
        for key in self.files:
            if key in self.busy:
                self._settle(api, key)
            self._read(api, key)
        self.busy.clear()
        yield from wrong(self.history, self.lab.lag_s)
        self.history.forget(self.lab.lag_s)

    def _take(self, keys: list[str]) -> str | None:
        """One of the keys that no other thread changes, or None."""
        with self.lock:
            free = [each for each in keys if each not in self.busy]
            if not free:
                return None
            key = self.rng.choice(free)
            self.busy.add(key)
            return key

    def _changing(self, what: str, key: str, value: str) -> AbstractContextManager[Operation]:
        self.lab.ledger.note(what=what, item=f"{key} {PACKAGE}")
        return self.history.writing(key, value)

    def _read(self, api: Publisher, key: str) -> None:
        begun = time.monotonic()
        answer = api.send("GET", self.files[key].path)
        # What is refused as an image is not told from one that is not there.
        values = {200: SERVED, 403: REFUSED, 404: REFUSED, 451: REFUSED}
        assert answer.status_code in values, f"GET {self.files[key].path}: {answer.status_code} {answer.text[:200]}"
        self.history.read(key, values[answer.status_code], begun)

    def _settle(self, api: Publisher, key: str) -> None:
        """Learn whether a change was made that had no answer."""
        if key == FROZEN:
            found = [each["id"] for each in api.ask("GET", "api/policy/freeze").json()]
        else:
            every = api.ask("GET", "api/policy/blocks").json()
            listed = every["items"] if isinstance(every, dict) else every
            found = [each["id"] for each in listed if each["repository"] == f"main/{REPOSITORIES[key]}"]
        self.blocks.pop(key, None)
        for each in found:
            self.blocks[key] = each
        self.history.decided(self.history.last(key), REFUSED if found else SERVED)


def wrong(history: History, lag_s: float) -> Iterator[str]:
    """Reads of what was refused then, or that were refused without a rule."""
    for key in history.keys():  # noqa: SIM118 - no mapping
        operations = history.of(key)
        for read in stale_reads(operations, lag_s):
            writes = [str(each) for each in operations if each.write][-6:]
            yield f"{key} {PACKAGE}: {read}, against the rules of then; changes: {'; '.join(writes)}"
