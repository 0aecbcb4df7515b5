"""Checks that all blobs of the catalog are stored with the right bytes, and that the readable layout is correct."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from attrs import Factory, define

from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo, Repository, Storage
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.integrity import find_damage
from pkgrepo.repositories.layout.images.directory import ImageLayoutWriter
from pkgrepo.repositories.layout.images.large_images import LargeImages
from pkgrepo.repositories.layout.marker import NO_LAYOUT, folders_of
from pkgrepo.repositories.layout.storage_layouts import StorageLayouts
from pkgrepo.repositories.layout.updater import open_writer
from pkgrepo.repositories.layout.writer import LayoutWriter, Plan
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.sweep import COPY_GRACE, Sweep
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.blobs.gc import BlobReference, blobs_in_repository
from pkgrepo.storage.catalog.packages import events, files, packages
from pkgrepo.storage.catalog.packages.files import packages_with_tombstones
from pkgrepo.storage.layout_folder import layout_folder_of

from .mending import Mender

PAGE = 500
MAX_NAMED = 5  # files or packages that a sentence lists


@define
class VerifyReport:
    """
    What was found.

    ``problems`` are sentences about what is wrong and was not repaired; ``notes`` are about settings that are a risk.
    """

    blobs: int = 0
    size: int = 0
    missing: int = 0
    damaged: int = 0
    unnamed: int = 0
    layout_changes: int = 0
    mended: int = 0
    problems: list[str] = Factory(list)
    notes: list[str] = Factory(list)


class Verifier(MaintenanceWork):
    """
    Hashes every blob, finds copies that no row names, and compares the readable layout with the catalog.

    With ``repair`` lost or damaged blobs are replaced if their bytes are found elsewhere (see L{Mender}), the
    layout is corrected, and unreferenced copies are removed. Other bad blobs are marked as suspect and reported. What
    cannot be checked is reported too, and the check goes on.
    """

    def __init__(self, context: MaintenanceContext, *, progress: Progress, repair: bool, mender: Mender) -> None:
        super().__init__(context)
        self._progress = progress
        self._repair = repair
        self._sweep = Sweep(context)
        self._mender = mender
        self._large_images = LargeImages(context.catalog, context.pools)
        self._report = VerifyReport()

    async def run(self) -> VerifyReport:
        """Check every storage, then the readable layout of every repository."""
        await self._registry.refresh()
        for storage in self._registry.storages():
            if not storage.readable_layout:
                self._report.notes.append(f"{storage.name}: {NO_LAYOUT}")
            await self._attempt(f"storage {storage.name!r}", self._check_storage(storage))
        for repository in self._registry.all():
            await self._attempt(repository.path, self._check_layout(repository))
        if self._report.mended:
            await self._attempt("what was mended", StorageLayouts(self._context).sync())
        return self._report

    async def run_blobs(self, repository: Repository) -> VerifyReport:
        """
        Check only the blobs of one repository.

        The readable layout is left alone: beside a server that is publishing it is always a little behind.
        """
        storage = self._registry.storage(repository.storage_id)
        store = await self._stores.of(storage)
        await self._attempt(f"{repository.path}: its blobs", self._check_blobs(storage, store, repository))
        return self._report

    async def _attempt(self, what: str, work: Coroutine[Any, Any, None]) -> None:
        """Do a part of the work; a failure is reported as a problem."""
        try:
            await work
        except FAILURES as error:
            self._report.problems.append(f"{what} cannot be checked: {reason_of(error)}")

    async def _check_storage(self, storage: Storage) -> None:
        store = await self._stores.of(storage)
        await self._attempt(f"storage {storage.name!r}: its blobs", self._check_blobs(storage, store))
        await self._attempt(f"storage {storage.name!r}: its copies", self._find_unnamed(storage, store))
        await self._attempt(f"storage {storage.name!r}: its readable layout", self._find_removed(storage, store))

    async def _check_blobs(self, storage: Storage, store: IBlobStore, repository: Repository | None = None) -> None:
        """Check the blobs of a storage, or of these only those of a repository."""
        total = await self._catalog.scan(blobs.count_blobs, storage.id)
        label = f"blobs of {storage.name}"
        self._progress.begin(label if repository is None else f"{label}, those in {repository.path}", total)
        after = b""
        while page := await self._catalog.scan(blobs.list_blobs, storage.id, after, PAGE):
            wanted = {info.sha256 for info in page}
            if repository is not None:
                wanted = await self._catalog.scan(blobs_in_repository, repository.id, sorted(wanted))
            for info in page:
                self._progress.step()
                if info.sha256 not in wanted:
                    continue
                await self._check_blob(storage, store, info)
                self._report.blobs += 1
                self._report.size += info.size
            after = bytes.fromhex(page[-1].sha256)
        self._progress.end()

    async def _check_blob(self, storage: Storage, store: IBlobStore, info: BlobInfo) -> None:
        report = self._report
        try:
            damage = await find_damage(self._pools, store, info.locator, info.sha256)
        except FAILURES as error:
            report.problems.append(f"{storage.name}: blob {info.sha256} cannot be checked: {reason_of(error)}")
            return
        if damage is None:
            await self._catalog.write(blobs.set_verified, storage.id, [info.sha256], self._clock.now_ms())
            return
        found = await self._mender.mark(storage, store, info, damage, replace=self._repair)
        if found is None:
            return  # a server removed or replaced it meanwhile
        if damage.missing:
            report.missing += 1
        else:
            report.damaged += 1
        if found.mended:
            report.mended += 1
        else:
            needed = self._needed_by(found.users)
            report.problems.append(f"{storage.name}: blob {info.sha256}: {damage.finding}{needed}")

    def _needed_by(self, users: Sequence[BlobReference]) -> str:
        """Return which files a blob belongs to, as the end of a sentence."""
        named = []
        for user in users:
            repository = self._registry.find_id(user.repository_id)
            where = "a removed repository" if repository is None else repository.path
            file = f" ({user.path.rpartition('/')[2]})" if user.path else ""
            named.append(f"{where}: {user.package} {user.version}".rstrip(": ") + file)
        return f"; it belongs to {_abbreviated(named)}" if named else "; nothing refers to it"

    async def _find_unnamed(self, storage: Storage, store: IBlobStore) -> None:
        self._progress.begin(f"copies in {storage.name}", 0)
        now = from_ms(self._clock.now_ms())
        async for locator in self._sweep.unreferenced_copies(storage, store, now - COPY_GRACE, now):
            self._report.unnamed += 1
            if self._repair:
                await store.delete(locator)
                self._report.mended += 1
            else:
                self._report.problems.append(f"{storage.name}: no row names the copy {locator}")
            self._progress.step()
        self._progress.end()

    async def _find_removed(self, storage: Storage, store: IBlobStore) -> None:
        layout = layout_folder_of(store)
        if layout is None:
            return
        removed = await self._catalog.scan(events.removed_repository_uids)
        await self._registry.refresh()  # one that was put back is no removed one
        removed.difference_update(repository.uid for repository in self._registry.all())
        for folder in await self._pools.disk(folders_of, layout, removed):
            self._report.layout_changes += 1
            sentence = f"{storage.name}: the readable layout still has the folder {folder} of a removed repository"
            try:
                if self._repair:
                    await self._pools.disk(layout.discard, folder)
                    self._report.mended += 1
                else:
                    self._report.problems.append(sentence)
            except OSError as error:
                self._report.problems.append(f"{sentence}, which cannot be taken away: {error.strerror}")

    async def _check_layout(self, repository: Repository) -> None:
        writer = await open_writer(self._context, repository)
        if writer is None:
            return
        self._progress.begin(f"readable layout of {repository.path}", repository.package_count)
        await self._check_entry(repository, writer)
        after = ""
        known: dict[str, list[str]] = {}
        while page := await self._catalog.scan(packages.list_packages, repository.id, after=after, limit=PAGE):
            for package in page:
                names = await self._catalog.scan(writer.entries, package)
                known[package.key] = [text for _, text in names]
                for key, text in names:
                    await self._check_entry(repository, writer, package.key, key, text)
                self._progress.step()
            after = page[-1].key
        await self._check_plain_files(repository, writer, known)
        for key in await self._catalog.scan(packages_with_tombstones, repository.id):
            if key not in known:
                known[key] = []
                await self._check_entry(repository, writer, key)
        await self._mend_or_report(repository.path, writer, await self._pools.disk(writer.plan_leftovers, known))
        self._progress.end()

    async def _check_plain_files(
        self, repository: Repository, writer: LayoutWriter[Any], known: dict[str, list[str]]
    ) -> None:
        after = ""
        while page := await self._catalog.scan(files.list_plain_files, repository.id, after, PAGE):
            known.setdefault("", []).extend(page)
            for path in page:
                await self._check_entry(repository, writer, "", path, path)
            after = page[-1]

    async def _check_entry(
        self, repository: Repository, writer: LayoutWriter[Any], package: str = "", key: str = "", version: str = ""
    ) -> None:
        what = f"{repository.path}: {package} {version}".rstrip(": ")
        await self._attempt(f"{what}: the readable layout", self._compare_entry(what, writer, package, key, version))

    async def _compare_entry(self, what: str, writer: LayoutWriter[Any], package: str, key: str, version: str) -> None:
        if not package and not version:
            await self._mend_or_report(what, writer, await self._pools.disk(writer.plan_repository))
            return
        snapshot = await self._catalog.scan(writer.read, package, key)
        if snapshot is None and isinstance(writer, ImageLayoutWriter):
            async with aclosing(self._large_images.differences(writer, package)) as plans:
                async for plan in plans:
                    await self._mend_or_report(what, writer, plan)
            return
        await self._mend_or_report(what, writer, await self._pools.disk(writer.plan, package, version, snapshot))

    async def _mend_or_report(self, what: str, writer: LayoutWriter[Any], plan: Plan) -> None:
        if not len(plan):
            return
        self._report.layout_changes += len(plan)
        if not self._repair:
            places = "place" if len(plan) == 1 else "places"
            self._report.problems.append(
                f"{what}: the readable layout differs in {len(plan)} {places}: {_abbreviated(plan.places)}"
            )
            return
        try:
            await self._pools.disk(writer.apply, plan)
        except FAILURES as error:
            self._report.problems.append(
                f"{what}: the readable layout cannot be mended ({reason_of(error)}): {_abbreviated(plan.places)}"
            )
        else:
            self._report.mended += len(plan)


def _abbreviated(names: Sequence[str]) -> str:
    """Return a list for a sentence; of a long one only the first names and the number of the others."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
