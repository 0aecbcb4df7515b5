"""The blob stores under their contract, and bodies for them. Another implementation is added to ``CASES``."""

import hashlib
import os
from datetime import UTC, datetime

from tests.support.blob_stores import BucketCase, FilesystemCase, open_descriptors
from tests.support.s3_servers import is_installed

CASES = {
    "filesystem": FilesystemCase,
    "filesystem-named": lambda root: FilesystemCase(root, unnamed=False),
    "bucket": BucketCase,
    "bucket-moto": lambda root: BucketCase(root, kind="moto"),
}
SERVER_OF = {"bucket": "versitygw", "bucket-moto": "moto"}


def installed_cases() -> list[str]:
    """Return the cases whose programs are installed, for tests that use several."""
    return sorted(name for name in CASES if name not in SERVER_OF or is_installed(SERVER_OF[name]))


KIB = 1024
LARGEST = 1 << 40  # bytes; no blob has more


FUTURE = datetime(2200, 1, 1, tzinfo=UTC)


SIZES = [0, 1, 255 * KIB, 256 * KIB, 256 * KIB + 1, 3 * 1024 * KIB + 17]


def body_of(size: int) -> bytes:
    return (hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1))[:size]


async def put(store, body: bytes, chunk: int = 64 * KIB, **how):
    async with store.begin(**how) as upload:
        for start in range(0, len(body), chunk):
            upload.write(body[start : start + chunk])
            await upload.drained()
        return await upload.commit()


async def content(store, locator: str) -> bytes:
    return await store.open(locator).read(0, LARGEST)


async def nothing_is_left(store) -> bool:
    """Check that the store has no copy and no unfinished upload, on disk either."""
    return list(await store.scan()) == [] and await store.sweep_uploads(FUTURE, ()) == 0 and not open_descriptors()


async def sealed(store, body: bytes, **how):
    upload = store.begin(**how)
    upload.write(body)
    await upload.drained()
    return upload, await upload.seal()


def read_through(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()
