"""
Releases that no client waits for, published several at a time.

Their bytes are made durable by the same fsync calls, and those of one repository are written by one command, whose
statements are for many rows. If that refuses one of them, each is written by a command of its own.

Clients ask for the metadata of a wheel before they ask for the wheel, in which they are, too: they are stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Final

from attrs import define, evolve
from twisted.internet.task import deferLater

from pkgrepo.concurrency.batches import BatchDelay, Batches
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.package_changes import if_active
from pkgrepo.storage.catalog.packages.release_batches import find_files

from .index import Indexer
from .releases import Published, PublishedTogether, Release, publish_releases
from .staged import Claim

AT_ONCE: Final = 16  # files; to begin with the inspection of one takes 0.2 ms
TOGETHER: Final = 64  # releases; several fsync calls take as long as one, up to some dozen


@define(eq=False, kw_only=True)
class Kept:
    """A release that is to be kept, with its copies; ``outcome`` is known in the end."""

    repository: Repository
    release: Release
    claim: Claim
    actor: Admitted
    indexer: Indexer
    outcome: Published | Exception | None = None

    def result(self) -> Published:
        """What has become of it. :raises Exception: it was refused, or could not be stored"""
        outcome = self.known_outcome()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def known_outcome(self) -> Published | Exception:
        """Return what has become of it, an error as a value."""
        assert self.outcome is not None, "it is not kept yet"
        return self.outcome


class KeptTogether:
    """
    Keeps releases together with those that come at about the same time.

    Files wait for others before they are inspected: clients have their bytes, and ask for more files meanwhile.
    """

    def __init__(self, catalog: ICatalog, clock: Clock, delay: BatchDelay | None) -> None:
        self._catalog = catalog
        self._clock = clock
        self._delay = delay
        self._files: Batches[int, None] = Batches(self._pause, most=AT_ONCE, delay=delay)
        self._batches: Batches[int, Kept] = Batches(self._keep_new, most=TOGETHER)

    def without_delay(self) -> AbstractContextManager[None]:
        """A block in which files do not wait for others."""
        return self._files.without_delay()

    async def wait_for_batch(self, repository: Repository, size: int) -> None:
        """Wait until a file of so many bytes is to be kept; see L{BatchDelay}."""
        await self._files.add(repository.storage_id, None, size)

    async def add(self, kept: Kept) -> Published:
        """
        Publish a release with others; the copies are its own from now on.

        :raises StorageFull, StorageFailed: it cannot be stored; and all that L{publish_releases} raises
        """
        await self._batches.add(kept.repository.storage_id, kept)
        return kept.result()

    async def add_together(self, batch: Sequence[Kept]) -> Sequence[Published | Exception]:
        """
        Publish releases of one storage, which wait for no others. Returns their outcomes.

        :raises StorageFull, StorageFailed: their bytes cannot be made durable
        """
        await self._keep(batch)
        return [each.known_outcome() for each in batch]

    async def _pause(self, _: Sequence[None]) -> None:
        """Let the reactor do other work between some files and the next ones."""
        if self._delay is not None and self._delay.seconds:
            await deferLater(self._delay.reactor, 0)

    async def _keep_new(self, batch: Sequence[Kept]) -> None:
        """Keep releases without those of their files that are kept already, or are alone in another release."""
        alone = {
            (each.repository.id, file.path): file.blob.sha256
            for each in batch
            if len(each.release.files) == 1
            for file in each.release.files
        }
        for each in batch:
            release, there = each.release, dict[str, File]()
            if len(release.files) == 1 or release.renews:
                continue
            with suppress(StorageFull, StorageFailed):  # else the copies would belong to nobody
                there = await self._catalog.look(find_files, each.repository.id, [file.path for file in release.files])
            known = {path: file.sha256 for path, file in there.items() if file.locator}
            surplus = [
                file
                for file in release.files
                if file.blob.sha256 in (known.get(file.path), alone.get((each.repository.id, file.path)))
                and file.blob.locator in each.claim.waiting
            ]
            if surplus and len(surplus) < len(release.files):
                new = tuple(file for file in release.files if file not in surplus)
                each.release = evolve(release, files=new)
                await each.claim.leave_out(
                    {file.blob.locator for file in surplus} - {file.blob.locator for file in new}
                )
        await self._keep(batch)

    async def _keep(self, batch: Sequence[Kept]) -> None:
        first, *others = batch
        await first.claim.commit(*(each.claim for each in others))
        groups: dict[tuple[int, Admitted, Indexer], list[Kept]] = {}
        for each in batch:
            groups.setdefault((each.repository.id, each.actor, each.indexer), []).append(each)
        for some in groups.values():
            await self._write(some)

    async def _write(self, some: Sequence[Kept]) -> None:
        """Write releases of one repository, by one actor and indexer, whose bytes are durable."""
        first = some[0]
        releases = tuple(each.release for each in some)
        try:
            result: PublishedTogether = await self._catalog.write(
                if_active(publish_releases),
                first.repository,
                releases,
                first.actor,
                first.indexer,
                self._clock.now_ms(),
            )
        except (StorageFull, StorageFailed) as error:
            # It is unknown whether the transaction exists after a restart, so the copies stay; see L{ContentWriter}.
            for each in some:
                each.outcome = error
        except Exception as error:  # noqa: BLE001 - the caller of the release that caused it gets it
            if len(some) > 1:
                for each in some:
                    await self._write([each])
                return
            first.outcome = error
            await first.claim.delete()
        else:
            for each, published in zip(some, result.releases, strict=True):
                each.outcome = published
                await each.claim.delete(published.surplus)
