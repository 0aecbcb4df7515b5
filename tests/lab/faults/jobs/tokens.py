"""Tokens that are made, limited and revoked: what was taken away is refused from then on, on all workers and nodes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import requests
from attrs import define, field

from tests.lab.faults.checkers.histories import History, stale_reads
from tests.lab.faults.clients import Idle
from tests.support.timeouts import TIMEOUT_S

from .task import Task

REPOSITORY: Final = "secret"  # private, of raw files
FILE: Final = f"repositories/main/{REPOSITORY}/there/1.0/file.bin"
MAY, MAY_NOT = "allowed", "refused"


@define
class Token:
    """A token by its id and text; ``writes`` until it is limited, ``lives`` until it is revoked."""

    id: str
    text: str
    writes: bool = True
    lives: bool = True
    open: bool = False


@define
class Tokens(Task):
    """The registers are what each token may: read, and write."""

    name: ClassVar = "tokens"
    steps: ClassVar = {"make": 2, "limit": 2, "revoke": 2, "read": 10, "write": 6}
    threads: ClassVar = 2

    history: History = field(factory=History, init=False)
    tokens: list[Token] = field(factory=list, init=False)

    def prepare(self) -> None:
        api = self.api()
        value = {"name": REPOSITORY, "storage": "main", "format": "raw", "visibility": "private"}
        api.ask("POST", "api/repository", json={**value, "config": {"type": "Hosted"}})
        api.ask("PUT", FILE, data=b"for those with a token")

    def make(self) -> None:
        """Make a token that may read and write."""
        rights = [{"repository": f"main/{REPOSITORY}", "actions": ["read", "write"]}]
        body: dict[str, Any] = {"name": f"lab{self.next()}", "repositories": rights}
        with self.lab.ledger.step("make a token", body["name"]):
            made = self.api().ask("POST", "api/user/token", json=body).json()
        self.lab.secrets.append(made["token"])
        for what in ("read", "write"):
            self.history.first(f"{made['id']} {what}", MAY)
        with self.lock:
            self.tokens.append(Token(made["id"], made["token"]))

    def limit(self) -> None:
        """Take the right to write from one."""
        if (token := self._take(writes=True)) is None:
            raise Idle
        rights = [{"repository": f"main/{REPOSITORY}", "actions": ["read"]}]
        with self.lab.ledger.step("limit", f"token {token.id}"), self.history.writing(f"{token.id} write", MAY_NOT):
            self.api().ask("PATCH", f"api/user/token/{token.id}", json={"repositories": rights})
        token.writes = token.open = False

    def revoke(self) -> None:
        """Revoke one."""
        if (token := self._take(writes=False)) is None:
            raise Idle
        writes = (self.history.writing(f"{token.id} {what}", MAY_NOT) for what in ("read", "write"))
        with self.lab.ledger.step("revoke", f"token {token.id}"), next(writes), next(writes):
            self.api().ask("DELETE", f"api/user/token/{token.id}")
        token.lives = token.writes = token.open = False

    def read(self) -> None:
        """Read with a token, also with one that was revoked."""
        if not self.tokens:
            raise Idle
        self._use(self.rng.choice(self.tokens[-30:]), "read")

    def write(self) -> None:
        """Write with one."""
        if not self.tokens:
            raise Idle
        self._use(self.rng.choice(self.tokens[-30:]), "write")

    def check(self) -> Iterator[str]:
        self.history.settle()
        for each in self.tokens[-30:]:
            self._use(each, "read")
            self._use(each, "write")
            each.open = False
        for key in self.history.keys():  # noqa: SIM118 - no mapping
            for read in stale_reads(self.history.of(key), self.lab.lag_s):
                writes = [str(each) for each in self.history.of(key) if each.write]
                yield f"token {key}: {read}, against what it may; changes: {'; '.join(writes)}"
        self.history.forget(self.lab.lag_s)

    def _take(self, *, writes: bool) -> Token | None:
        """A token that lives, and that no other thread changes; None if there is none."""
        with self.lock:
            found = [each for each in self.tokens if each.lives and not each.open and (each.writes or not writes)]
            if not found:
                return None
            token = self.rng.choice(found)
            token.open = True
            return token

    def _use(self, token: Token, what: str) -> None:
        url, begun = self.rng.choice(self.lab.urls), time.monotonic()
        headers = {"Authorization": f"Bearer {token.text}"}
        if what == "read":
            answer = requests.get(f"{url}/{FILE}", headers=headers, timeout=TIMEOUT_S)
        else:
            place = f"{url}/repositories/main/{REPOSITORY}/w{self.next()}/1.0/file.bin"
            answer = requests.put(place, data=b"x", headers=headers, timeout=TIMEOUT_S)
        # What may not be known to exist is answered with 404.
        values = {200: MAY, 201: MAY, 204: MAY, 401: MAY_NOT, 403: MAY_NOT, 404: MAY_NOT}
        assert answer.status_code in values, f"{what} with a token: {answer.status_code} {answer.text[:200]}"
        self.history.read(f"{token.id} {what}", values[answer.status_code], begun)
