"""People whose accounts, passwords and grants change: what was taken away is refused from then on, everywhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar, Final

import requests
from attrs import define, field

from tests.lab.faults.checkers.histories import History, stale_reads
from tests.lab.faults.clients import Idle
from tests.support.timeouts import TIMEOUT_S

from .task import Task
from .tokens import MAY, MAY_NOT

REPOSITORY: Final = "internal"  # private, of raw files
FILE: Final = f"repositories/main/{REPOSITORY}/there/1.0/file.bin"
GRANT: Final = {"repositories": [{"repository": f"main/{REPOSITORY}", "actions": ["read"]}]}
LAST: Final = 6  # people who are tried; a password costs a server 50 ms
GUESSED: Final = 429  # after too many wrong passwords, which those of people who are switched off count as
# What changes of a person is one thing alone, so that a refusal has one reason.
STATUS, PASSWORD, RIGHTS = "status", "password", "rights"


@define
class Person:
    """
    Somebody with the passwords that were set, one of which holds; ``may`` is what the last answered change says.

    ``open``: a change is under way, or had no answer.
    """

    name: str
    what: str
    passwords: list[str]
    may: bool = True
    open: bool = False

    def register(self, number: int) -> str:
        """The register of what the person may with a password."""
        return f"{self.name} with password {number}"


@define
class People(Task):
    """The registers are whether each may read, with each password."""

    name: ClassVar = "people"
    steps: ClassVar = {"make": 2, "change": 4, "read": 6}
    threads: ClassVar = 2
    chance: ClassVar = 0.7

    history: History = field(factory=History, init=False)
    people: list[Person] = field(factory=list, init=False)

    def prepare(self) -> None:
        api = self.api()
        value = {"name": REPOSITORY, "storage": "main", "format": "raw", "visibility": "private"}
        api.ask("POST", "api/repository", json={**value, "config": {"type": "Hosted"}})
        api.ask("PUT", FILE, data=b"for those who were let in")

    def make(self) -> None:
        """Add somebody who may read."""
        person = Person(f"lab{self.next()}", self.rng.choice((STATUS, PASSWORD, RIGHTS)), [self._password()])
        with self.lab.ledger.step("add a person", person.name):
            body = {"username": person.name, "password": person.passwords[0]}
            self.api().ask("POST", "api/users", json=body)
            self.api().ask("PUT", f"api/users/{person.name}/permissions", json=GRANT)
        self.history.first(person.register(0), MAY)
        self._read(person, 0)  # from then on the failures of others from this address do not count against them
        with self.lock:
            self.people.append(person)

    def change(self) -> None:
        """Switch somebody off or on, set another password, or take the right to read and give it back."""
        with self.lock:
            waiting = [each for each in self.people[-LAST:] if not each.open]
            if not waiting:
                raise Idle
            person = self.rng.choice(waiting)
            person.open = True
        with self.lab.ledger.step(f"change the {person.what} of", person.name):
            if person.what == PASSWORD:
                self._set_password(person)
            else:
                self._switch(person)
        person.open = False

    def read(self) -> None:
        """Read as somebody, also with a password that does not hold any more."""
        people = self.people[-LAST:]
        if not people:
            raise Idle
        person = self.rng.choice(people)
        self._read(person, self.rng.randrange(max(0, len(person.passwords) - 2), len(person.passwords)))

    def check(self) -> Iterator[str]:
        self.history.settle()
        for each in self.people[-LAST:]:
            for number in range(max(0, len(each.passwords) - 2), len(each.passwords)):
                self._read(each, number)
            each.open = False
        for key in self.history.keys():  # noqa: SIM118 - no mapping
            for read in stale_reads(self.history.of(key), self.lab.lag_s):
                writes = [str(each) for each in self.history.of(key) if each.write]
                yield f"{key}: {read}, against what it may; changes: {'; '.join(writes)}"
        self.history.forget(self.lab.lag_s)

    def _switch(self, person: Person) -> None:
        may = not person.may
        with self.history.writing(person.register(0), MAY if may else MAY_NOT):
            if person.what == STATUS:
                self.api().ask("PUT", f"api/users/{person.name}/status", json={"active": may})
            else:
                given: dict[str, Any] = GRANT if may else {"repositories": []}
                self.api().ask("PUT", f"api/users/{person.name}/permissions", json=given)
        person.may = may

    def _set_password(self, person: Person) -> None:
        now, password = len(person.passwords), self._password()
        self.history.first(person.register(now), MAY_NOT)
        person.passwords.append(password)
        with ExitStack() as writing:
            for number in range(now):  # also those before the last one: that may not have been set
                writing.enter_context(self.history.writing(person.register(number), MAY_NOT))
            writing.enter_context(self.history.writing(person.register(now), MAY))
            self.api().ask("PUT", f"api/users/{person.name}/password", json={"password": password})

    def _password(self) -> str:
        password = self.rng.randbytes(12).hex()
        self.lab.secrets.append(password)
        return password

    def _read(self, person: Person, number: int) -> None:
        url, begun = self.rng.choice(self.lab.urls), time.monotonic()
        ask = partial(requests.get, f"{url}/{FILE}", auth=(person.name, person.passwords[number]), timeout=TIMEOUT_S)
        if (answer := ask()).status_code == GUESSED:
            self.api().ask("POST", f"api/users/{person.name}/unlock")
            begun, answer = time.monotonic(), ask()
        if answer.status_code == GUESSED:
            return  # this address is blocked, or attempts are in progress; it says nothing of the person
        # What may not be known to exist is answered with 404.
        values = {200: MAY, 401: MAY_NOT, 403: MAY_NOT, 404: MAY_NOT}
        assert answer.status_code in values, f"read as somebody: {answer.status_code} {answer.text[:200]}"
        self.history.read(person.register(number), values[answer.status_code], begun)
