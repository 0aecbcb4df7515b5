"""
Makes a backup, beside servers or without one.

=====  ===============================================================  ==============================================
step   what                                                             a crash after it
=====  ===============================================================  ==============================================
1      the job has begun: from its commit on, garbage collections mark  the lease of the job ends, and collections go on
       nothing (see L{pkgrepo.storage.catalog.blobs.gc})
2      a copy of the catalog, of one snapshot, in a temporary folder    the folder is removed by the next backup
3      each blob that the copy names, and the place does not have       the copies stay, and the next backup uses them
4      the copy of the catalog and the list of blobs                    copies that no manifest names
5      the manifest: the backup exists                                  the backup is whole
6      older backups than those to keep are removed, manifests first,   copies that no manifest names
       then the copies that no manifest names                           are removed by the next backup
=====  ===============================================================  ==============================================

So a blob that the copy of the catalog names cannot be collected before it is copied, and a backup that exists is never
changed. The bytes of each copy are compared with its digest while they are copied. What the server itself has lost is
listed as lost; anything else that cannot be copied fails the backup.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define, frozen
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.concurrency.together import together
from pkgrepo.errors import BlobMissing, PkgrepoError, StorageFull
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.integrity import digest_of
from pkgrepo.repositories.upkeep.blob_copies import copy_file
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.storage_move import move_copy
from pkgrepo.s3.places import Destination
from pkgrepo.storage.blobs.durability import storage_error
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.secret_box import SecretBox

from .ledger import Ledger, Wanted
from .manifests import FORM, LOST, Manifest, Part, decode, encode, id_of, key_name, read_list, sha256_of
from .place import Place, content_id, open_place
from .reading import BackupProblem, get_part, list_backups

PAGE: Final = 200
PARALLEL: Final = 8  # blobs that are copied at once
SCRATCH: Final = "backup-scratch"  # folder in the data folder, of what a backup needs while it runs

log = Logger()


@frozen(kw_only=True)
class BackupOptions:
    """
    Where a backup goes, how many are kept (``keep``, at least 1), and whether it has the key of the server.

    With ``renew`` the copies that the place has are read, and damaged ones are copied again.
    """

    destination: Destination
    keep: int
    with_key: bool = False
    renew: bool = False


@define
class BackupReport:
    """What was done: the id of the backup, its blobs and bytes, those that were copied now, and what was removed."""

    id: str = ""
    blobs: int = 0
    size: int = 0
    copied: int = 0
    copied_size: int = 0
    lost: int = 0
    removed: int = 0
    backups: int = 0
    problems: list[str] = Factory(list)

    def to_json(self) -> dict[str, Any]:
        """Return the form in which the job's row stores it."""
        return {
            "id": self.id,
            "blobs": self.blobs,
            "bytes": self.size,
            "copied": self.copied,
            "copied_bytes": self.copied_size,
            "lost": self.lost,
            "removed": self.removed,
            "backups": self.backups,
        }


