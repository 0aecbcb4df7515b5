"""
Fills a server's catalog while the server is down: ``python -m tests.bench.fill WHERE REPOSITORY COUNT [KIND [FIRST]]``.

It is in the data folder WHERE, or in the PostgreSQL database of this address.

The kind is that of the releases, by default the format of the repository. Each package gets one version, those of the
kind ``versions`` are all of one project, and each ten versions a gem or a conda package, through the command in which
uploads end, with its version, index, event and blob row; only the bytes are missing, so that nothing of it can be
downloaded. The readable layout and a channel of wheels are told that they have seen the events, for they could not read
files that are not there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from pkgrepo.composition.databases import AnyCatalog, make_catalog
from pkgrepo.config import Config
from pkgrepo.config.sections.data import Data, Database
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.releases import Release, publish_releases
from pkgrepo.storage.catalog.packages import events, followed_wheels
from pkgrepo.storage.catalog.packages.followed_wheels import Followed
from pkgrepo.storage.catalog.server import repositories, settings
from pkgrepo.storage.catalog.server.layout_pending import CURSOR, MARK
from tests.support.admission import admitted

from .packages.releases import ACTOR, FILLERS

BATCH = 500  # releases to a transaction


def publish_all(
    tx: Transaction, repository: Repository, releases: Sequence[Release], indexer: Indexer, now_ms: int
) -> None:
    """Publish several releases; a write command."""
    publish_releases(tx, repository, releases, admitted(repository, ACTOR), indexer, now_ms)
    seq = events.last_seq(tx)
    settings.put(tx, CURSOR, str(seq))
    settings.put(tx, MARK, str(seq))
    for channel in repositories.companions_of(tx, repository.id):
        followed_wheels.put_followed(tx, channel.id, Followed(seq, converting=True))


def _catalog(where: str, reactor: Any) -> AnyCatalog:
    if "://" in where:
        return make_catalog(Config(database=Database(url=where)), reactor)
    return make_catalog(Config(data=Data(dir=Path(where))), reactor)


async def fill(reactor: Any, where: str, path: str, count: int, kind: str, first: int) -> None:
    """Publish ``count`` releases; the same ones again change nothing."""
    catalog = _catalog(where, reactor)
    await catalog.start()
    try:
        storage, _, name = path.partition("/")
        repository = await catalog.look(repositories.find_by_path, storage, name)
        assert repository is not None, f"there is no repository {path}"
        make, indexer = FILLERS[kind or repository.format]
        for start in range(first, first + count, BATCH):
            releases = [make(number) for number in range(start, min(start + BATCH, first + count))]
            await catalog.write(publish_all, repository, releases, indexer, SystemClock().now_ms())
    finally:
        await catalog.stop()


def main(reactor: Any, where: str, path: str, count: str, kind: str = "", first: str = "0") -> Deferred[None]:
    """Fill the catalog as the command line says."""
    return Deferred.fromCoroutine(fill(reactor, where, path, int(count), kind, int(first)))


if __name__ == "__main__":
    react(main, sys.argv[1:])
