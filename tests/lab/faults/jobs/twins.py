"""Twins: plain files of a repository, which an export brings up to date also after one that was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from attrs import define, field

from tests.lab.faults.ledger import sha256_of
from tests.support.first_publishes import REPOSITORIES
from tests.support.forked_programs import run_pkgrepo
from tests.support.server_process import clean_environment

from .far import admin_token, run
from .task import Task

FORMATS: Final = ("python", "maven")


@define
class Twins(Task):
    """In the end a twin has the files of the writers, byte for byte, and none that were deleted."""

    name: ClassVar = "twins"
    chance: ClassVar = 0.3  # its steps take seconds
    steps: ClassVar = {"export": 1}

    _token: str = field(default="", init=False)
    _key: Path = field(init=False)

    def prepare(self) -> None:
        api = self.api()
        self._token = admin_token(self.lab, api)
        self._key = self.folder / "key.pem"
        self._key.write_text(api.ask("GET", "api/system/twin-key").json()["key"])

    def export(self) -> None:
        """Bring a twin up to date."""
        self._export(self.rng.choice(FORMATS))

    def finish(self) -> Iterator[str]:
        for format_ in FORMATS:
            self._export(format_)
            place = self.folder / format_
            command = ["twin", "verify", str(place), "--key", str(self._key)]
            done = run_pkgrepo(*command, environ=clean_environment(), folder=self.folder)
            if done.returncode:
                yield f"twin verify of {format_}: {done.stdout}{done.stderr}"
            found = {sha256_of(each.read_bytes()) for each in place.rglob("*") if each.is_file()}
            for state in self.lab.ledger.states():
                item = state.item
                if item.format == format_ and item.sha256 and not state.open and state.there != (item.sha256 in found):
                    yield f"twin: {item} is {'not ' if state.there else ''}there; {self.lab.ledger.history(item)}"

    def _export(self, format_: str) -> None:
        url, folder = self.rng.choice(self.lab.urls), self.folder / format_
        with self.lab.ledger.step("export", format_):
            command = ["export", f"main/{REPOSITORIES[format_]}", str(folder)]
            run(self.lab, self.folder, url, self._token, command)
