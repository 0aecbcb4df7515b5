"""
A process that starts a catalog of the made-up next version, and may be held within the upgrade.

``python -m tests.support.migration_child PLACE HELD``: PLACE is a file of SQLite, or the address of a PostgreSQL
database. It prints ``beginning``, ``within`` where it waits for a byte of standard input, and ``upgraded``. HELD is
``copy`` (when the copy of the older catalog is written), ``step`` (in the middle of the last step) or ``nowhere``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import apsw
from twisted.internet import reactor, task

from pkgrepo.storage.catalog.engine import schema
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog
from tests.support.next_schema import NEXT


def say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


def wait() -> None:
    say("within")
    os.read(0, 1)


def hold(where: str) -> None:
    """Wait there in upgrades of SQLite."""
    fsync_path = schema.fsync_path

    def wait_and_fsync(path: Path) -> None:
        if path.name.endswith(".unfinished"):
            wait()
        fsync_path(path)

    def add_function(connection: apsw.Connection) -> None:
        connection.create_scalar_function("wait_within", wait if where == "step" else lambda: None, 0)

    if where == "copy":
        schema.fsync_path = wait_and_fsync
    apsw.connection_hooks.append(add_function)


async def main(place: str, where: str) -> None:
    hold(where)
    catalog: Any
    if place.startswith("/"):
        catalog = SqliteCatalog(Path(place), reactor=reactor, schema=NEXT)
    else:
        catalog = PostgresCatalog(Address(place), reactor=reactor, schema=NEXT)
    say("beginning")
    await catalog.start()
    say("upgraded")
    await catalog.stop()


if __name__ == "__main__":
    task.react(lambda _reactor: task.ensureDeferred(main(*sys.argv[1:])))
