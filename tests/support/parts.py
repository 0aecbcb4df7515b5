"""A normaliser of documents with its pools, storage and worker processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet import reactor

from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.normalising import SMALL, Normaliser, Outcome
from pkgrepo.proxy.parts.supervisor import Supervisor
from pkgrepo.proxy.parts.values import Context, Entry
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.blobs.durability import memory_file
from tests.support.blob_stores import FilesystemCase
from tests.support.normalisers import MODULE

URL = "https://upstream.example/p"
PIECE = 64 * 1024


def packument(versions: int, *, pad: int = 0, time: dict[str, int] | None = None) -> bytes:
    """Return a document for the normaliser of that name; each version has ``pad`` more bytes."""
    each = {
        f"{number}.0.0": {
            "version": f"{number}.0.0",
            "pad": "x" * pad,
            "dist": {"tarball": f"{URL}/-/p-{number}.0.0.tgz"},
        }
        for number in range(versions)
    }
    return msgspec.json.encode({"name": "p", "versions": each, "time": time or {}})


async def pieces(document: bytes) -> AsyncIterator[bytes]:
    """Iterate over a document as it comes from an upstream."""
    for start in range(0, len(document), PIECE):
        yield document[start : start + PIECE]


class NormaliserCase:
    """
    ``run`` normalises one document. ``staged`` holds the results.

    ``small`` is that of the normaliser. Other keyword arguments are those of the supervisor of the worker processes.
    """

    def __init__(self, folder: Path, *, small: int = SMALL, **limits: Any) -> None:
        self._case = FilesystemCase(folder)
        self.supervisor = Supervisor(reactor, **limits)
        self.normaliser = Normaliser(self._case.pools, self.supervisor, small=small)
        self.staged: Staged

    async def start(self) -> None:
        self.staged = Staged("main", await self._case.start())

    async def stop(self) -> None:
        await self.supervisor.stop()
        await self.staged.clear()
        await self._case.stop()

    async def run(
        self, document: bytes, function: str = "packument", *, name: str = "p", now_ms: int = 1, **options: Any
    ) -> Outcome:
        return await self.normaliser.run(
            pieces(document), f"{MODULE}:{function}", Context(name, URL), self.staged, now_ms=now_ms, **options
        )

    def descriptor(self, outcome: Outcome) -> int:
        """Return a descriptor of the parts file; the caller closes it."""
        assert outcome.parts is not None
        content = self.staged.content(outcome.parts)
        return memory_file(content) if isinstance(content, bytes) else content

    def entries(self, outcome: Outcome) -> list[Entry]:
        """Return the entries of the parts file."""
        with PartsFile(self.descriptor(outcome)) as parts:
            return list(parts.entries())
