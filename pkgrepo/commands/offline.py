"""
Commands that open the catalog and the blob stores themselves, without serving.

A server may run at the same time: several processes may use one catalog.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from pkgrepo.client.terminal import fail, run_alone
from pkgrepo.composition.core import Core
from pkgrepo.config import Config
from pkgrepo.sentences import sentence_of
from pkgrepo.storage.folders import StoragesFile
from pkgrepo.storage.process_lock import NAME, ProcessLock

# systemd.exec(5): the state folder of a dynamic user is below /var/lib/private, which only root may enter. Units that
# name one dynamic user share its id and see the folder where the service sees it.
_DYNAMIC_USER = (
    "Where systemd made the user (DynamicUser=yes), this runs the command as the service: systemd-run --pipe --wait "
    "--property=DynamicUser=yes --property=User=pkgrepo --property=StateDirectory=pkgrepo pkgrepo ..."
)


def run_offline(config: Config, work: Callable[[Core], Awaitable[None]]) -> NoReturn:
    """Run ``work`` with a started core and end the program; errors are printed and decide the exit code."""
    check_owner(config.data.dir)

    async def run(reactor: Any) -> None:
        core = Core(config, reactor)
        await core.start()
        try:
            await work(core)
        finally:
            await core.stop()

    run_alone(run)


def run_on_existing(config: Config, work: Callable[[Core], Awaitable[None]], advice: str = "") -> NoReturn:
    """
    Like ``run_offline``, but refuse to create a catalog: a folder without one is most likely the wrong folder.

    The ``advice`` is then printed, too.
    """
    check_catalog(config, advice)
    run_offline(config, work)


def check_catalog(config: Config, advice: str = "") -> None:
    """Exit with code 3 if there is no catalog in the data folder."""
    check_owner(config.data.dir)
    if config.database_path is not None and not config.database_path.exists():
        found = f"there is no catalog at {config.database_path}; data.dir is {config.data.dir}"
        fail(". ".join(filter(None, (found, advice))), 3)


def check_owner(folder: Path) -> None:
    """
    Continue as the user of the server, or exit: the owner of its lock file, or else of the folder.

    Files created here by another user would lock the server out of its own data. Root becomes this user for the rest of
    the process; another user gets an error that says which user has to run this. A volume of Kubernetes belongs to
    root, and its group is that of the server (fsGroup).
    """
    try:
        found = folder.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        fail(sentence_of(error), 1)
    if not stat.S_ISDIR(found.st_mode):
        fail(f"{folder} (data.dir) is no folder", 2)
    with suppress(OSError):
        found = (folder / NAME).stat()
    if found.st_uid == os.geteuid():
        return
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid in {os.getegid(), *os.getgroups()}
    if found.st_uid == 0 and by_group and os.geteuid() != 0:  # before the first start
        return
    if os.geteuid() != 0:
        fail(f"{folder} belongs to the user with id {found.st_uid}; run this as that user", 4)
    os.setgroups([])
    os.setresgid(found.st_gid, found.st_gid, found.st_gid)
    os.setresuid(found.st_uid, found.st_uid, found.st_uid)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fail(f"the user with id {found.st_uid}, to whom {folder} belongs, cannot reach it. {_DYNAMIC_USER}", 4)


def check_unused(config: Config) -> None:
    """Exit with code 5 if a process uses the folder of a storage."""
    for each in StoragesFile(config.data.dir).list():
        if ProcessLock(config.data.dir / each.path).is_locked():
            fail(f"a server uses storage {each.name}: stop it first", 5)
