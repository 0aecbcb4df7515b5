"""One server with two workers on SQLite, whose data are on a disk of their own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.lab.faults.nemesis import LONGEST_PAUSE_S, Site, freeze, kill_all, site, thaw
from tests.support import server_process
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.server_process import ServerProcess, restarts
from tests.support.workers import kill, workers_of

from .estate import Engine, Fault


class OneServer:
    """See L{Estate}. ``start`` starts a server on the data below the site."""

    def __init__(self, start: Callable[[], ServerProcess], site: Site) -> None:
        self._start = start
        self._site = site
        self._server = start()
        self._is_dead = False
        self.left_out = [site.why] if site.why else []
        self.faults = [
            Fault("kill -9 of the server", 10, self._kill_server),
            Fault("kill -9 of a worker", 4, self._kill_worker),
            Fault("all processes stopped for some time", 1, self._pause),
            *([] if site.cut is None else [Fault("power cut", 4, self._cut_power)]),
            Fault("restart", 1, self._stop),
        ]

    @property
    def urls(self) -> list[str]:
        return [self._server.url]

    def mend(self) -> bool:
        was_dead, self._is_dead = self._is_dead, False
        if was_dead:
            self._server = self._start()
        return was_dead

    def end(self) -> list[str]:
        data = DataFolder(self._site.folder / "data")
        wait_for(data.is_tidy, self._server)
        wait_for(data.is_in_step, self._server)
        self._server.stop()
        done = pkgrepo(data, "verify")
        return [f"pkgrepo verify: {done.stdout}{done.stderr}"] if done.returncode else []

    def _kill_server(self, _rng: random.Random) -> None:
        """SIGKILL to the master and all processes below it."""
        kill_all(self._server)
        self._is_dead = True

    def _kill_worker(self, rng: random.Random) -> None:
        """SIGKILL to one worker, in whose place the master starts another one."""
        if found := workers_of(self._server.pid):
            kill(rng.choice(found))

    def _pause(self, rng: random.Random) -> None:
        """SIGSTOP to all processes for some time."""
        freeze(self._server)
        time.sleep(rng.uniform(0.2, LONGEST_PAUSE_S))
        thaw(self._server)

    def _cut_power(self, _rng: random.Random) -> None:
        """Stop all processes, discard what was not synced, and mount the disk again."""
        assert self._site.cut is not None
        freeze(self._server)
        kill_all(self._server)  # what they wrote is in memory only: the disk has what was synced
        self._site.cut()
        self._is_dead = True

    def _stop(self, _rng: random.Random) -> None:
        """SIGTERM, as a service manager sends it."""
        self._server.stop()
        self._is_dead = True


@contextmanager
def one_server(folder: Path, configuration: str) -> Iterator[OneServer]:
    """Run a server in a new folder."""
    server_process.WORKERS[0] = "2"
    with site(folder) as place:
        environ = {"PKGREPO_DATA__DIR": str(place.folder / "data")}
        with restarts(folder, configuration, environ) as start:
            yield OneServer(start, place)


SQLITE: Final = Engine("sqlite", "SQLite, two workers", one_server)
