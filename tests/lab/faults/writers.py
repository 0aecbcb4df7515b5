"""Writers that publish, delete and restore versions of all formats, and read what they have published."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import requests

from tests.support.first_publishes import REPOSITORIES, Publisher

from .ledger import Item, Ledger, sha256_of

NAMES: Final = 4  # packages of each writer in each format
CHANCES: Final[Mapping[str, float]] = {"publish": 0.7, "delete": 0.12, "restore": 0.08, "read": 0.1}


class Writer:
    """
    One client in a thread, which alone changes its packages; it ends when the server does not answer, or with ``stop``.

    ``wrong`` are responses that no fault explains.
    """

    def __init__(self, number: int, url: str, auth: tuple[str, str], ledger: Ledger, rng: random.Random) -> None:
        self._number = number
        self._step = 0
        self._publisher = Publisher(url, auth)
        self._ledger = ledger
        self._rng = rng
        self._stopped = threading.Event()
        self._there: list[Item] = []
        self._deleted: list[tuple[Item, str]] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def stop(self) -> None:
        """Let the step end that is being done, and no other one begin."""
        self._stopped.set()

    def _run(self) -> None:
        steps: Mapping[str, Callable[[], None]] = {
            "publish": self._publish,
            "delete": self._delete,
            "restore": self._restore,
            "read": self._read,
        }
        while not self._stopped.is_set():
            self._step += 1
            (what,) = self._rng.choices([*CHANCES], [*CHANCES.values()])
            try:
                steps[what]()
                self.counts[what] += 1
            except requests.RequestException:  # there is no server any more
                return
            except AssertionError as error:  # a response other than success
                if not self._stopped.is_set():
                    self.wrong.append(f"{what}: {error}")
                return

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
            self.wrong.append(f"read: {item.file} has other bytes")


def place_of(item: Item) -> str:
    """The address of a version in the API."""
    package = {"maven": f"com.example:{item.name}", "go": f"example.com/{item.name}"}.get(item.format, item.name)
    version = f"v{item.version}" if item.format == "go" else item.version
    repository = quote(f"main/{REPOSITORIES[item.format]}", safe="")
    return f"api/package/{repository}/{quote(package, safe='')}/versions/{quote(version, safe='')}"
