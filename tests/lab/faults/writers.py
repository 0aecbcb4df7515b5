"""Writers that publish, delete and restore versions of all formats, and read what they have published."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from tests.support.first_publishes import REPOSITORIES, Publisher

from .clients import Client
from .ledger import Item, Ledger, sha256_of
from .rounds import AUTH, Complaint, Job, Round

NAMES: Final = 4  # packages of each writer in each format
CHANCES: Final[Mapping[str, float]] = {"publish": 0.7, "delete": 0.12, "restore": 0.08, "read": 0.1}


class Writer(Client):
    """One client, which alone changes its packages."""

    def __init__(self, number: int, url: str, ledger: Ledger, rng: random.Random) -> None:
        super().__init__()
        self._number = number
        self._step = 0
        self._publisher = Publisher(url, AUTH)
        self._ledger = ledger
        self._rng = rng
        self._there: list[Item] = []
        self._deleted: list[tuple[Item, str]] = []
        self.start()

    def _chosen(self) -> str:
        self._step += 1
        return self._rng.choices([*CHANCES], [*CHANCES.values()])[0]

    def _do(self, what: str) -> None:
        steps: Mapping[str, Callable[[], None]] = {
            "publish": self._publish,
            "delete": self._delete,
            "restore": self._restore,
            "read": self._read,
        }
        steps[what]()

    def _publish(self) -> None:
        format_ = self._rng.choice([*REPOSITORIES])
        name = f"lab{self._number}x{self._rng.randrange(NAMES)}"
        version = f"1.{self._number}.{self._step}"
        item = Item(format_, name, version)
        self._ledger.begin("publish", item)
        item = item.published(self._publisher.publish(format_, name, version))
        self._ledger.end("publish", item, there=True)
        self._there.append(item)

    def _delete(self) -> None:
        items = [each for each in self._there if each.format != "docker"]  # whose manifests are deleted by digest
        if not items:
            return
        item = self._rng.choice(items)
        self._there.remove(item)
        self._ledger.begin("delete", item)
        answer = self._publisher.ask("DELETE", place_of(item)).json()
        self._ledger.end("delete", item, there=False)
        self._deleted.append((item, answer["trash"]))

    def _restore(self) -> None:
        if not self._deleted:
            return
        item, entry = self._deleted.pop(self._rng.randrange(len(self._deleted)))
        self._ledger.begin("restore", item)
        self._publisher.ask("POST", f"api/trash/{entry}/restore")
        self._ledger.end("restore", item, there=True)
        self._there.append(item)

    def _read(self) -> None:
        if not self._there:
            return
        item = self._rng.choice(self._there)
        if sha256_of(self._publisher.ask("GET", item.file).content) != item.sha256:
            self.wrong.append(Complaint(f"read: {item.file} has other bytes"))


def package_of(format_: str, name: str) -> str:
    """The whole name of a package."""
    return {"maven": f"com.example:{name}", "go": f"example.com/{name}"}.get(format_, name)


def version_of(format_: str, version: str) -> str:
    """How a format spells a version."""
    return f"v{version}" if format_ == "go" else version


def place_of(item: Item) -> str:
    """The address of a version in the API."""
    package, version = package_of(item.format, item.name), version_of(item.format, item.version)
    repository = quote(f"main/{REPOSITORIES[item.format]}", safe="")
    return f"api/package/{repository}/{quote(package, safe='')}/versions/{quote(version, safe='')}"


def prepare(url: str) -> None:
    """Make the repositories."""
    for format_, name in REPOSITORIES.items():
        Publisher(url, AUTH).create(name, format_)


def begin(round_: Round) -> list[Writer]:
    """The writers of a round, in turn at each server."""
    return [
        Writer(
            round_.number * round_.writers + number,
            round_.urls[number % len(round_.urls)],
            round_.ledger,
            random.Random(round_.rng.random()),
        )
        for number in range(round_.writers)
    ]


WRITING: Final = Job(begin, prepare)
