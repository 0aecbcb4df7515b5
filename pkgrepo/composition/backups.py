"""
Backups of a server: what its settings say of them, the parts that make one, and the check of one.

The check is a process of its own, ``pkgrepo restore --check``, with a low priority: it starts a server.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.config import Config
from pkgrepo.errors import PkgrepoError
from pkgrepo.repositories.backup.place import S3, Destination
from pkgrepo.repositories.backup.runs import BackupPlan, BackupRuns
from pkgrepo.repositories.backup.writing import BackupOptions, BackupWriter
from pkgrepo.repositories.upkeep.jobs import Progress

from .core import KEY_FILE, Core
from .databases import copy_to_file

SCRATCH: Final = "backup-check"  # folder in the data folder, of what a check needs while it runs
MOST_OUTPUT: Final = 1024 * 1024  # bytes of the result of a check, and of its messages
PROGRAM: Final = "import os; os.nice(5); from pkgrepo.cli import main; main()"

log = Logger()


def destination_of(config: Config, address: str | None = None) -> Destination:
    """The place at an address, or at that of the settings; the address is empty if they have none."""
    found, given = config.backup, config.backup.destination if address is None else address
    return Destination(
        address=given if not given or given.startswith(S3) else str(Path(given).absolute()),
        endpoint=found.endpoint,
        region=found.region,
        path_style=found.path_style,
        ca_file=str(found.ca_file or ""),
    )


def make_writer(core: Core) -> BackupWriter:
    """What makes backups of a started core."""
    data = core.config.data
    return BackupWriter(
        core.context,
        copy_catalog=partial(copy_to_file, core.config),
        data=data.dir,
        key=data.dir / KEY_FILE,
        secrets=core.secrets,
        low_water=data.low_water,
    )


def plan_of(core: Core) -> BackupPlan | None:
    """What the settings of a started core say; None without a destination."""
    found, destination = core.config.backup, destination_of(core.config)
    if not destination.address:
        return None
    options = BackupOptions(destination=destination, keep=found.keep, with_key=found.key)
    check = partial(check_backup, core) if found.check else None
    return BackupPlan(options=options, schedule=found.schedule, check=check)


def make_runs(core: Core) -> BackupRuns:
    """The runs of backups of a started core."""
    return BackupRuns(
        catalog=core.catalog, clock=core.clock, jobs=core.jobs, writer=make_writer(core), plan=plan_of(core)
    )


class _Proof(msgspec.Struct):
    """What a check prints: how many files were fetched, and sentences about what is wrong."""

    fetched: int
    problems: list[str]


async def check_backup(
    core: Core, options: BackupOptions, backup_id: str, progress: Progress
) -> tuple[int, Sequence[str]]:
    """
    Check a backup in another process. Returns how many files were fetched, and what is wrong, as sentences.

    A check that could not be made is wrong, too.
    """
    folder = core.config.data.dir / SCRATCH
    disk = core.pools.disk
    place = options.destination
    given = {
        "endpoint": place.endpoint,
        "region": place.region,
        "path_style": str(place.path_style).lower(),
        "ca_file": place.ca_file,
    }
    arguments = [f"--set=backup.{name}={value}" for name, value in given.items() if value]
    arguments += ["restore", place.address, "--check", "--json", f"--backup={backup_id}", f"--scratch={folder}"]
    arguments.append(f"--key-file={core.config.data.dir / KEY_FILE}")
    progress.begin("check by a restore", 0)
    await disk(partial(shutil.rmtree, folder, ignore_errors=True))
    try:
        code, output, messages = await _Child.run(core.reactor, arguments)
    finally:
        await disk(partial(shutil.rmtree, folder, ignore_errors=True))
    progress.end()
    try:
        proof = msgspec.json.decode(output, type=_Proof)
    except msgspec.MsgspecError:
        lines = messages.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1].removeprefix("pkgrepo: ") if lines else f"its process ended with {code}"
        return 0, [f"the check could not be made: {reason}"]
    if code and not proof.problems:
        return proof.fetched, [f"the process of the check ended with {code}"]
    return proof.fetched, proof.problems


class _Child(ProcessProtocol):
    """One run of the command line; cancelling it kills the process."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.messages = bytearray()
        self.ended: Deferred[None] = Deferred(self._cancel)

    @classmethod
    async def run(cls, reactor: Any, arguments: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Returns the exit code (or minus the signal), and what it printed. :raises PkgrepoError: it cannot run"""
        child = cls()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PKGREPO_")}
        command = [sys.executable, "-P", "-c", PROGRAM, *arguments]
        try:
            reactor.spawnProcess(child, sys.executable, command, env=environ)
        except OSError as error:
            raise PkgrepoError(f"the check cannot be started: {error.strerror}") from error
        await child.ended
        return child.code, bytes(child.output), bytes(child.messages)

    def outReceived(self, data: bytes) -> None:
        """Keep what it prints."""
        self.output += data[: MOST_OUTPUT - len(self.output)]

    def errReceived(self, data: bytes) -> None:
        """Keep the last of its messages."""
        self.messages = (self.messages + data)[-MOST_OUTPUT:]

    def processEnded(self, reason: Failure) -> None:
        """Note how it ended."""
        status: Any = reason.value
        self.code = -status.signal if status.signal else status.exitCode or 0
        if not self.ended.called:
            self.ended.callback(None)

    def _cancel(self, ended: Deferred[None]) -> None:
        transport: IProcessTransport | None = self.transport
        if transport is not None:
            transport.signalProcess("KILL")
        ended.errback(CancelledError())
