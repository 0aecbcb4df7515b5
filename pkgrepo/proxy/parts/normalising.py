"""
Normalises metadata documents of upstreams, large ones outside of the reactor's thread.

=====================  ================================================  ==========================================
a document             is kept in                                        is normalised by
=====================  ================================================  ==========================================
of at most L{TINY}     memory                                            the reactor's thread, at once
of at most L{SMALL}    memory                                            a thread
larger                 an upload of the storage, which is not committed  a worker process: parsers keep the GIL
=====================  ================================================  ==========================================
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.pools import Pools
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

from .jobs import Job, NormalisingFailed, normalise
from .supervisor import Supervisor
from .values import Context

log = Logger()

TINY: Final = 16 * 1024  # bytes; 40 versions of 500 bytes take 0.7 ms, and a busy process 0.3 ms to change the thread
SMALL: Final = 256 * 1024  # bytes; a parser keeps the GIL for 1 to 2 ms
LARGEST: Final = 512 * 1024 * 1024  # bytes; a quarter of the memory of a worker


@frozen
class Outcome:
    """
    What was made of a document: its digests (hex, always ``sha256``) and size, and its parts file as a staged blob.

    ``parts`` is None if the document is the known one.
    """

    digests: Mapping[str, str]
    size: int
    parts: BlobInfo | None

    @property
    def sha256(self) -> str:
        """The sha256 of the document."""
        return self.digests["sha256"]


class Normaliser:
    """Normalises documents; ``supervisor`` runs the worker processes. ``small`` is the size of L{SMALL} ones."""

    def __init__(self, pools: Pools, supervisor: Supervisor, *, small: int = SMALL) -> None:
        self._small = small
        self._pools = pools
        self._supervisor = supervisor

    async def run(
        self,
        chunks: AsyncIterable[bytes],
        normaliser: str,
        context: Context,
        staged: Staged,
        *,
        now_ms: int,
        previous: int | None = None,
        known_sha256: str | None = None,
        algorithms: Sequence[str] = (),
    ) -> Outcome:
        """
        Normalise a document, of which ``chunks`` are the decoded bytes, with the function "package.module:function".

        ``previous`` is a descriptor of the document's previous parts file; it stays the caller's. Entries for which the
        upstream says no time get that of the previous file, or else ``now_ms`` (Unix milliseconds). A document with the
        digest ``known_sha256`` is not normalised again. ``algorithms`` are those of further digests of the document.

        :raises Invalid: the document cannot be used; :raises TooLarge: it has more than L{LARGEST} bytes
        :raises NormalisingFailed: a later attempt may succeed; the reason is logged
        :raises StorageFull: or ``StorageFailed``; and what ``chunks`` raises
        """
        job = Job(normaliser, context, now_ms)
        try:
            return await self._run(chunks, job, staged, previous, known_sha256, algorithms)
        except NormalisingFailed as error:
            log.error(  # noqa: TRY400 - the reason has the traceback
                "normalising with {normaliser} failed: {reason}", normaliser=normaliser, reason=error.reason
            )
            raise

    async def _run(
        self,
        chunks: AsyncIterable[bytes],
        job: Job,
        staged: Staged,
        previous: int | None,
        known_sha256: str | None,
        algorithms: Sequence[str],
    ) -> Outcome:
        first: list[bytes] = []
        size = 0
        rest = aiter(chunks)
        async for chunk in rest:
            first.append(chunk)
            size += len(chunk)
            if size > self._small:
                break
        else:
            return await self._run_here(b"".join(first), job, staged, previous, known_sha256, algorithms)
        async with staged.begin(algorithms, LARGEST) as upload:
            upload.write(b"".join(first))
            first.clear()
            await upload.drained()
            async for chunk in rest:
                upload.write(chunk)
                await upload.drained()
            info = await upload.seal()
            known = info.sha256 == known_sha256
            parts = None if known else await self._run_in_worker(upload, job, staged, previous)
            return Outcome(info.digests, info.size, parts)

    async def _run_here(
        self,
        document: bytes,
        job: Job,
        staged: Staged,
        previous: int | None,
        known_sha256: str | None,
        algorithms: Sequence[str],
    ) -> Outcome:
        digests = {
            each: hashlib.new(each, document, usedforsecurity=False).hexdigest() for each in ("sha256", *algorithms)
        }
        if digests["sha256"] == known_sha256:
            return Outcome(digests, len(document), None)
        # The thread's own: it goes on when this is cancelled, and must not read from a number that was reused.
        own = _duplicate(previous)
        if len(document) <= TINY:
            parts = _normalise_and_close(document, job, own)
        else:
            parts = await self._pools.cpu(_normalise_and_close, document, job, own)
        return Outcome(digests, len(document), await staged.store(parts))

    async def _run_in_worker(self, upload: IBlobUpload, job: Job, staged: Staged, previous: int | None) -> BlobInfo:
        document: int = upload.descriptor()
        try:
            return await self._supervisor.run(job, document, previous, staged)
        finally:
            os.close(document)


def _duplicate(descriptor: int | None) -> int | None:
    try:
        return None if descriptor is None else os.dup(descriptor)
    except OSError as error:
        raise NormalisingFailed(str(error)) from error


def _normalise_and_close(document: bytes, job: Job, previous: int | None) -> bytes:
    out = io.BytesIO()
    try:
        normalise(document, job, previous, out)
    except MemoryError as error:
        raise NormalisingFailed("no memory") from error
    finally:
        if previous is not None:
            os.close(previous)
    return out.getvalue()
