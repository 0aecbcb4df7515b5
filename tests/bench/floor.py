"""
The floor of a publish: a bare Twisted program that hashes a body, makes a file durable and commits one row.

It parses nothing, asks no rule, and has no documents: what a registry costs above it is what it does for its users. The
files and rows of requests that arrive together share their waits for the disk, in one thread. Run it with the project's
interpreter: ``python -m tests.bench.floor PORT FOLDER``.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue

import apsw
from attrs import frozen
from twisted.internet import reactor
from twisted.internet.interfaces import IReactorFromThreads, IReactorTCP
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from tests.bench.contestants.server import LOOPBACK

TOGETHER = 64  # files of one commit


@frozen
class _Put:
    """A request whose body is hashed."""

    request: Request
    path: str
    body: bytes
    digest: str


class _Committer:
    """Writes files and rows on a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "files"
        self._files.mkdir()
        self._database = folder / "rows.sqlite"
        self.queue: SimpleQueue[_Put] = SimpleQueue()
        self.paths: dict[str, str] = {}  # what was committed, by path; written by the reactor's thread
        threading.Thread(target=self._run, daemon=True).start()

    def file(self, digest: str) -> Path:
        return self._files / digest

    def _run(self) -> None:
        connection = apsw.Connection(str(self._database))
        for name, value in (("journal_mode", "wal"), ("synchronous", "full")):
            connection.pragma(name, value)
        connection.execute("CREATE TABLE file (path TEXT PRIMARY KEY, digest TEXT, size INTEGER)")
        while True:
            batch = [self.queue.get()]
            try:
                while len(batch) < TOGETHER:
                    batch.append(self.queue.get_nowait())
            except Empty:
                pass
            for each in batch:
                self._store(each)
            folder = os.open(self._files, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO file VALUES (?, ?, ?)",
                    [(each.path, each.digest, len(each.body)) for each in batch],
                )
            IReactorFromThreads(reactor).callFromThread(self._answer, batch)

    def _store(self, put: _Put) -> None:
        draft = self.file(f"{put.digest}.new")
        descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(descriptor, put.body)
        os.fdatasync(descriptor)
        os.close(descriptor)
        draft.rename(self.file(put.digest))

    def _answer(self, batch: Sequence[_Put]) -> None:
        for each in batch:
            self.paths[each.path] = each.digest
            each.request.setResponseCode(201)
            each.request.finish()


class _Files(Resource):
    isLeaf = True

    def __init__(self, committer: _Committer) -> None:
        super().__init__()
        self._committer = committer

    def render_PUT(self, request: Request) -> int:
        """Take a file."""
        assert request.content is not None
        body = request.content.read()
        self._committer.queue.put(_Put(request, request.path.decode(), body, sha256(body).hexdigest()))
        return NOT_DONE_YET

    def render_GET(self, request: Request) -> bytes:
        """Give it."""
        digest = self._committer.paths.get(request.path.decode())
        if digest is None:
            request.setResponseCode(404)
            return b""
        return self._committer.file(digest).read_bytes()


def main(port: str, folder: str) -> None:
    """Serve until a signal comes."""
    site = Site(_Files(_Committer(Path(folder))))
    IReactorTCP(reactor).listenTCP(int(port), site, interface=LOOPBACK)
    reactor.run()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(*sys.argv[1:])
