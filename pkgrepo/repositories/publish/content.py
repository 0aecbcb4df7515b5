"""
Publishing: from received bytes to a published version.

==================  ====================================================  =========================================
step                result                                                left by a crash
==================  ====================================================  =========================================
receive, seal       all bytes are received and have the expected digest   nothing
inspect             the format has read the file                          nothing, or the same as commit
commit              the bytes of all files are durable in the store       copies that no row names; swept later
                    under locators that no row names yet; the commit of
                    a single file runs while it is inspected
publish             one transaction: blob row, file, version, package,    everything or nothing
                    fragments and event, of one release or several
answer              the client has the response                           -
==================  ====================================================  =========================================
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from copy import copy
from typing import Any, Protocol, Self, TypeVar, TypeVarTuple

from twisted.logger import Logger, LogLevel

from pkgrepo.concurrency.batches import BatchDelay
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import QuotaExceeded, StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import Actor, BlobInfo, NewFile, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.package_changes import ChangeListener, if_active
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.catalog.blobs import gc
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server.reservations import Allowance

from .bursts import Held, StageOpening, braked, lead_to_stage
from .holding import publish_or_hold, put_plain_or_hold
from .index import Indexer
from .kept import Kept, KeptTogether
from .owner_quotas import owner_allowances
from .plain_files import Guard, PlainPut, put_plain_file
from .quota_refusals import QuotaRefusals
from .releases import Published, Release, publish_releases
from .room import Reservations, Room, read_allowances
from .staged import Claim, Staged

log = Logger()

DISCARDED = 100  # blobs that one transaction marks
MOST_NAMED = 5  # versions in a sentence

Check = Callable[[Repository, str], Awaitable[None]]  # of the key of a package; what it raises refuses the publish

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
C = TypeVar("C", bound="CommandResult")


class CommandResult(Protocol):
    """The result of a command that added staged blobs to the catalog."""

    @property
    def surplus(self) -> tuple[str, ...]:
        """Locators of copies that the catalog did not need."""


class ContentWriter:
    """
    The writer of what repositories contain. With a ``delay`` files are kept more at a time, and later.

    ``opening`` prepares the stage to which an upload is led that brakes hold; without it they are refused.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        clock: Clock,
        on_change: ChangeListener,
        delay: BatchDelay | None = None,
        opening: Callable[[Repository], StageOpening] | None = None,
    ) -> None:
        self._opening = opening
        self._on_held: Callable[[str], None] = lambda _sentence: None
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._clock = clock
        self._on_change = on_change
        self._kept = KeptTogether(catalog, clock, delay)
        self._check: Check | None = None
        self._reservations = Reservations(catalog, clock)
        self._refusals = QuotaRefusals(catalog, clock, on_change)

    def checking(self, check: Check) -> Self:
        """Return a writer that awaits ``check`` for each package before it publishes releases of clients."""
        other = copy(self)
        other._check = check  # noqa: SLF001 - its own class
        return other

    def telling(self, on_held: Callable[[str], None]) -> Self:
        """Return a writer that tells ``on_held``, as a sentence, that an upload waits in a stage for an approval."""
        other = copy(self)
        other._on_held = on_held  # noqa: SLF001 - its own class
        return other

    async def check(self, repository: Repository, keys: Iterable[str]) -> None:
        """Await the check of L{checking}, if there is one, for each package once."""
        if self._check is not None:
            for key in dict.fromkeys(keys):
                await self._check(repository, key)

    @asynccontextmanager
    async def stage(
        self, repository: Repository, package: str | None = None, *, user_id: int | None = None
    ) -> AsyncIterator[Staged]:
        """
        Return a context manager for the received bytes of a request; at its end unpublished bytes are removed.

        With the key of a ``package``, the quota of its project is checked early, too, as is that of a user.
        """
        storage = self._registry.storage(repository.storage_id)
        if not storage.active:
            raise StorageFailed(storage.name)
        store = await self._stores.of(storage)
        room = None
        if self._registry.limited and repository.type is not RepositoryType.PROXY:
            allowances = await self._catalog.look(_read_allowances, repository, package, user_id)
            room = Room(allowances, self._reservations)
        staged = Staged(storage.name, store, room)
        try:
            yield staged
        except QuotaExceeded as error:
            self._refusals.record(repository, error)
            raise
        finally:
            await staged.clear()

    async def publish(
        self, repository: Repository, release: Release, staged: Staged, actor: Admitted, indexer: Indexer
    ) -> Published:
        """
        Publish a release in one durable transaction.

        Publishing the same bytes again succeeds and changes nothing. A publish that has begun is finished even if the
        client disconnects, because the transaction owns the staged bytes.

        :raises FileExists: other content is published under that name; :raises FileBurned: a file of that name
            was deleted; :raises QuotaExceeded: a quota leaves no room for it
        """
        published = await self.publish_together(repository, (release,), staged, actor, indexer)
        return published[0]

    async def keep(
        self, repository: Repository, release: Release, staged: Staged, actor: Admitted, indexer: Indexer
    ) -> Published:
        """
        Publish a file that no client waits for, such as those of an upstream, which arrive by the hundred.
        It is made durable together with others, so it takes longer, and costs less. Call L{wait_for_batch} before.
        """
        mine = staged.claim([each.blob.locator for each in release.files])
        kept = Kept(repository=repository, release=release, claim=mine, actor=actor, indexer=indexer)
        return await shield(self._keep(kept))

    async def keep_together(
        self, repository: Repository, releases: Sequence[Release], staged: Staged, actor: Admitted, indexer: Indexer
    ) -> Sequence[Published | Exception]:
        """
        Keep several releases at once, with one wait for the disk and one transaction. Returns what came of each.

        One that is refused does not stop the others. ``releases`` are some dozen at most.

        :raises StorageFull, StorageFailed: their bytes cannot be made durable; nothing is kept then
        """
        batch = [
            Kept(
                repository=repository,
                release=each,
                claim=staged.claim([file.blob.locator for file in each.files]),
                actor=actor,
                indexer=indexer,
            )
            for each in releases
        ]
        return await shield(self._keep_together(repository, batch, actor))

    async def wait_for_batch(self, repository: Repository, size: int) -> None:
        """Wait for more such files before one of so many bytes is inspected and kept; cancelling it stops that."""
        await self._kept.wait_for_batch(repository, size)

    def without_delay(self) -> AbstractContextManager[None]:
        """A block in which L{wait_for_batch} waits for no other files, since a client waits for one."""
        return self._kept.without_delay()

    async def publish_together(
        self, repository: Repository, releases: Sequence[Release], staged: Staged, actor: Admitted, indexer: Indexer
    ) -> tuple[Published, ...]:
        """
        Publish releases, also of different packages, in one durable transaction: all of them or none.

        They are published in the given order, as by ``publish``, each with its event. Their bytes are made durable
        together. Returns the results in the same order.

        :raises FileExists: or any error of ``publish``, if one of the releases cannot be published
        """
        await self.check(repository, [each.package_key for each in releases])
        mine = staged.claim([each.blob.locator for release in releases for each in release.files])
        return await shield(self._publish(repository, tuple(releases), mine, actor, indexer))

    async def _publish(
        self, repository: Repository, releases: Sequence[Release], mine: Claim, actor: Actor, indexer: Indexer
    ) -> tuple[Published, ...]:
        if braked(repository) is None:
            result = await self._write_claiming(mine, publish_releases, repository, releases, actor, indexer)
        else:
            opening = None if self._opening is None else self._opening(repository)
            result = await self._write_claiming(mine, publish_or_hold, repository, releases, actor, indexer, opening)
        if result.held:
            self._tell_held(repository, _names(releases), actor, result.held)
            self._on_change(repository)
        else:
            self._announce(repository, releases, result.releases, actor)
        return result.releases

    async def put_plain(
        self,
        repository: Repository,
        new: NewFile,
        staged: Staged,
        overwrite: bool,
        actor: Admitted,
        guard: Guard | None = None,
    ) -> PlainPut:
        """Put a plain file of a client at its path; see L{put_plain_file}. Brakes count its folder as a package."""
        given = new, overwrite, actor, guard
        if braked(repository) is None:
            return await self.change_with_blobs(put_plain_file, repository, staged, [new.blob], *given)
        opening = None if self._opening is None else self._opening(repository)
        put = await self.change_with_blobs(put_plain_or_hold, repository, staged, [new.blob], *given, opening)
        if put.held:
            self._tell_held(repository, new.path, actor, put.held)
        return put

    def _tell_held(self, repository: Repository, what: str, actor: Actor, uid: str) -> None:
        where = f"{repository.path}+stage-{uid}"
        log.warn("{what} of {user} waits in {stage}", what=what, user=actor.name or "nobody", stage=where)
        self._on_held(f"{what} waits for an approval in the stage {uid} of {repository.path}")

    async def _keep(self, kept: Kept) -> Published:
        try:
            published = await self._kept.add(kept)
        finally:
            await self._reservations.drop(kept.claim.reservations)
        self._announce(kept.repository, (kept.release,), (published,), kept.actor)
        return published

    async def _keep_together(
        self, repository: Repository, batch: Sequence[Kept], actor: Actor
    ) -> Sequence[Published | Exception]:
        try:
            outcomes = await self._kept.add_together(batch)
        finally:
            await self._reservations.drop([uid for each in batch for uid in each.claim.reservations])
        pairs = [(each.release, of) for each, of in zip(batch, outcomes, strict=True) if isinstance(of, Published)]
        self._announce(repository, [release for release, _ in pairs], [of for _, of in pairs], actor)
        return outcomes

    def _announce(
        self, repository: Repository, releases: Sequence[Release], results: Sequence[Published], actor: Actor
    ) -> None:
        pairs = list(zip(releases, results, strict=True))
        changed = [each for each, of in pairs if of.changed]
        # A copy that was needed although nothing changed replaces a damaged one: the layout is told of it.
        if changed or any(len(of.surplus) < len(each.files) for each, of in pairs):
            self._on_change(repository)
        for release in changed:
            log_published(repository, release.package_key, release.version_text, actor, release.kind)

    async def change_with_blobs(
        self,
        command: Callable[[Transaction, Repository, *Ts, int], C],
        repository: Repository,
        staged: Staged,
        blobs: Sequence[BlobInfo],
        *args: *Ts,
    ) -> C:
        """
        Run a write command that adds staged blobs to the catalog, and call ``on_change``. Returns its result.

        Like ``publish`` it is finished once it has begun, and removes the copies that the catalog did not need.
        """
        mine = staged.claim([each.locator for each in blobs])
        result = await shield(self._write_claiming(mine, command, repository, *args))
        self._on_change(repository)
        return result

    async def _write_claiming(self, mine: Claim, command: Callable[..., C], repository: Repository, *args: Any) -> C:
        """Run a command that owns the copies, and gives up what was reserved for them."""
        try:
            result = await self._write_committed(mine, command, repository, *args)
        except BaseException:
            await self._reservations.drop(mine.reservations)
            raise
        self._reservations.forget(mine.reservations)
        return result

    async def _write_committed(self, mine: Claim, command: Callable[..., C], repository: Repository, *args: Any) -> C:
        await mine.commit()
        try:
            whole = self._reservations.publishing(mine.reservations, if_active(command))
            result: C = await self._catalog.write(whole, repository, *args, self._clock.now_ms())
        except Held as error:
            await mine.delete()
            raise await self._opened_for(error) from None
        except (StorageFull, StorageFailed):
            # It is unknown whether the transaction exists after a restart, so the copies stay. They are swept if no row
            # names them.
            raise
        except BaseException:
            await mine.delete()
            raise
        await mine.delete(result.surplus)
        return result

    async def _opened_for(self, held: Held) -> Held:
        """The refusal of an upload that cannot be led to a stage, with one that is open for it. Returns it."""
        log.warn("an upload was refused: {error}", error=str(held))
        if self._opening is None:
            return held
        opening = self._opening(held.repository)
        uid = await self._catalog.write(
            lead_to_stage, held.repository, held.brake, held.keys, opening, held.actor, self._clock.now_ms()
        )
        self._on_change(held.repository)
        return Held(held.repository, held.keys, held.brake, held.actor, stage=uid)

    async def discard(self, repository: Repository, sha256s: Sequence[str], since_ms: int) -> None:
        """
        Delete the bytes of blobs that were stored since a time and were never published.

        Blobs that something refers to stay. What cannot be deleted is left to garbage collection.

        :raises StorageFailed: the storage cannot be opened
        """
        storage = self._registry.storage(repository.storage_id)
        store = await self._stores.of(storage)
        for some in batches(sha256s, DISCARDED):
            marked: list[BlobInfo] = await self._catalog.write(
                gc.mark_unseen, storage.id, some, since_ms, self._clock.now_ms()
            )
            gone = []
            for each in marked:
                try:
                    await store.delete(each.locator)
                except StorageFailed as error:
                    log.warn("blob {sha256} is left to gc: {error}", sha256=each.sha256, error=str(error))
                else:
                    gone.append(each)
            if gone:
                await self._catalog.write(_remove_blob_rows, storage.id, gone)

    async def change(
        self, command: Callable[[Transaction, Repository, *Ts, int], T], repository: Repository, *args: *Ts
    ) -> T:
        """Run a write command that changes a repository's content (see ``package_changes``), and call ``on_change``."""
        try:
            result: T = await shield(self._catalog.write(if_active(command), repository, *args, self._clock.now_ms()))
        except Held as error:
            raise await self._opened_for(error) from None
        self._on_change(repository)
        return result


def _names(releases: Sequence[Release]) -> str:
    return ", ".join(dict.fromkeys(f"{each.package_name} {each.version_text}" for each in releases[:MOST_NAMED]))


def log_published(repository: Repository, package: str, version: str, actor: Actor, kind: str = "published") -> None:
    """
    Log a publish with the id that the access log has for the request.

    Another ``kind`` of event is no act of a person: an install through a proxy has hundreds, which events list.
    """
    log.emit(
        LogLevel.info if kind == "published" else LogLevel.debug,
        "{kind} {package} {version} in {repository} by {user} (request {request})",
        kind=kind,
        package=package,
        version=version,
        repository=repository.path,
        user=actor.name or "nobody",
        request=actor.request_id or "-",
    )


def _read_allowances(r: Reader, repository: Repository, package: str | None, user_id: int | None) -> list[Allowance]:
    return [*read_allowances(r, repository), *owner_allowances(r, repository, package, user_id)]


def _remove_blob_rows(tx: Transaction, storage_id: int, gone: Sequence[BlobInfo]) -> None:
    for each in gone:
        gc.remove_blob_row(tx, storage_id, each.sha256, each.locator)
