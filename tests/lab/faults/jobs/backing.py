"""Backups while clients write: each that is acknowledged was proved, and has what was acknowledged before it began."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import ClassVar, Final

import apsw
from attrs import define

from tests.lab.faults.clients import Idle
from tests.support.forked_programs import run_pkgrepo
from tests.support.server_process import clean_environment

from .task import Task

LAST_S: Final = 180  # in which the last backup has to be made
SOUND: Final = "0 missing, 0 damaged"


@define
class Backing(Task):
    """In the end another one is made and restored, and compared with the ledger."""

    name: ClassVar = "backups"
    chance: ClassVar = 0.5  # its steps take seconds
    steps: ClassVar = {"back_up": 1}

    @staticmethod
    def settings(folder: Path) -> str:
        return f'backup.destination = "{folder / "backups"}"\nbackup.keep = 3\n'

    def prepare(self) -> None:
        """Nothing."""

    def back_up(self) -> None:
        """Make a backup."""
        with self.lab.ledger.step("back up", "backup"):
            answer = self.api().send("POST", "api/system/backup?wait=3", json={})
            # 409: one that began before a fault holds its lease for a while
            assert answer.status_code in (200, 202, 409), f"backup: {answer.status_code} {answer.text[:300]}"
            if answer.status_code != 200:
                raise Idle

    def finish(self) -> Iterator[str]:
        ends_at = time.monotonic() + LAST_S
        while (began_at := time.monotonic()) < ends_at:
            answer = self.api().send("POST", "api/system/backup?wait=120", json={})
            if answer.status_code != 409:  # the lease of one that a fault ended
                break
            time.sleep(1)
        if answer.status_code != 200:
            yield f"the last backup: {answer.status_code} {answer.text[:300]}"
            return
        place, new = str(self.folder / "backups"), self.folder / f"new{self.next()}"
        checked = self._pkgrepo(new, "restore", place, "--check", "--json", "--scratch", str(self.folder))
        if checked[0] or json.loads(checked[1])["problems"]:
            yield f"the check of the last backup: {checked}"
        restored = self._pkgrepo(new, "restore", place, "--into", str(new))
        if restored[0]:
            yield f"the restore of the last backup: {restored}"
            return
        with closing(apsw.Connection(str(new / "pkgrepo.db"))) as catalog:
            rows = catalog.execute("SELECT path, sha256 FROM file UNION SELECT digest, sha256 FROM manifest")
            found = {bytes(sha256).hex() for _, sha256 in rows}
        for state in self.lab.ledger.states():
            if state.there and not state.open and state.since < began_at and state.item.sha256 not in found:
                yield f"the last backup lacks {state.item}, which was acknowledged before it began"
        verified = self._pkgrepo(new, "verify")
        if SOUND not in verified[1]:  # the readable layout is in no backup
            yield f"verify of what was restored: {verified}"

    def _pkgrepo(self, data: Path, *arguments: str) -> tuple[int, str, str]:
        environ = clean_environment(PKGREPO_DATA__DIR=str(data))
        done = run_pkgrepo(*arguments, environ=environ, folder=self.folder)
        return done.returncode, done.stdout, done.stderr[-2000:]
