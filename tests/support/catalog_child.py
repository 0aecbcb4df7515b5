"""
A process that publishes into a catalog until it is killed, and prints what the catalog acknowledged.

``python -m tests.support.catalog_child ROOT NAME`` writes one JSON line to standard output for every write that was
answered: the path of the file, or the error. With a further argument a publisher ends at its first error.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from twisted.internet import task
from twisted.internet.defer import Deferred, ensureDeferred, gatherResults

from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from tests.support.catalogs import NOW, SqliteCase, add_repository, publish

PUBLISHERS = 6


def say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def ensure_repository(tx: Transaction) -> Repository:
    return repositories.find_by_path(tx, "main", "py") or add_repository(tx)


def publish_whole(tx: Transaction, repository: Repository, path: str) -> None:
    """Add related rows to several tables."""
    file = publish(tx, repository, path, package=path.split("/", maxsplit=1)[0], version=path)
    repositories.bump_serial(tx, repository.id)
    repositories.add_usage(tx, repository.id, Usage(file.size))
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=file.package_id,
        package_key="",
        version_key=path,
        kind="published",
        data={},
        actor=SYSTEM,
        now_ms=NOW,
    )


async def fill(catalog: SqliteCatalog, repository: Repository, name: str) -> None:
    number = 0
    while True:
        path = f"{name}/{number}"
        number += 1
        try:
            await catalog.write(publish_whole, repository, path)
        except PkgrepoError as error:
            say(error=type(error).__name__, path=path)
            if len(sys.argv) > 3:
                return
        else:
            say(path=path)


async def main() -> None:
    catalog = await SqliteCase(Path(sys.argv[1])).another()
    repository = await catalog.write(ensure_repository)
    say(started=os.getpid())
    await gatherResults(
        [ensureDeferred(fill(catalog, repository, f"{sys.argv[2]}{n}")) for n in range(PUBLISHERS)],
        consumeErrors=True,
    )
    say(ended=True)
    await Deferred()  # until the process is killed


if __name__ == "__main__":
    task.react(lambda _: ensureDeferred(main()))
