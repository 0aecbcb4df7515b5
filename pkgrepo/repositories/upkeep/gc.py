"""
Garbage collection: removes what nothing refers to, while the server runs.

==================  ==================================================  ===========================================
removed             when                                                left by a crash
==================  ==================================================  ===========================================
unfinished upload   no byte was received for a day                      its bytes; swept later
manifest            nothing refers to it, if ``untagged`` is set and    the rest of the plan, for the next run
                    the repository is no proxy
blob of an image    no manifest of the image refers to it               the same
stored bytes        no row of the storage refers to them, and no        a row marked as deleting, which the next
                    backup runs                                         run removes
==================  ==================================================  ===========================================

Nothing is removed that was used within the grace period, or that is leased to a push that runs. The transaction that
removes a row checks all conditions again, and bytes are removed only after that transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from attrs import Factory, asdict, define, frozen
from twisted.logger import Logger

from pkgrepo.errors import MOST_ERRORS, StorageFailed
from pkgrepo.interfaces import IBlobStore, Transaction
from pkgrepo.model import SYSTEM, Actor, BlobInfo, Package, Repository, RepositoryType, Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.images.blobs import delete_blob
from pkgrepo.repositories.images.manifests import delete_manifest
from pkgrepo.repositories.publish.package_changes import ChangeListener
from pkgrepo.repositories.upkeep.jobs import NoProgress, Progress
from pkgrepo.repositories.upkeep.sweep import UPLOAD_GRACE
from pkgrepo.storage.catalog.blobs import blobs, gc
from pkgrepo.storage.catalog.blobs.uploads import EXPIRES_MS, unfinished_uploads
from pkgrepo.storage.catalog.images.gc import (
    Held,
    ImagePlan,
    Kept,
    held_by_trash,
    may_remove_blob,
    may_remove_manifest,
    plan_image,
)
from pkgrepo.storage.catalog.images.linked_blobs import remove_expired_leases
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server.trash import FOR_GOOD

log = Logger()


NO_PROGRESS = NoProgress()

KIND = "gc"  # of the jobs; their key is the id of the storage
GRACE_S = 15 * 60  # seconds; time to undo a mistake
PAGE = 500  # rows read by one query on a reader thread
BATCH = 50  # rows removed by one transaction: some milliseconds of the writer


@frozen
class GcOptions:
    """
    What a collection removes; with ``dry_run`` nothing.

    ``grace_s`` is the grace period, ``untagged`` also removes manifests, and ``uploads_idle_s`` is the time after which
    unfinished uploads are removed that no request writes to.
    """

    grace_s: int = GRACE_S
    uploads_idle_s: int = EXPIRES_MS // 1000
    untagged: bool = False
    dry_run: bool = False
    actor: Actor = SYSTEM

    def to_json(self) -> dict[str, Any]:
        """Return the form in which the job's row stores it."""
        return {
            "grace_s": self.grace_s,
            "untagged": self.untagged,
            "uploads_idle_s": self.uploads_idle_s,
            "dry_run": self.dry_run,
        }


@define
class GcReport:
    """
    What was examined, and what was removed or, in a dry run, would be; ``freed`` in bytes.

    Of the objects that nothing refers to, ``young`` were used within the grace period, which ends for the last one at
    ``young_until_ms``; ``promised`` are for pushes that run, until ``promised_until_ms`` at the latest. ``untagged``
    are manifests that the option of that name would remove. ``open_uploads`` have not ended, and expire at
    ``open_until_ms``. ``held`` were left alone because a backup runs. ``errors`` are sentences about the first of
    ``failures``.
    """

    blobs_seen: int = 0
    manifests_seen: int = 0
    blobs: int = 0
    manifests: int = 0
    uploads: int = 0
    freed: int = 0
    young: int = 0
    young_until_ms: int = 0
    promised: int = 0
    promised_until_ms: int = 0
    untagged: int = 0
    open_uploads: int = 0
    open_until_ms: int = 0
    held: int = 0
    duration_ms: int = 0
    failures: int = 0
    errors: list[str] = Factory(list)

    def fail(self, sentence: str) -> None:
        """Record that something could not be removed."""
        self.failures += 1
        if self.failures <= MOST_ERRORS:
            self.errors.append(sentence)
        elif self.failures == MOST_ERRORS + 1:
            self.errors.append("further ones are in the server's log")

    def keep_young(self, kept: Kept, grace_ms: int) -> None:
        """Count objects that were used within the grace period."""
        if kept.count:
            self.young += kept.count
            self.young_until_ms = max(self.young_until_ms, kept.latest_ms + grace_ms)

    def keep_leased(self, kept: Kept) -> None:
        """Count objects that are leased to pushes that run."""
        self.promised += kept.count
        self.promised_until_ms = max(self.promised_until_ms, kept.latest_ms)

    def keep_uploads(self, kept: Kept) -> None:
        """Count uploads that have not ended."""
        if kept.count:
            self.open_uploads += kept.count
            self.open_until_ms = max(self.open_until_ms, kept.latest_ms + EXPIRES_MS)

    def to_json(self) -> dict[str, Any]:
        """Return the form in which the job's row stores it."""
        return asdict(self)