class BackupWriter(MaintenanceWork):
    """
    Makes backups of the server with the data folder ``data``.

    ``copy_catalog`` copies one snapshot of the catalog to a new file, while its second argument returns True; it
    blocks. ``secrets`` has the key in the file ``key``.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        *,
        copy_catalog: Callable[[Path, Callable[[], bool]], None],
        data: Path,
        key: Path,
        secrets: SecretBox,
        low_water: int | None,
    ) -> None:
        super().__init__(context)
        self._copy_catalog = copy_catalog
        self._scratch = data / SCRATCH
        self._key = key
        self._secrets = secrets
        self._low_water = low_water

    async def run(self, options: BackupOptions, progress: Progress) -> BackupReport:
        """
        Make a backup, in a job as L{runs.begin_backup} begins it: that one holds off collections.

        :raises BackupProblem: it is not made, since some blobs cannot be copied
        :raises PkgrepoError: the place or the catalog cannot be used
        """
        server = await self._catalog.write(settings.ensure_server_uid)
        uid = content_id(server)
        disk = self._pools.disk
        goes_on = [True]
        try:
            await disk(_make_empty, self._scratch)
            place = await open_place(
                options.destination,
                self._pools,
                uid=uid,
                scratch=self._scratch,
                low_water=self._low_water,
                writes=True,
            )
            try:
                return await self._run(place, options, server, progress, lambda: goes_on[0])
            finally:
                await place.close()
        except OSError as error:
            raise storage_error(f"folder {self._scratch}", error) from error
        finally:
            goes_on[0] = False
            await disk(partial(shutil.rmtree, self._scratch, ignore_errors=True))

    async def _run(
        self, place: Place, options: BackupOptions, server: str, progress: Progress, goes_on: Callable[[], bool]
    ) -> BackupReport:
        disk, report = self._pools.disk, BackupReport()
        made_at = from_ms(self._clock.now_ms())
        copy, listed = self._scratch / "catalog.db", self._scratch / "list"
        progress.begin("copy of the catalog", 0)
        await disk(self._copy_catalog, copy, goes_on)
        progress.end()
        ledger: Ledger = await disk(Ledger, self._scratch / "ledger.db", copy)
        try:
            await self._compare(place, ledger, progress)
            report.blobs, report.size = await disk(ledger.totals)
            await self._copy_blobs(place, ledger, options, report, progress)
            if report.problems:
                raise BackupProblem(report.problems)
            await disk(ledger.write_list, listed)
        finally:
            await disk(ledger.close)
        key = await disk(self._key.read_bytes) if options.with_key else None
        catalog_part = await self._store(place, copy, hidden=True)
        list_part = await self._store(place, listed, hidden=False)
        manifest = Manifest(
            form=FORM,
            made_at=made_at,
            server=server,
            version=__version__,
            schema=load_schema().version,
            catalog=catalog_part,
            list=list_part,
            blobs=report.blobs,
            bytes=report.size,
            lost=report.lost,
            key_fingerprint=self._secrets.fingerprint,
            key_sha256=None if key is None else sha256_of(key),
        )
        name, data = encode(manifest)
        report.id = id_of(name)
        if key is not None:
            await place.write(key_name(report.id), key)
        await place.write(name, data)
        await self._prune(place, options.keep, report, progress)
        return report

    async def _compare(self, place: Place, ledger: Ledger, progress: Progress) -> None:
        """Find out what the place has. A damaged list of an earlier backup only makes more be copied."""
        progress.begin("copies that are there", 0)
        await self._add_present(place, ledger, progress)
        for rank, name in enumerate(await list_backups(place), 1):
            path = self._scratch / f"list-{rank}"
            try:
                manifest = decode(name, await place.read(name))
                await get_part(place, self._pools, manifest.list, path, "list of blobs")
                await self._pools.disk(ledger.add_listed, read_list(path), rank)
            except PkgrepoError as error:
                log.warn("{error}", error=str(error))
            await self._pools.disk(partial(path.unlink, missing_ok=True))
        await self._pools.disk(ledger.match)
        progress.end()

    async def _add_present(self, place: Place, ledger: Ledger, progress: Progress) -> None:
        after = ""
        while page := await place.store.scan(after):
            await self._pools.disk(ledger.add_present, [(locator, size) for locator, size, _ in page])
            progress.step(len(page))
            after = page[-1][0]

    async def _copy_blobs(
        self, place: Place, ledger: Ledger, options: BackupOptions, report: BackupReport, progress: Progress
    ) -> None:
        await self._registry.refresh()
        progress.begin("blobs", report.blobs)
        after = ""
        page: Sequence[Wanted]
        while page := await self._pools.disk(ledger.page, after, PAGE):
            copied: list[tuple[str, str]] = []
            for start in range(0, len(page), PARALLEL):
                some = page[start : start + PARALLEL]
                await together(self._copy_blob(place, each, options, report, copied) for each in some)
                progress.step(len(some))
            await self._pools.disk(ledger.set_locators, copied)
            after = page[-1].sha256
        progress.end()

    async def _copy_blob(
        self,
        place: Place,
        wanted: Wanted,
        options: BackupOptions,
        report: BackupReport,
        copied: list[tuple[str, str]],
    ) -> None:
        if wanted.locator and not (options.renew and await self._is_damaged(place, wanted)):
            return
        lost, reason = True, "no storage has it"
        for storage_id, locator in wanted.sources:
            try:
                info = await self._copy_from(place, storage_id, wanted, locator)
            except StorageFull:
                raise
            except FAILURES as error:
                reason = reason_of(error)
                lost = lost and await self._catalog.look(blobs.is_suspect, storage_id, wanted.sha256)
            else:
                copied.append((wanted.sha256, info.locator))
                report.copied += 1
                report.copied_size += info.size
                return
        if lost:
            copied.append((wanted.sha256, LOST))
            report.lost += 1
        else:
            report.problems.append(f"blob {wanted.sha256} cannot be copied: {reason}")

    async def _copy_from(self, place: Place, storage_id: int, wanted: Wanted, locator: str) -> BlobInfo:
        """Copy a blob; one that was moved or stored again since the snapshot is found where it is now."""
        storage = self._registry.storage(storage_id)
        store: IBlobStore = await self._stores.of(storage)
        try:
            return await move_copy(store, place.store, BlobInfo(wanted.sha256, wanted.size, locator, {}))
        except BlobMissing:
            found = await self._catalog.look(blobs.find_blob, storage_id, wanted.sha256)
            if found is None or found.locator == locator:
                raise
            return await move_copy(await self._stores.of(storage), place.store, found)

    async def _is_damaged(self, place: Place, wanted: Wanted) -> bool:
        try:
            return await digest_of(self._pools, place.store, wanted.locator) != wanted.sha256
        except FAILURES:
            return True

    async def _store(self, place: Place, path: Path, *, hidden: bool) -> Part:
        sha256, size = await self._pools.disk(_measure, path)
        info = await copy_file(self._pools, place.store, path, sha256, size, ())
        if hidden:
            await place.hide(info)
        return Part.of(info)

    async def _prune(self, place: Place, keep: int, report: BackupReport, progress: Progress) -> None:
        """Remove older backups, and the copies that none of the kept ones has."""
        disk = self._pools.disk
        names = await list_backups(place)
        kept = names[-keep:]
        for name in names[:-keep]:
            await place.remove(name)
        ids = {id_of(name) for name in kept}
        for name in await place.names("keys"):
            if name not in {key_name(each) for each in ids}:
                await place.remove(name)
        report.backups = len(kept)
        progress.begin("copies that no backup has", 0)
        ledger: Ledger = await disk(Ledger, self._scratch / "prune.db")
        try:
            for rank, name in enumerate(kept):
                path = self._scratch / f"kept-{rank}"
                try:
                    manifest = decode(name, await place.read(name))
                    await get_part(place, self._pools, manifest.list, path, "list of blobs")
                    await disk(ledger.add_used, [manifest.catalog.locator, manifest.list.locator])
                    await disk(ledger.add_used, (each.locator for each in read_list(path)))
                except PkgrepoError as error:
                    log.warn("nothing is removed from {place}: {error}", place=place.address, error=str(error))
                    return
            await self._add_present(place, ledger, progress)
            after = ""
            while unused := await disk(ledger.unused, after, PAGE):
                for locator in unused:
                    await place.store.delete(locator)
                    report.removed += 1
                after = unused[-1]
        finally:
            await disk(ledger.close)
            progress.end()


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)


def _measure(path: Path) -> tuple[str, int]:
    return sha256_of(path), path.stat().st_size
