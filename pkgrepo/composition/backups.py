"""
Backups of a server: what its settings say of them, the parts that make one, and the check of one.

The check is a process of its own, ``pkgrepo restore --check``, with a low priority: it starts a server.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from pkgrepo.composition.processes.children import Child
from pkgrepo.repositories.backup.runs import BackupPlan, BackupRuns
from pkgrepo.repositories.backup.writing import BackupOptions, BackupWriter
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.untrusted.strict_json import ERRORS

from .backup_place import destination_of
from .core import KEY_FILE, Core
from .databases import copy_to_file

SCRATCH: Final = "backup-check"  # folder in the data folder, of what a check needs while it runs


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
        code, output, reason = await Child.run(core.reactor, arguments)
    finally:
        await disk(partial(shutil.rmtree, folder, ignore_errors=True))
    progress.end()
    try:
        proof = msgspec.json.decode(output, type=_Proof)
    except ERRORS:
        return 0, [f"the check could not be made: {reason}"]
    if code and not proof.problems:
        return proof.fetched, [f"the process of the check ended with {code}"]
    return proof.fetched, proof.problems
