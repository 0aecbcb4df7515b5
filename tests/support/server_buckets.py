"""Runs servers whose default storage is in a bucket: each data folder has a prefix of its own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from uuid import uuid4

from pkgrepo.s3.places import BucketPlace
from tests.support.s3_servers import BUCKET, KEY, REGION

ENDPOINT: list[str] = []  # of the server in use, if any
OBJECTS: list[Path] = []  # the folder of its objects, in the process that has started it


def use_s3(endpoint: str, objects: Path | None = None) -> None:
    """Patch this process so that every server made from now on gets its default storage on this S3 server."""
    import botocore.auth
    import botocore.session  # noqa: F401 - takes a second, which forks need not

    from pkgrepo.startup import provisioning
    from pkgrepo.storage.buckets import KIND
    from pkgrepo.storage.catalog.server import storages

    ENDPOINT[:] = [endpoint]
    OBJECTS[:] = [] if objects is None else [objects]
    ensure_storages = provisioning.ensure_storages

    async def ensure(core: Any, config: Any, **options: Any) -> None:
        name = provisioning.DEFAULT_STORAGE
        if await core.catalog.look(storages.find_storage, name) is None:
            place, uid = place_of(endpoint, config.data.dir), str(uuid4())
            await (await core.buckets.make(name, place, uid)).stop()
            settings = core.buckets.settings(place)
            await core.catalog.write(
                storages.add_storage, name=name, kind=KIND, settings=settings, now_ms=core.clock.now_ms(), uid=uid
            )
        await ensure_storages(core, config, **options)

    provisioning.ensure_storages = ensure  # type: ignore[assignment]


def place_of(endpoint: str, folder: Path) -> BucketPlace:
    """Return where the default storage of a data folder is."""
    prefix = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]
    return BucketPlace(endpoint=endpoint, bucket=BUCKET, region=REGION, prefix=f"{prefix}/", key=KEY)
