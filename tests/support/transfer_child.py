"""
A process that transfers one file of an upstream until it is killed.

``python -m tests.support.transfer_child ROOT URL unnamed|named`` prints ``arriving`` when a reader has the beginning,
and ``recording`` when the file is verified; it is never recorded.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from twisted.internet import reactor, task
from twisted.internet.defer import Deferred, ensureDeferred

from pkgrepo.model import ReadLimits
from pkgrepo.proxy.transfers.download import Download
from pkgrepo.proxy.transfers.receiving import Context
from pkgrepo.proxy.transfers.running import Transfers
from tests.server.proxy.conftest import Scene
from tests.support.repositories import RepositoryServices, started_pools


async def main(root: str, url: str, kind: str) -> None:
    services = RepositoryServices(Path(root), started_pools())
    await services.start()
    services.store._unnamed = services.store._unnamed and kind == "unnamed"
    upstream = Scene().upstream(url)

    async def record(*_: Any) -> Any:
        os.write(1, b"recording\n")
        await Deferred()

    download = Download(
        route="main",
        open=lambda fields: upstream.open("GET", "file", fields, limits=ReadLimits(1 << 30)),
        stage=lambda: services.content.stage(services.repository),
        record=record,
    )
    transfer = Transfers(Context(reactor=reactor)).get(1, "file", lambda: download)
    body = await transfer.content()
    os.write(1, b"arriving\n")
    await Deferred()
    del body


if __name__ == "__main__":
    task.react(lambda _: ensureDeferred(main(*sys.argv[1:4])))
