"""
A process that writes blobs into a store until it is killed, and prints what the store acknowledged.

``python -m tests.support.blob_child ROOT unnamed|named`` writes one JSON line to standard output for every ``commit``
or ``suspend`` that returned. A third argument is the number of blobs after which it ends.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

from twisted.internet import reactor, task
from twisted.internet.defer import ensureDeferred, gatherResults

from pkgrepo.errors import PkgrepoError
from tests.support.blob_stores import FilesystemCase

SIZES = [100, 300_000, 20_000, 1_500_000]


def say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


async def fill(store, numbers) -> None:
    for n in numbers:
        try:
            async with store.begin(expect_size=SIZES[n % 4]) as upload:
                upload.write(os.urandom(SIZES[n % 4] // 2))
                await upload.drained()
                upload.write(os.urandom(SIZES[n % 4] - SIZES[n % 4] // 2))
                if n % 3 == 2:
                    state = await upload.suspend()
                    say(upload=upload.id, state=state.decode(), size=SIZES[n % 4])
                else:
                    info = await upload.commit()
                    say(locator=info.locator, sha256=info.sha256, size=info.size)
        except PkgrepoError as error:
            say(error=type(error).__name__)


async def main(_) -> None:
    case = FilesystemCase(Path(sys.argv[1]), unnamed=sys.argv[2] == "unnamed")
    store = await case.start()
    numbers = iter(range(int(sys.argv[3]))) if len(sys.argv) > 3 else itertools.count()
    say(started=os.getpid())
    await gatherResults([ensureDeferred(fill(store, numbers)) for _ in range(4)], consumeErrors=True)
    await case.stop()


if __name__ == "__main__":
    task.react(lambda _: ensureDeferred(main(reactor)))
