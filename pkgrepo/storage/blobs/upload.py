"""
An upload into a filesystem store, from its first byte to its commit, and its state while it is suspended.

The phases of an upload are in `receiving`. The catalog stores the state between two requests.

``abort`` needs no lock: its clean-up runs after every call queued before it, and also undoes a commit.

Small uploads that are sealed at about the same time are committed by one call on a disk thread, of several clients too,
if the file system can be synced as a whole. They wait for the disk together, and the thread releases the GIL four times
a file instead of a dozen times. Elsewhere each commit has its thread, because every fsync waits for the disk.

=======  ==================================  ====================================
step     one commit                          small ones, where syncfs is faster
=======  ==================================  ====================================
write    each file; its write-back begins    each file
sync     fdatasync of each file              -
link     each file                           each file
sync     fsync of each folder                syncfs
=======  ==================================  ====================================

Each step is done for all files before the next one, so that they wait for the disk as often as one. A crash before the
syncfs may leave a name without its bytes, which is one that nothing refers to: a name is never given twice, a row names
it after the commit, and a search for copies of a digest computes it. Stores whose copies are ``found_by_name`` do
not use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import define, field, frozen
from twisted.internet.defer import CancelledError
from zope.interface import implementer

from pkgrepo.concurrency.batches import Batches
from pkgrepo.concurrency.pools import DiskQueue, Pool
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.blobs.paths import FIRST_FILE, is_upload_file
from pkgrepo.storage.blobs.receiving import Phase, ReceivedUpload
from pkgrepo.storage.blobs.upload_file import UploadFile

VERSION = 1
TOGETHER: Final = 64  # files of several commits; each has a descriptor meanwhile


class _Wire(msgspec.Struct, omit_defaults=True):
    version: int
    offset: int
    limit: int | None
    digests: dict[str, str]
    file: str = FIRST_FILE


@frozen
class UploadState:
    """
    The first ``offset`` bytes are durable and have these ``digests``; the upload may have at most ``limit`` bytes.
    They are in the file with the name ``file`` in the upload's folder.

    With the digests, another process can commit the upload without reading the bytes again, if no more bytes arrive.
    """

    offset: int
    limit: int | None
    digests: Mapping[str, str]
    file: str = FIRST_FILE

    def encode(self) -> bytes:
        """Return at most 4 KiB: the digests of all of hashlib's algorithms have less than 2 KiB of hex."""
        return msgspec.json.encode(_Wire(VERSION, self.offset, self.limit, dict(self.digests), self.file))

    @classmethod
    def decode(cls, data: bytes) -> UploadState:
        """
        Return the state that ``encode`` wrote.

        :raises ValueError: the data has another form
        """
        wire = msgspec.json.decode(data, type=_Wire)  # its errors are ValueErrors
        if wire.version != VERSION or wire.offset < 0 or "sha256" not in wire.digests or not is_upload_file(wire.file):
            raise ValueError("not the state of an upload")
        return cls(wire.offset, wire.limit, wire.digests, wire.file)


@implementer(IBlobUpload)
class FilesystemUpload(ReceivedUpload):
    """One upload; ``FilesystemBlobStore`` makes them, and has the ``commits``."""

    _file: UploadFile

    def __init__(self, upload_id: str, *, commits: Commits, **received: Any) -> None:
        super().__init__(upload_id, **received)
        self._commits = commits

    async def expose(self) -> None:
        """Give the file a name, under which other processes find it. :raises StorageFull: or ``StorageFailed``"""
        if self._phase is not Phase.RECEIVING or not self.readable:
            raise RuntimeError("the upload has no bytes to read yet, or has ended")
        try:
            await self._queue.run(self._file.name)
        except OSError as error:
            raise self._slices.explain(error) from error

    def reread(self) -> None:
        """Compute the digests of the bytes that another process has left in the file, before those of new ones."""
        self._slices.reread()

    # For ``Commits``

    def begin_commit(self, queue: DiskQueue | None = None) -> DiskQueue:
        """
        Enter the phase of the commit, which runs in ``queue`` or the upload's own; returns that queue.

        The queue of a sealed upload is empty. Calls of this upload from now on wait for the commit.
        """
        self._phase = Phase.ENDING
        self._queue = queue or self._queue
        return self._queue

    @property
    def prefers_whole(self) -> bool:
        """Whether it is faster now to sync the file system than several files."""
        return self._file.durability.prefers_whole()

    def prepare(self) -> tuple[UploadFile, bytes | None, str]:
        """Return the file, bytes that are not written yet, and the locator for it. Runs on a disk thread."""
        data, sealed = self.data, self._sealed
        if self.is_aborted or sealed is None:
            raise CancelledError
        self._file.check()
        return self._file, data, sealed.locator

    # Below

    async def _commit(self) -> None:
        await self._commits.commit([self])

    async def _keep(self) -> bytes:
        state = await self._slices.run_last(self._keep_file)
        return state.encode()

    async def _discard(self) -> None:
        await self._queue.run(self._file.discard)

    def keep_state(self) -> None:
        """Stay resumable from the earlier state until ``forget``; the file keeps its name."""
        super().keep_state()
        self._file.keeps_name = True

    async def _forget(self) -> None:
        self._file.keeps_name = False
        await self._queue.run(self._file.unname)

    def _keep_file(self) -> UploadState:
        """Runs on a disk thread."""
        digests = self._slices.digests()
        if self._file.size:
            self._file.keep()
        return UploadState(self._file.size, self._limit, digests, self._file.file)


