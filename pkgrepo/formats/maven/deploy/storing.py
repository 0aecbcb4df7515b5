"""
The second pass over a bundle: its files stream into blobs, which become durable in groups with shared fsyncs.

Files of up to 64 KiB stay in memory until their group is durable, so a group has few of them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Generator, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from attrs import frozen
from twisted.internet import reactor as _reactor
from twisted.internet.task import deferLater
from twisted.logger import Logger

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.deploy.contents import Contents, check_digests, read_entries
from pkgrepo.formats.maven.deploy.problems import Problems
from pkgrepo.formats.maven.metadata.plugins import PACKAGING, find_plugin, usual_plugin
from pkgrepo.formats.maven.paths import ALGORITHMS, ArtifactFile, parse_text
from pkgrepo.formats.maven.upload.jar import FACTS, read_jar
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, StagedFile
from pkgrepo.repositories.publish.deployments import stage_files
from pkgrepo.repositories.publish.staged import Staged

log = Logger()

T = TypeVar("T")

STEP_S: Final = 0.02  # seconds of a thread per call; a hop costs 0.02 ms
TURN_S: Final = 0.003  # seconds of the reactor's thread in one turn
STEP_SIZE: Final = 1024 * 1024  # bytes that one call collects


class Steps(Generic[T]):
    """
    The items of a generator that blocks, in batches.

    Use it as a context manager: at its end the generator is closed, on a thread, once no call runs any more. An item
    that is bytes counts by its length.
    """

    def __init__(self, pool: Pool, items: Generator[T, None, None], step_s: float = STEP_S) -> None:
        self._step_s = step_s
        self._pool = pool
        self._items = items
        self._lock = Lock()

    async def __aenter__(self) -> AsyncIterator[list[T]]:
        return self._batches()

    async def __aexit__(self, *_: object) -> None:
        # Not awaited: after a cancellation a call may still run, and the generator ends behind it.
        self._pool(self._close).addErrback(lambda failure: log.failure("a file was not closed", failure=failure))

    async def _batches(self) -> AsyncIterator[list[T]]:
        while batch := await self._pool(self._take):
            yield batch

    def _take(self) -> list[T]:
        batch: list[T] = []
        size = 0
        until = time.monotonic() + self._step_s
        with self._lock:
            for item in self._items:
                batch.append(item)
                size += len(item) if isinstance(item, bytes) else 0
                if size >= STEP_SIZE or time.monotonic() > until:
                    break
        return batch

    def _close(self) -> None:
        with self._lock:
            self._items.close()


class Turns:
    """Work of the reactor's thread that calls ``rest`` now and then: after ``TURN_S`` others have their turn."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    async def rest(self) -> None:
        """Let others have the reactor if this work has had it for long enough."""
        if time.monotonic() - self._began >= TURN_S:
            await deferLater(_reactor, 0)
            self._began = time.monotonic()


GROUP: Final = 100  # files that become durable together; at most 6.4 MB of them are in memory
GROUP_SIZE: Final = 256 * 1024 * 1024  # bytes of them


@frozen
class Begin:
    """The next bytes are those of this file, up to the next ``End``."""

    file: ArtifactFile
    size: int


@frozen
class End:
    """The file is whole."""


Event = Begin | bytes | End


def file_events(source: Source, limit: int, wanted: Mapping[str, ArtifactFile]) -> Generator[Event, None, None]:
    """Iterate over the files of a bundle that are wanted, and their bytes."""
    for entry in read_entries(source, limit):
        file = wanted.get(_path(entry.name))
        if file is not None:
            yield Begin(file, entry.size)
            yield from entry.pieces()
            yield End()


class Storing:
    """Stores the files of one deployment; ``staged`` gets their blobs. The reactor's thread hashes the small ones."""

    def __init__(
        self,
        services: Services,
        repository: Repository,
        deployment: Deployment,
        staged: Staged,
        *,
        contents: Contents,
        problems: Problems,
    ) -> None:
        self._services = services
        self._repository = repository
        self._deployment = deployment
        self._staged = staged
        self._contents = contents
        self._problems = problems
        self._plugins = frozenset(
            path.removesuffix(".pom") + ".jar" for path, pom in contents.poms.items() if pom.packaging == PACKAGING
        )
        self._group: list[StagedFile] = []
        self._turns = Turns()

    async def store(self, steps: Steps[Event]) -> None:
        """
        Store the files that the steps bring, and compare them with the checksums; what differs becomes a problem.

        :raises StorageFull, StorageFailed: the files so far are kept until the deployment ends
        """
        upload: IBlobUpload | None = None
        try:
            async with steps as batches:
                async for batch in batches:
                    for event in batch:
                        upload = await self._take(event, upload)
        finally:
            if upload is not None:
                await upload.abort()
        await self._stage_group()

    async def _take(self, event: Event, upload: IBlobUpload | None) -> IBlobUpload | None:
        if isinstance(event, Begin):
            self._file = event.file
            await self._staged.room.begin(event.size)
            return self._staged.begin(ALGORITHMS, event.size, event.size)
        assert upload is not None
        if isinstance(event, bytes):
            upload.write(event)
            await upload.drained()
            await self._turns.rest()
            return upload
        await self._end(upload)
        return None

    async def _end(self, upload: IBlobUpload) -> None:
        file = self._file
        blob: BlobInfo = await upload.seal()
        self._staged.add_sealed(upload, blob)
        check_digests(file.path, self._contents.checksums.get(file.path, {}), blob.digests, self._problems)
        self._group.append(StagedFile(file.path, blob, await self._attrs(file, blob)))
        await self._turns.rest()
        if len(self._group) >= GROUP or sum(each.blob.size for each in self._group) >= GROUP_SIZE:
            await self._stage_group()

    async def _attrs(self, file: ArtifactFile, blob: BlobInfo) -> Mapping[str, Any]:
        """What the release will say of a file, so that it is not read again when it is published."""
        pom = self._contents.poms.get(file.path)
        if pom is not None:
            return {"meta": pom.meta()}
        if file.extension != "jar" or file.classifier or file.role is not None:
            return {}
        facts = await self._staged.inspect(self._services.pools.cpu, blob, read_jar, commit=False)
        found: dict[str, Any] = {FACTS: facts} if facts else {}
        if file.path in self._plugins:
            artifact = file.coordinates.artifact
            look = partial(find_plugin, artifact=artifact)
            plugin = await self._staged.inspect(self._services.pools.cpu, blob, look)
            found["plugin"] = plugin or usual_plugin(artifact)
        return found

    async def _stage_group(self) -> None:
        group, self._group = self._group, []
        if group:
            blobs = [each.blob for each in group]
            await self._services.content.change_with_blobs(
                stage_files, self._repository, self._staged, blobs, self._deployment.id, group
            )


def _path(name: str) -> str:
    try:
        return parse_text(name).path
    except Invalid:
        return ""
