"""A blob store: whatever is begun, suspended, resumed, committed and swept in any order, committed bytes are there."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pkgrepo.errors import BlobMissing, DigestMismatch, SizeMismatch, TooLarge
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from tests.support.repositories import InlinePools, now

FUTURE = datetime(2200, 1, 1, tzinfo=UTC)
PIECES = st.sampled_from([b"", b"a", b"bc" * 700, b"d" * 300_000])
LIMIT = 1_000_000  # bytes


@define(eq=False)
class Open:
    """An upload that a worker holds, and the bytes that it was given."""

    worker: int
    upload: Any
    body: bytes


@define(eq=False)
class Suspended:
    """An upload between two requests: its state, and the bytes before that."""

    id: str
    state: bytes
    body: bytes


class BlobMachine(RuleBasedStateMachine):
    """
    Two workers over one storage.

    ``open_store`` makes another store object, and ``run`` waits for a coroutine; both are those of a folder without
    threads, and others for the contract suite.
    """

    def open_store(self) -> Any:
        store = FilesystemBlobStore(
            self.folder / "store", name="main", pools=self.pools, uid="storage", low_water=0, fsync="never"
        )
        now(store.start())
        return store

    def run(self, work: Awaitable[Any]) -> Any:
        return now(work)  # type: ignore[arg-type]

    @initialize()
    def begin_storage(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.pools: Any = InlinePools()
        self.stores = [self.open_store(), self.open_store()]
        self.open: list[Open] = []
        self.suspended: list[Suspended] = []
        self.stored: dict[str, bytes] = {}  # by locator

    def teardown(self) -> None:
        for each in getattr(self, "open", ()):
            self.run(each.upload.abort())
        if hasattr(self, "temporary"):
            self.temporary.cleanup()

    @rule(worker=st.integers(0, 1), sized=st.booleans())
    def begin(self, worker: int, sized: bool) -> None:
        upload = self.stores[worker].begin(10 if sized else None, ("sha512",), LIMIT)
        self.open.append(Open(worker, upload, b""))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99), piece=PIECES)
    def write(self, which: int, piece: bytes) -> None:
        each = self.open[which % len(self.open)]
        try:
            each.upload.write(piece)
        except TooLarge:
            assert len(each.body) + len(piece) > LIMIT, "less than the limit was refused"
            self.open.remove(each)
            self.run(each.upload.abort())
            return
        each.body += piece
        assert each.upload.offset == len(each.body) <= LIMIT
        self.run(each.upload.drained())

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99))
    def suspend(self, which: int) -> None:
        each = self.open.pop(which % len(self.open))
        state = self.run(each.upload.suspend())
        assert len(state) <= 4096
        self.suspended.append(Suspended(each.upload.id, state, each.body))

    @precondition(lambda self: self.suspended)
    @rule(which=st.integers(0, 99), worker=st.integers(0, 1), lost=st.sampled_from([b"", b"", b"never acknowledged"]))
    def resume(self, which: int, worker: int, lost: bytes) -> None:
        """Perhaps after a request that wrote more, and whose response was lost: it goes on at the former state."""
        each = self.suspended[which % len(self.suspended)]
        if lost:
            unheard = self.run(self.stores[1 - worker].resume(each.id, each.state))
            unheard.write(lost)
            self.run(unheard.suspend())
        self.suspended.remove(each)
        upload = self.run(self.stores[worker].resume(each.id, each.state))
        assert upload.offset == len(each.body)
        self.open.append(Open(worker, upload, each.body))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99), wrong=st.sampled_from(["", "", "digest", "size"]))
    def commit(self, which: int, wrong: str) -> None:
        each = self.open.pop(which % len(self.open))
        # The limit of an upload holds for one request: a resumed one may have been begun by another.
        expected = {"sha256": hashlib.sha256(each.body + (b"x" if wrong == "digest" else b"")).hexdigest()}
        try:
            info = self.run(each.upload.commit(expected, size=len(each.body) + (wrong == "size")))
        except (DigestMismatch, SizeMismatch):
            assert wrong, "right bytes were refused"
            self.run(each.upload.abort())
            return
        assert not wrong, "wrong bytes were taken"
        self._note(info, each.body)

    @precondition(lambda self: len(self.open) > 1)
    @rule(count=st.integers(2, 4))
    def commit_together(self, count: int) -> None:
        """Those of one store, as publishes of one moment are."""
        worker = self.open[0].worker
        some = [each for each in self.open if each.worker == worker][:count]
        infos = [self.run(each.upload.seal()) for each in some]
        self.run(self.stores[worker].commit_together([each.upload for each in some]))
        for each, info in zip(some, infos, strict=True):
            self.open.remove(each)
            self._note(info, each.body)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 99))
    def abort(self, which: int) -> None:
        each = self.open.pop(which % len(self.open))
        self.run(each.upload.abort())
        self.run(each.upload.abort())

    @precondition(lambda self: self.stored)
    @rule(which=st.integers(0, 99), worker=st.integers(0, 1))
    def delete(self, which: int, worker: int) -> None:
        locator = sorted(self.stored)[which % len(self.stored)]
        body = self.stored.pop(locator)
        store = self.stores[worker]
        reader = store.open(locator)
        self.run(store.delete(locator))
        self.run(store.delete(locator))  # no error
        if store.has_files:
            assert self.run(reader.read(0, LIMIT * 2)) == body, "an open reader finishes"
        assert self.run(store.stat(locator)) is None

    @rule(kept=st.booleans())
    def sweep(self, kept: bool) -> None:
        """Uploads that nobody has open and that are not named go; what is named stays."""
        if self.open:
            return
        keep = [each.id for each in self.suspended] if kept else []
        self.run(self.stores[0].sweep_uploads(FUTURE, keep))
        if kept:
            return
        for each in self.suspended:
            try:
                upload = self.run(self.stores[1].resume(each.id, each.state))
            except BlobMissing:
                continue
            assert not each.body, "what was swept was resumed"
            self.run(upload.abort())
        self.suspended.clear()

    @invariant()
    def committed_bytes_are_there_and_nothing_else(self) -> None:
        if not hasattr(self, "stores"):
            return
        for store in self.stores:
            found = {locator: size for locator, size, _ in self.run(store.scan())}
            assert found == {locator: len(body) for locator, body in self.stored.items()}
        for locator, body in self.stored.items():
            read = self.run(self.stores[len(body) % 2].open(locator).read(0, LIMIT * 2))
            assert read == body, f"{locator} has other bytes"

    def _note(self, info: Any, body: bytes) -> None:
        assert (info.sha256, info.size) == (hashlib.sha256(body).hexdigest(), len(body))
        assert info.locator not in self.stored, "a locator was used twice"
        self.stored[info.locator] = body
