"""One server with two workers on SQLite, whose data are on a disk of their own."""

from __future__ import annotations

import random
import resource
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from pkgrepo.storage.blobs.filesystem import CAPACITY_AGE_S
from tests.lab.faults.nemesis.clocks import WHY_NONE, Clock
from tests.lab.faults.nemesis.disks import INJECTIONS, Site, cannot_trace, full, injected, site
from tests.lab.faults.nemesis.pairs import pairs
from tests.lab.faults.nemesis.processes import (
    WORKER,
    freeze,
    highest_descriptor,
    kill_all,
    kill_worker,
    kill_workers,
    limited,
    processes_of,
    thaw,
)
from tests.support import server_process
from tests.support.data_folder import DataFolder, environment_of, pkgrepo, wait_for
from tests.support.forked_programs import ForkedProcess
from tests.support.ports import closed_port
from tests.support.server_process import ServerProcess, twistd_process
from tests.support.timeouts import TIMEOUT_S

from .estate import Engine, Fault, Written, wait_until_ready

PAUSE_S: Final = (0.2, 2.0)
FAILING_S: Final = (0.5, 1.5)  # how long calls fail
CLOCK_S: Final = (30.0, 7200.0)  # by how much the clock is put forward and back; nothing expires so soon
SHORT: Final = (100, 5_000, 100_000, 1_000_000)  # bytes that files may have, beyond which writes are short