class GarbageCollector(MaintenanceWork):
    """Collects in repositories and in their storage; ``on_change`` is called for each changed repository."""

    def __init__(self, context: MaintenanceContext, *, on_change: ChangeListener) -> None:
        super().__init__(context)
        self._on_change = on_change

    async def collect(
        self, storage: Storage, repositories: Sequence[Repository], options: GcOptions, progress: Progress
    ) -> dict[str, Any]:
        """Collect as ``run`` does, and return the report in the form in which a job stores it."""
        return (await self.run(storage, repositories, options, progress)).to_json()

    async def run(
        self,
        storage: Storage,
        repositories: Sequence[Repository],
        options: GcOptions,
        progress: Progress = NO_PROGRESS,
    ) -> GcReport:
        """
        Collect in some repositories of a storage, and then the blobs of the whole storage.

        :raises StorageFailed: the storage cannot be opened; later failures are in ``errors``
        """
        started_ms = self._clock.now_ms()
        before_ms = started_ms - options.grace_s * 1000
        report = GcReport()
        store = await self._stores.of(storage)
        if not options.dry_run:
            await self._resume_interrupted(storage, store, report)
            while await self._catalog.write(remove_expired_leases, started_ms, PAGE):
                pass
        reference_counts: Counter[str] = Counter()
        for repository in repositories:
            progress.begin(f"packages of {repository.path}", repository.package_count)
            await self._collect_uploads(repository, options, report)
            await self._collect_images(repository, options, before_ms, report, reference_counts, progress)
            progress.end()
        if not options.dry_run and report.uploads:
            await self._sweep_uploads(storage, store, report)
        await self._collect_blobs(storage, store, options, before_ms, report, reference_counts, progress)
        report.duration_ms = self._clock.now_ms() - started_ms
        return report

    async def _resume_interrupted(self, storage: Storage, store: IBlobStore, report: GcReport) -> None:
        """Remove the blobs that an earlier run marked as deleting."""
        while marked := await self._catalog.scan(gc.list_deleting, storage.id, BATCH):
            before = report.failures
            await self._remove(storage, store, marked, report)
            if report.failures > before:
                return

    async def _collect_uploads(self, repository: Repository, options: GcOptions, report: GcReport) -> None:
        now_ms = self._clock.now_ms()
        idle_ms = min(options.uploads_idle_s * 1000, EXPIRES_MS)
        before_ms = now_ms - idle_ms
        if options.dry_run:
            found = await self._catalog.scan(gc.count_expired_uploads, repository.id, before_ms, now_ms)
            report.uploads += found
        else:
            while gone := await self._catalog.write(gc.remove_expired_uploads, repository.id, before_ms, now_ms, BATCH):
                report.uploads += gone
        report.keep_uploads(Kept(*await self._catalog.scan(unfinished_uploads, repository.id, now_ms, idle_ms)))

    async def _sweep_uploads(self, storage: Storage, store: IBlobStore, report: GcReport) -> None:
        keep = await self._catalog.scan(blobs.upload_ids, storage.id)
        try:
            await store.sweep_uploads(from_ms(self._clock.now_ms()) - UPLOAD_GRACE, keep)
        except StorageFailed as error:
            report.fail(str(error))

    async def _collect_images(
        self,
        repository: Repository,
        options: GcOptions,
        before_ms: int,
        report: GcReport,
        reference_counts: Counter[str],
        progress: Progress,
    ) -> None:
        after = ""
        # a proxy keeps what was pulled by digest or had a tag before; purging its cache removes that
        untagged = options.untagged and repository.type is RepositoryType.HOSTED
        while page := await self._catalog.scan(packages.list_packages, repository.id, after=after, limit=PAGE):
            for package in page:
                now_ms = self._clock.now_ms()
                plan = await self._catalog.scan(plan_image, package.id, before_ms, now_ms, untagged=untagged)
                report.manifests_seen += plan.manifests_seen
                report.keep_young(plan.young, options.grace_s * 1000)
                report.keep_leased(plan.leased)
                report.untagged += plan.untagged
                if options.dry_run:
                    report.manifests += len(plan.manifests)
                    reference_counts.update(plan.contents)
                    reference_counts.update(plan.blobs)
                elif plan.manifests or plan.blobs:
                    report.manifests += await self._apply_plan(repository, package, plan, before_ms, options.actor)
                progress.step()
            after = page[-1].key

    async def _apply_plan(
        self, repository: Repository, package: Package, plan: ImagePlan, before_ms: int, actor: Actor
    ) -> int:
        removed = 0
        doomed = set(plan.manifests)
        held: Held = await self._catalog.scan(held_by_trash, package.id)
        for digests in batches(plan.manifests, BATCH):
            staying, held = await self._catalog.write(
                remove_manifests, repository, package, digests, doomed, held, before_ms, actor, self._clock.now_ms()
            )
            removed += len(digests) - len(staying)
            doomed -= staying  # what stays needs its children and referrers
        for sha256s in batches(plan.blobs, BATCH):
            await self._catalog.write(remove_links, repository, package, sha256s, before_ms, self._clock.now_ms())
        self._on_change(repository)
        return removed

    async def _collect_blobs(
        self,
        storage: Storage,
        store: IBlobStore,
        options: GcOptions,
        before_ms: int,
        report: GcReport,
        reference_counts: Mapping[str, int],
        progress: Progress,
    ) -> None:
        report.blobs_seen = await self._catalog.scan(blobs.count_blobs, storage.id)
        progress.begin(f"blobs of storage {storage.name} that nothing refers to", 0)
        cursor: gc.Cursor | None = gc.Cursor()
        while cursor is not None:
            found, cursor = await self._catalog.scan(gc.candidates, storage.id, before_ms, PAGE, cursor)
            progress.step(len(found))
            if options.dry_run:
                _count(found, report)
                continue
            for batch in batches(found, BATCH):
                sha256s = [each.sha256 for each in batch]
                marked = await self._catalog.write(
                    gc.mark_deleting, storage.id, sha256s, before_ms, self._clock.now_ms()
                )
                if not marked and await self._catalog.look(gc.backup_runs, self._clock.now_ms()):
                    report.held += len(batch)
                await self._remove(storage, store, marked, report)
        if reference_counts:
            _count(await self._catalog.scan(gc.freed_by_removal, storage.id, reference_counts, before_ms), report)
        count, _, latest_ms = await self._catalog.scan(gc.unreferenced, storage.id, before_ms)
        report.keep_young(Kept(count, latest_ms), options.grace_s * 1000)
        progress.end()

    async def _remove(self, storage: Storage, store: IBlobStore, marked: Sequence[BlobInfo], report: GcReport) -> None:
        """Remove the bytes of blobs marked as deleting, then their rows; if bytes cannot be removed, the row stays."""
        gone = []
        for info in marked:
            try:
                await store.delete(info.locator)
            except StorageFailed as error:
                report.fail(f"blob {info.sha256}: {error}")
                log.warn("blob {sha256} cannot be removed: {error}", sha256=info.sha256, error=str(error))
            else:
                gone.append(info)
        if gone:
            await self._catalog.write(remove_blob_rows, storage.id, gone)
        _count(gone, report)


