"""Quotas that are nearly used by several clients at once: nothing exceeds them, and what fits is not refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import requests
from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.lab.faults.ledger import sha256_of
from tests.support.timeouts import TIMEOUT_S

from .task import Kept, Task, told

MOST: Final = 60_000  # bytes of each quota
SIZES: Final = (1, 12_000)  # bytes of a file
FULL: Final = (403, 507)
HELD_S: Final = 70.0  # for which a killed process may hold room: its reservation, and the time to renew it


@define
class Upload:
    """A file that was sent; ``there`` is None until it is known whether it is."""

    kept: Kept
    size: int
    there: bool | None = None
    until: float = 0.0  # monotonic; room may be held until then for one that is not there


@define
class Place:
    """A repository with a quota, or with a user who has one. ``uploads`` are those that may count, of all ``begun``."""

    repository: str
    user: str = ""
    password: str = ""
    uploads: list[Upload] = field(factory=list)
    begun: list[Upload] = field(factory=list)

    def __str__(self) -> str:
        return f"quota of {self.user or self.repository}"

    @property
    def api(self) -> str:
        """Where the quota is."""
        return f"api/users/{self.user}/quota" if self.user else f"api/repository/main%2F{self.repository}/quota"

    def begin(self, upload: Upload) -> tuple[list[Upload], int]:
        """Note that a file is sent. Returns what may count beside it, and how many were begun before."""
        beside = self.counting()
        self.uploads.append(upload)
        self.begun.append(upload)
        return beside, len(self.begun)

    def counting(self) -> list[Upload]:
        """What may be there, or may be reserved."""
        now = time.monotonic()
        return [each for each in self.uploads if each.there or each.there is None or each.until > now]

    def used(self) -> int:
        """The bytes that are there for sure."""
        return sum(each.size for each in self.uploads if each.there)


@define
class Limiting(Task):
    """Files of all sizes, so that the last ones fit or do not."""

    name: ClassVar = "quotas"
    steps: ClassVar = {"publish": 5, "delete": 1}
    threads: ClassVar = 3

    places: list[Place] = field(factory=list, init=False)

    def prepare(self) -> None:
        api = self.api()
        password = self.rng.randbytes(12).hex()
        self.lab.secrets.append(password)
        self.places[:] = [Place("limited"), Place("roomy", "limited", password)]
        for each in self.places:
            api.create(each.repository, "raw")
            if each.user:
                api.ask("POST", "api/users", json={"username": each.user, "password": password})
                rights = [{"repository": f"main/{each.repository}", "actions": ["read", "write"]}]
                api.ask("PUT", f"api/users/{each.user}/permissions", json={"repositories": rights})
            api.ask("PATCH", each.api, json={"bytes": MOST})

    def publish(self) -> None:
        """Send a file, which the server takes if it fits."""
        place, size = self.rng.choice(self.places), self.rng.randint(*SIZES)
        path, data = f"repositories/main/{place.repository}/f{self.next()}/1.0/file.bin", self.rng.randbytes(size)
        upload = Upload(Kept(path, sha256_of(data)), size)
        with self.lock:
            beside, begun = place.begin(upload)
        with self.lab.ledger.step("publish within a quota", str(place)):
            auth = (place.user, place.password) if place.user else self.lab.auth
            answer = requests.put(f"{self.rng.choice(self.lab.urls)}/{path}", data=data, auth=auth, timeout=TIMEOUT_S)
            assert answer.status_code in (200, 201, *FULL), f"PUT {path}: {answer.status_code} {answer.text[:200]}"
            upload.there = answer.status_code not in FULL
            if not upload.there:
                with self.lock:
                    place.uploads.remove(upload)
                most = size + sum(each.size for each in [*beside, *place.begun[begun:]])
                # The other reason is a disk that is full now.
                assert "quota" not in answer.text or most > MOST, f"{place}: {size} of {most} bytes are refused"
                raise Idle

    def delete(self) -> None:
        """Delete a file for good."""
        place = self.rng.choice(self.places)
        with self.lock:
            there = [each for each in place.uploads if each.there]
            if not there:
                raise Idle
            upload = self.rng.choice(there)
            upload.there = None
        _, _, repository, name, version, _ = upload.kept.path.split("/")
        with self.lab.ledger.step("delete within a quota", str(place)):
            self.api().ask("DELETE", f"api/package/main%2F{repository}/{name}/versions/{version}?purge=true")
        with self.lock:
            place.uploads.remove(upload)

    def check(self) -> Iterator[str]:
        api = self.api()
        for place in self.places:
            try:
                for each in place.uploads:
                    there = each.kept.is_there(api)
                    if each.there and not there:
                        yield f"{place}: {each.kept.path} is lost"
                    if each.there is None and not there:
                        each.until = time.monotonic() + HELD_S
                    each.there = there
                used: dict[str, Any] = api.ask("GET", place.api).json()["usage"]
                if used["bytes"] != place.used():
                    yield f"{place}: {used['bytes']} bytes are counted, and {place.used()} are there"
                if place.used() > MOST:
                    yield f"{place}: {place.used()} bytes are there, and {MOST} may be"
            except AssertionError as error:
                yield f"{place}: {told(error)}"
            now = time.monotonic()
            place.uploads[:] = [each for each in place.uploads if each.there or each.until > now]