class OneServer:
    """See L{Estate}. Its data are below the site."""

    def __init__(self, folder: Path, site: Site, configuration: str) -> None:
        (folder / "pkgrepo.toml").write_text(configuration)
        self._folder = folder
        self._site = site
        self.data: DataFolder = DataFolder(site.folder / "data")
        self._clock = None if WHY_NONE else Clock(folder)
        self._listen = f"tcp:{(port := closed_port())}:interface=127.0.0.1"
        self.urls = [f"http://127.0.0.1:{port}"]
        self._written = Written()
        self._server = self._started()
        self._is_dead = False
        self.left_out = [each for each in (site.why, cannot_trace(), WHY_NONE) if each]
        self.faults = self._every_fault()

    def _every_fault(self) -> list[Fault]:
        cuts = [Fault("power cut", 30, self._cut_power, is_deadly=True)]
        disks = [Fault("full disk", 4, self._fill, is_told=True)]
        calls = [Fault(name, 2, partial(self._inject, how), is_told=True) for name, how in INJECTIONS.items()]
        clock = [Fault("clock put forward and back", 2, self._put_clock)]
        every = [
            Fault("kill -9 of the server", 60, self._kill_server, is_deadly=True),
            Fault(WORKER, 10, self._kill_worker),
            Fault("one worker after the other", 45, self._kill_workers),
            Fault("all processes stopped for some time", 6, self._pause),
            Fault("restart", 6, self._stop, is_deadly=True),
            Fault("kill -9 of pkgrepo migrate", 4, self._kill_migration, is_deadly=True),
            Fault("no descriptors left", 4, self._take_descriptors, is_told=True),
            Fault("short writes", 4, self._shorten, is_told=True),
            *([] if self._site.cut is None else [*cuts, *disks]),
            *([] if cannot_trace() else calls),
            *([] if WHY_NONE else clock),
        ]
        return [*every, *pairs(self, every, two=10, deaths=40)]

    def begin(self) -> None:
        if self._is_dead:
            self._server, self._is_dead = self._started(), False

    def mend(self, after: Fault | None = None) -> None:
        self.begin()
        try:
            self._server.wait_ready()
        except AssertionError:
            if after is None or not after.is_told:
                raise
            self._server = self._started()
            self._server.wait_ready()
        wait_until_ready(self.urls[0])

    def settle(self) -> None:
        pass

    def said(self, after: Fault) -> list[str]:
        return self._written.tracebacks(after)

    def outputs(self) -> list[str]:
        return self._written.every()

    def renew(self) -> None:
        self._server.stop()
        self._is_dead = True
        self.mend()

    def end(self) -> list[str]:
        wait_for(self.data.is_tidy, self._server)
        wait_for(self.data.is_in_step, self._server)
        self._server.stop()
        done = pkgrepo(self.data, "verify")
        return [f"pkgrepo verify: {done.stdout}{done.stderr}"] if done.returncode else []

    def close(self) -> None:
        """Kill what runs."""
        kill_all(self._server)

    def _started(self, environ: Mapping[str, str] | None = None) -> ServerProcess:
        variables = {"PKGREPO_DATA__DIR": str(self.data.folder), "PKGREPO_SERVER__LISTEN": self._listen}
        settings = {**variables, **(environ or {})}
        write = self._written.lines.append
        return twistd_process(self._folder, "--config", "pkgrepo.toml", environ=settings, on_line=write)

    def _kill_server(self, _rng: random.Random) -> None:
        """SIGKILL to the master and all processes below it."""
        kill_all(self._server)
        self._is_dead = True

    def _kill_worker(self, rng: random.Random) -> None:
        kill_worker(self._server, rng)

    def _kill_workers(self, rng: random.Random) -> list[str]:
        return kill_workers([self._server], rng)

    def _pause(self, rng: random.Random) -> None:
        """SIGSTOP to all processes for some time."""
        freeze(self._server)
        time.sleep(rng.uniform(*PAUSE_S))
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

    def _kill_migration(self, rng: random.Random) -> None:
        """Kill the server, and then what an administrator runs before the next start."""
        self._kill_server(rng)
        with open("/dev/null", "r+b") as nothing:
            streams = (nothing.fileno(), nothing.fileno(), nothing.fileno())
            environ = environment_of(self.data)
            command = ForkedProcess(["pkgrepo", "migrate"], streams, environ=environ, folder=self._folder)
        time.sleep(rng.uniform(0, 0.6))
        command.send_signal(signal.SIGKILL)
        command.wait(TIMEOUT_S)

    def _fill(self, rng: random.Random) -> None:
        """No byte is left on the disk for some time."""
        with full(self._site.folder):
            time.sleep(rng.uniform(*FAILING_S))
        time.sleep(CAPACITY_AGE_S)  # what servers know of the disk may be that old, so that they refuse uploads

    def _inject(self, injection: str, rng: random.Random) -> None:
        """System calls of all processes fail for some time."""
        with injected(processes_of(self._server), injection):
            time.sleep(rng.uniform(*FAILING_S))

    def _take_descriptors(self, rng: random.Random) -> None:
        """No process can open more than a few files for some time."""
        pids = processes_of(self._server)
        free = rng.randrange(4)
        with limited(self._server, resource.RLIMIT_NOFILE, [(pid, highest_descriptor(pid) + 1 + free) for pid in pids]):
            time.sleep(rng.uniform(*FAILING_S))

    def _shorten(self, rng: random.Random) -> None:
        """Writes beyond a size are short, and then fail with EFBIG, for some time."""
        size = rng.choice(SHORT)
        with limited(self._server, resource.RLIMIT_FSIZE, [(pid, size) for pid in processes_of(self._server)]):
            time.sleep(rng.uniform(*FAILING_S))

    def _put_clock(self, rng: random.Random) -> None:
        """Restart with a clock that is put forward and back while it runs; the next start has the machine's again."""
        clock = self._clock
        assert clock is not None
        self._server.stop()
        clock.put(0)
        self._server = self._started(clock.environ)
        self._server.wait_ready()
        for sign in rng.sample((-1, 1), 2):
            time.sleep(rng.uniform(*FAILING_S))
            clock.put(sign * rng.uniform(*CLOCK_S))
        time.sleep(rng.uniform(*FAILING_S))
        clock.put(0)


@contextmanager
def one_server(folder: Path, configuration: str) -> Iterator[OneServer]:
    """Run a server in a new folder."""
    server_process.WORKERS[0] = "2"
    with site(folder) as place:
        server = OneServer(folder, place, configuration)
        try:
            server.mend()
            yield server
        finally:
            server.close()


SQLITE: Final = Engine("sqlite", "one server with two workers, SQLite", one_server)