def remove_manifests(
    tx: Transaction,
    repository: Repository,
    package: Package,
    digests: Sequence[str],
    doomed: Set[str],
    held: Held,
    before_ms: int,
    actor: Actor,
    now_ms: int,
) -> tuple[Set[str], Held]:
    """
    Remove manifests of an image that nothing but other ``doomed`` ones refers to.

    ``held`` is what the trash held when that was last read. Returns those that stay, and what the trash holds now.
    """
    if _was_removed(tx, repository, package):
        return frozenset(digests), held
    held = held_by_trash(tx, package.id, held)
    staying = set[str]()
    planned = _Planned(doomed, (held.digests, staying))
    for digest in digests:
        if digest in planned and may_remove_manifest(tx, package.id, digest, planned, before_ms, now_ms):
            delete_manifest(tx, repository, package.key, digest, actor, now_ms, disposal=FOR_GOOD)
        else:
            staying.add(digest)
    return staying, held


@frozen
class _Planned:
    """The digests in a set, as long as they are in none of others, which may grow; sets of 50,000 are not copied."""

    doomed: Set[str]
    without: Sequence[Set[str]]

    def __contains__(self, digest: object) -> bool:
        return digest in self.doomed and not any(digest in each for each in self.without)


def remove_links(
    tx: Transaction, repository: Repository, package: Package, sha256s: Sequence[str], before_ms: int, now_ms: int
) -> None:
    """Unlink the blobs of an image that still no manifest of it refers to."""
    if _was_removed(tx, repository, package):
        return
    for sha256 in sha256s:
        if may_remove_blob(tx, package.id, sha256, before_ms, now_ms):
            delete_blob(tx, repository, package.key, f"sha256:{sha256}", now_ms)


def remove_blob_rows(tx: Transaction, storage_id: int, gone: Sequence[BlobInfo]) -> None:
    """Remove the rows of blobs marked as deleting whose bytes were removed."""
    for info in gone:
        gc.remove_blob_row(tx, storage_id, info.sha256, info.locator)


def _count(gone: Sequence[BlobInfo], report: GcReport) -> None:
    report.blobs += len(gone)
    report.freed += sum(info.size for info in gone)


def _was_removed(tx: Transaction, repository: Repository, package: Package) -> bool:
    """Whether an image was removed meanwhile; its name or its id may belong to a new one."""
    found = packages.find_package(tx, repository.id, package.key)
    return found is None or found.id != package.id
