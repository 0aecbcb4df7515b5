"""Repositories that follow one of another server: a copy here of one there, and a copy there of one here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import ClassVar, Final
from urllib.parse import quote, urlsplit

from attrs import define, field

from tests.lab.faults.checkers.contents import differences, versions_of
from tests.lab.faults.clients import Idle
from tests.lab.faults.writers import package_of
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.tcp_proxy import TcpProxy

from .far import FarServer
from .task import Kept, Task

FORMATS: Final = ("python", "npm", "maven")  # of repositories here that follow one there
BACK: Final = "npm"  # of the repository there that follows the one of the writers here
LINE: Final = "followed"
CATCH_UP_S: Final = 60


@define
class Replicating(Task):
    """In the end both have the same: versions, yanks, tags, digests, and nothing that was removed."""

    name: ClassVar = "replication"
    near: ClassVar = True
    steps: ClassVar = {"publish": 6, "yank": 2, "unyank": 1, "delete": 2}

    far: FarServer = field(init=False)
    way: TcpProxy = field(init=False)  # the address of the lab's server for the far one
    there: list[tuple[str, str]] = field(factory=list, init=False)

    def prepare(self) -> None:
        self.far = FarServer(self.folder / "far", self.lab)
        for format_ in FORMATS:
            name = f"{LINE}-{format_}"
            self.far.api.create(name, format_)
            _follow(self.api(), name, format_, f"{self.far.url}/repositories/main/{name}", self.lab.auth)
        self.way = TcpProxy(_host(self.lab.urls[0]))
        self.way.start()
        address = f"http://{self.way.host}/repositories/main/{REPOSITORIES[BACK]}"
        _follow(self.far.api, REPOSITORIES[BACK], BACK, address, self.lab.auth)

    def close(self) -> None:
        self.way.stop()
        self.far.close()

    def publish(self) -> None:
        """Publish a version there."""
        format_, number = self.rng.choice(FORMATS), self.next()
        self.far.api.publish(format_, f"line{number % 3}", f"1.0.{number}", f"{LINE}-{format_}")
        self.there.append((format_, f"line{number % 3} 1.0.{number}"))

    def yank(self) -> None:
        """Yank one there."""
        self._change("POST", "/yank", {"reason": f"of step {self.next()}"})

    def unyank(self) -> None:
        """Undo that, or what was not yanked."""
        self._change("POST", "/unyank", {})

    def delete(self) -> None:
        """Delete one there."""
        self._change("DELETE", "", None)

    def check(self) -> Iterator[str]:
        self.way.lead_to(_host(self.lab.urls[0]))
        return iter(())

    def finish(self) -> Iterator[str]:
        self.way.lead_to(_host(self.lab.urls[0]))
        here = self.api()
        for format_ in FORMATS:
            name = f"{LINE}-{format_}"
            # When the last version is there, all events before were read.
            self.far.api.publish(format_, "last", last := f"1.0.{self.next()}", name)
            yield from _compared(self.far.api, here, name, format_, last)
        here.publish(BACK, "last", last := f"1.0.{self.next()}")
        yield from _compared(here, self.far.api, REPOSITORIES[BACK], BACK, last)

    def _change(self, method: str, ending: str, body: object) -> None:
        if not self.there:
            raise Idle
        format_, text = self.rng.choice(self.there)
        name, _, version = text.partition(" ")
        package = quote(package_of(format_, name), safe="")
        place = f"api/package/main%2F{LINE}-{format_}/{package}/versions/{version}{ending}"
        answer = self.far.api.send(method, place, json=body)
        # What was deleted is not there, and some formats have no way to yank.
        assert answer.status_code in (200, 404, 409, 422), f"{method} {place}: {answer.status_code} {answer.text[:200]}"


def _follow(api: Publisher, name: str, format_: str, url: str, auth: tuple[str, str]) -> None:
    """Make a repository that follows the one at an address."""
    route = {"url": url, "name": "there", "auth": {"username": auth[0], "password": auth[1]}}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, "replicate": {"files": ["*"]}, "cache_ttl": "1d"}
    value = {"name": name, "storage": "main", "format": format_, "visibility": "public", "config": config}
    api.ask("POST", "api/repository", json=value)


def _compared(source: Publisher, copy: Publisher, name: str, format_: str, version: str) -> Iterator[str]:
    """Wait until a copy has the last version and nothing left to do, and compare it."""
    last = f"api/package/main%2F{name}/{quote(package_of(format_, 'last'), safe='')}/versions/{version}"
    status = f"api/repository/main%2F{name}/replication"
    _waited(copy, status, lambda: copy.send("GET", last).status_code == 200)
    # Files that failed while the other server was dead are tried again after up to an hour: now, with a comparison.
    copy.send("POST", f"{status}/compare", json={})
    _waited(copy, status, lambda: copy.ask("GET", status).json()["lag_seconds"] == 0)
    first, second = versions_of(source, f"main/{name}"), versions_of(copy, f"main/{name}")
    yield from differences(f"replica of {name}", first, second)
    for each in first.values():
        for path, sha256 in each[3]:
            if not Kept(f"repositories/main/{name}/{path}", sha256).is_there(copy):
                yield f"replica of {name}: {path} is not served"


def _waited(copy: Publisher, status: str, true: Callable[[], bool]) -> None:
    """Wait until a copy is where it should be. :raises AssertionError: it does not come there"""
    ends_at = time.monotonic() + CATCH_UP_S
    while not true():
        assert time.monotonic() < ends_at, f"the replica does not catch up: {copy.ask('GET', status).text}"
        time.sleep(0.1)


def _host(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 80