@define(eq=False)
class _Commit:
    """Uploads that are committed together or not at all, with their files, and what has failed; see L{Commits}."""

    uploads: Sequence[FilesystemUpload]
    shared: bool
    files: list[tuple[UploadFile, bytes | None, str]] = field(factory=list)
    folders: set[Path] = field(factory=set)
    error: Exception | None = None


class Commits:
    """The commits of one store."""

    def __init__(self, pool: Pool) -> None:
        self._queue = DiskQueue(pool)  # of the uploads that are committed together, or aborted meanwhile
        self._small: Batches[None, _Commit] = Batches(self._place_small, most=TOGETHER)

    async def commit(self, uploads: Sequence[FilesystemUpload]) -> None:
        """
        Make sealed uploads durable and visible, or leave nothing of any.

        :raises StorageFull: or ``StorageFailed``; :raises CancelledError: one was aborted meanwhile
        :raises RuntimeError: one is not sealed, or was committed already; all stay as they are
        """
        if not all(each.is_sealed for each in uploads):
            raise RuntimeError("only sealed uploads are committed together")
        shared = all(each.data is not None for each in uploads) and uploads[0].prefers_whole
        commit = _Commit(uploads, shared)
        queue = uploads[0].begin_commit(self._queue if shared else None)
        for each in uploads[1:]:
            each.begin_commit(queue)
        try:
            if shared:
                await self._small.add(None, commit)
            else:
                await queue.run(_place, [commit])
            if commit.error is not None:
                raise commit.error
            if any(each.is_aborted for each in uploads):
                raise CancelledError
        except OSError as error:
            explained = uploads[0].explain(error)
            await _abort(uploads)
            raise explained from error
        except BaseException:
            await _abort(uploads)
            raise
        for each in uploads:
            each.end_commit()

    async def _place_small(self, commits: Sequence[_Commit]) -> None:
        for some in _in_parts(commits):
            await self._queue.run(_place, some)


async def _abort(uploads: Sequence[FilesystemUpload]) -> None:
    for each in uploads:
        await each.abort()


def _in_parts(commits: Sequence[_Commit]) -> Iterator[Sequence[_Commit]]:
    """Commits of at most ``TOGETHER`` files, or single ones."""
    part: list[_Commit] = []
    count = 0
    for each in commits:
        if part and count + len(each.uploads) > TOGETHER:
            yield part
            part, count = [], 0
        part.append(each)
        count += len(each.uploads)
    yield part


# These run on a disk thread.


def _place(commits: Sequence[_Commit]) -> None:
    """Make the files of each commit durable as blobs, and close them; sets ``error`` of those that fail."""
    todo = _each(commits, _prepare)
    count = sum(len(each.files) for each in todo)
    if not count:
        return
    durability = todo[0].files[0][0].durability
    whole = _open_whole(durability) if todo[0].shared else None
    try:
        todo = _each(todo, partial(_write, start_writeback=whole is None and count > 1))
        if whole is None:
            todo = _each(todo, _sync_files)
        todo = _each(todo, _link)
        todo = _each(todo, _sync_folders) if whole is None else _sync_whole(todo, durability, whole)
    finally:
        if whole is not None:
            os.close(whole)
    for each in todo:
        for file, _, _ in each.files:
            file.release()


def _each(commits: Sequence[_Commit], step: Callable[[_Commit], None]) -> list[_Commit]:
    """Do a step of several commits. Returns those of which it did not fail."""
    for each in commits:
        try:
            step(each)
        except Exception as error:  # noqa: BLE001 - raised to the caller of the commit
            each.error = error
    return [each for each in commits if each.error is None]


def _prepare(commit: _Commit) -> None:
    commit.files = [each.prepare() for each in commit.uploads]


def _write(commit: _Commit, *, start_writeback: bool) -> None:
    for file, data, _ in commit.files:
        file.finalize(data, start_writeback=start_writeback)


def _sync_files(commit: _Commit) -> None:
    for file, _, _ in commit.files:
        file.sync()


def _link(commit: _Commit) -> None:
    commit.folders = {file.link(locator) for file, _, locator in commit.files}


def _sync_folders(commit: _Commit) -> None:
    durability = commit.files[0][0].durability
    for each in commit.folders:
        durability.sync_directory(each)


def _open_whole(durability: Durability) -> int | None:
    with suppress(OSError):
        return durability.open_whole()
    return None


def _sync_whole(commits: Sequence[_Commit], durability: Durability, whole: int) -> list[_Commit]:
    def sync(_: _Commit) -> None:
        if failed is not None:
            raise failed

    failed: OSError | None = None
    try:
        if commits:
            durability.sync_whole(whole)
    except OSError as error:
        failed = error
    return _each(commits, sync)
