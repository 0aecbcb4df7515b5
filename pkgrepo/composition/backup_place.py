"""Where the settings say that backups lie, and the bytes that are there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pkgrepo.concurrency.pools import Pools
from pkgrepo.config import Config
from pkgrepo.interfaces import IBlobStore
from pkgrepo.repositories.backup.place import open_place
from pkgrepo.s3.places import S3, Destination


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


@asynccontextmanager
async def backed_up(config: Config, pools: Pools) -> AsyncIterator[IBlobStore | None]:
    """
    The blobs of the backups of the settings, to be read; None if these name no place.

    :raises PkgrepoError: there are none, or they cannot be read
    """
    destination = destination_of(config)
    if not destination.address:
        yield None
        return
    scratch = config.data.dir / "backup-reads"
    place = await open_place(
        destination, pools, uid=None, scratch=scratch, low_water=config.data.low_water, writes=False
    )
    try:
        yield place.store
    finally:
        await place.close()
