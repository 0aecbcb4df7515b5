"""Rebuilds the catalog from the readable layout, after the database was lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from attrs import Factory, define

from pkgrepo.archives.image_layout import INDEX
from pkgrepo.auth.permissions.admission import Road, admit_server
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Actor, BlobInfo, NewFile, Repository, Storage, VersionState
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.layout.images.directory import (
    IMAGE,
    MANIFESTS,
    BlobEntry,
    ImagePlaces,
    ImageSidecar,
    ManifestSidecar,
)
from pkgrepo.repositories.layout.marker import NO_LAYOUT, LayoutMarker, read_marker
from pkgrepo.repositories.layout.restore import (
    BATCH,
    restore_burned,
    restore_kept,
    restore_manifests,
    restore_package,
    restore_published_at,
    restore_repository,
    restore_tags,
)
from pkgrepo.repositories.layout.sidecars import (
    BURNED,
    PACKAGE,
    REPOSITORY,
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    RepositorySidecar,
    VersionSidecar,
    decode,
)
from pkgrepo.repositories.layout.trees import KeptSidecar, kind_of
from pkgrepo.repositories.publish.package_changes import set_version_state
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.publish.releases import Release, publish_release
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.rebuild import restore_documents
from pkgrepo.repositories.upkeep.sweep import UNCLAIMED_KEPT
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.layout_folder import LayoutFolder, layout_folder_of

from .blob_copies import copy_file

PAGE = 500

_KINDS: Mapping[str, type[PackageSidecar | BurnedSidecar | ImageSidecar]] = {
    PACKAGE: PackageSidecar,
    BURNED: BurnedSidecar,
    IMAGE: ImageSidecar,
}
AtEnd = PackageSidecar | BurnedSidecar | ImageSidecar | KeptSidecar  # sidecars that need the versions


@define
class ReindexReport:
    """
    The numbers of restored objects.

    ``problems`` are sentences about objects that could not be restored, or that the layout may lack. ``notes`` are
    about blobs that belong to no object although the layout was complete.
    """

    repositories: int = 0
    versions: int = 0
    files: int = 0
    manifests: int = 0
    tags: int = 0
    problems: list[str] = Factory(list)
    notes: list[str] = Factory(list)


class Reindexer(MaintenanceWork):
    """
    Reads all sidecars of all storages and restores what they describe, with the original times and publishers.

    Objects that the catalog already has are not changed, so a second run does nothing. Users, tokens and grants are not
    in the layout and are not restored.
    """

    def __init__(self, context: MaintenanceContext, *, progress: Progress) -> None:
        super().__init__(context)
        self._formats = context.formats
        self._progress = progress
        self._report = ReindexReport()

    async def run(self) -> ReindexReport:
        """Restore the content of every storage."""
        await self._registry.refresh()
        for storage in self._registry.storages():
            try:
                store = await self._stores.of(storage)
            except PkgrepoError as error:
                self._report.problems.append(f"storage {storage.name!r} cannot be opened: {error}")
                continue
            layout = layout_folder_of(store)
            if layout is not None:
                await self._restore_storage(storage, store, layout)
                await restore_documents(self._context, storage, store)
                await self._report_unclaimed(storage, store, await self._pools.disk(read_marker, layout))
        return self._report

    async def _restore_storage(self, storage: Storage, store: IBlobStore, layout: LayoutFolder) -> None:
        def unreadable(place: str, error: Exception) -> None:
            self._report.problems.append(f"{storage.name}: {place}: {reason_of(error)}")

        await self._restore_repositories(storage, layout, unreadable)
        trees = {each.folder for each in self._registry.all() if self._is_tree(each) and each.storage_id == storage.id}
        walk = layout.walk(failed=unreadable)
        places = await self._pools.disk(lambda: [place for place in walk if _is_sidecar(place, trees)])
        places.sort(key=lambda place: (place.count("/"), place))
        self._progress.begin(f"sidecars of {storage.name}", len(places))
        found: list[tuple[Repository, AtEnd]] = []
        images: dict[str, list[str]] = {}  # sidecars of manifests by the directory of the image
        for place in places:
            image, inside, _ = place.partition(f"/{MANIFESTS}/")
            if inside:
                images.setdefault(image, []).append(place)
                continue
            try:
                await self._restore_sidecar(storage, store, layout, place, found)
            except FAILURES as error:
                unreadable(place, error)
            self._progress.step()
        for some in images.values():
            for manifests in batches(some, BATCH):
                await self._restore_manifests(storage, store, layout, manifests)
        await self._restore_at_end(found)
        self._progress.end()

    async def _restore_at_end(self, found: Sequence[tuple[Repository, AtEnd]]) -> None:
        # Fragments that are kept may be all that a package has, so that they make it.
        for repository, sidecar in sorted(found, key=lambda each: not isinstance(each[1], KeptSidecar)):
            if isinstance(sidecar, ImageSidecar):
                await self._restore_tags(repository, sidecar)
            elif isinstance(sidecar, BurnedSidecar):
                await self._catalog.write(restore_burned, repository, sidecar)
            elif isinstance(sidecar, KeptSidecar):
                await self._catalog.write(restore_kept, repository, sidecar, self._clock.now_ms())
            else:
                await self._restore_package(repository, sidecar)

    async def _restore_repositories(
        self, storage: Storage, layout: LayoutFolder, unreadable: Callable[[str, Exception], None]
    ) -> None:
        for folder in await self._pools.disk(layout.folders):
            place = f"{folder}/{REPOSITORY}"
            try:
                data = await self._pools.disk(layout.read, place)
                if data is not None:
                    await self._restore_repository(storage, decode(data, RepositorySidecar, place))
            except FAILURES as error:
                unreadable(place, error)

    def _is_tree(self, repository: Repository) -> bool:
        format_ = self._formats.get(repository.format)
        return format_ is not None and format_.tree is not None

    async def _report_unclaimed(self, storage: Storage, store: IBlobStore, marker: LayoutMarker | None) -> None:
        """Report what the layout may lack, according to its marker and to blobs of no restored object."""
        count, size = await self._count_unknown_copies(storage, store)
        bytes_ = f"{count} blobs of {size} bytes in storage {storage.name} belong to nothing that was taken in"
        if not storage.readable_layout and not count:
            return
        losses = [NO_LAYOUT]
        if storage.readable_layout:
            losses = _possible_losses(marker, await self._catalog.look(settings.server_uid))
        self._report.problems += [f"{storage.name}: {loss}" for loss in losses]
        if count and losses:
            await self._catalog.write(settings.put, settings.UNCLAIMED_BEFORE, str(self._clock.now_ms()))
            self._report.problems.append(
                f"{bytes_}: they may be of what is missing, and are kept for {UNCLAIMED_KEPT.days} days"
            )
        elif count:
            self._report.notes.append(f"{bytes_}; they are of what was deleted or never published")

    async def _count_unknown_copies(self, storage: Storage, store: IBlobStore) -> tuple[int, int]:
        """Return the number and the total size of blobs whose content the catalog does not know."""
        self._progress.begin(f"blobs of {storage.name}", 0)
        count = size = 0
        after = ""
        while page := await store.scan(after, PAGE):
            sizes = {locator: length for locator, length, _ in page}
            found = await self._catalog.scan(blobs.locators_without_blob, storage.id, list(sizes))
            count += len(found)
            size += sum(sizes[locator] for locator in found)
            self._progress.step(len(page))
            after = page[-1][0]
        self._progress.end()
        return count, size

    async def _restore_sidecar(
        self,
        storage: Storage,
        store: IBlobStore,
        layout: LayoutFolder,
        place: str,
        found: list[tuple[Repository, AtEnd]],
    ) -> None:
        """Restore what a sidecar describes, or add it to ``found`` to be restored when all versions are."""
        data = await self._pools.disk(layout.read, place)
        if data is None:
            return
        repository = self._repository_of(storage, place)
        name = PurePosixPath(place).name
        if name == INDEX:
            return  # for other programs; the image's own sidecars have the same data
        kind = kind_of(place)
        sidecar: Any = decode(data, _KINDS.get(name, VersionSidecar) if kind is None else kind, place)
        if isinstance(sidecar, VersionSidecar):
            await self._restore_version(repository, store, layout, sidecar)
        elif isinstance(sidecar, FileSidecar):
            await self._restore_plain_file(repository, store, layout, sidecar)
        else:
            found.append((repository, sidecar))

    def _repository_of(self, storage: Storage, place: str) -> Repository:
        repository = self._registry.find_folder(storage.name, place.split("/", 1)[0])
        if repository is None:
            raise Invalid("its repository has no sidecar")
        return repository

    async def _restore_repository(self, storage: Storage, sidecar: RepositorySidecar) -> None:
        if self._registry.find(storage.name, sidecar.name) is not None:
            return
        if sidecar.format not in self._formats:
            raise Invalid(f"no format is called {sidecar.format!r}")
        parent_name = sidecar.name.rpartition("/")[0]  # empty unless it is a companion, which comes after its parent
        parent = self._registry.find(storage.name, parent_name)
        if parent_name and parent is None:
            raise Invalid(f"there is no repository {parent_name!r}, which it belongs to")
        parent_id = None if parent is None else parent.id
        await self._catalog.write(restore_repository, storage.id, sidecar, parent_id, self._clock.now_ms())
        await self._registry.refresh()
        self._report.repositories += parent is None

    async def _restore_version(
        self, repository: Repository, store: IBlobStore, layout: LayoutFolder, sidecar: VersionSidecar
    ) -> None:
        format_ = self._formats[repository.format]
        actor = admit_server(Road.REINDEX, repository, Actor(name=sidecar.publisher))
        fresh = False
        # One publish for each time of upload; a companion file has the time of its distribution.
        groups: dict[int, list[NewFile]] = {}
        for file in sidecar.files:
            blob = await self._find_blob(store, layout, file)
            new = NewFile(path=file.path, blob=blob, media_type=file.media_type, attrs=file.attrs)
            groups.setdefault(round(file.created_at.timestamp() * 1000), []).append(new)
        for created_ms, files in sorted(groups.items()):
            release = Release(
                package_key=sidecar.package,
                package_name=sidecar.package,
                version_key=sidecar.key,
                version_text=sidecar.version,
                sort=sidecar.sort,
                files=tuple(files),
                meta=sidecar.meta,
            )
            published = await self._catalog.write(
                publish_release, repository, release, actor, format_.index, created_ms
            )
            self._report.files += len(published.files) if published.changed else 0
            fresh = fresh or published.changed
        if fresh:
            await self._catalog.write(restore_published_at, repository, sidecar, format_.index, self._clock.now_ms())
        self._report.versions += fresh
        if fresh and sidecar.state != VersionState.LIVE:
            change = (sidecar.package, sidecar.key, VersionState(sidecar.state), sidecar.reason)
            now_ms = self._clock.now_ms()
            await self._catalog.write(set_version_state, repository, *change, actor, format_.index, now_ms)

    async def _restore_plain_file(
        self, repository: Repository, store: IBlobStore, layout: LayoutFolder, sidecar: FileSidecar
    ) -> None:
        new = NewFile(
            path=sidecar.path,
            blob=await self._find_blob(store, layout, sidecar),
            media_type=sidecar.media_type,
            attrs=sidecar.attrs,
        )
        created_ms = round(sidecar.created_at.timestamp() * 1000)
        restored = admit_server(Road.REINDEX, repository, Actor())
        put = await self._catalog.write(put_plain_file, repository, new, False, restored, None, created_ms)
        self._report.files += put.changed

    async def _restore_manifests(
        self, storage: Storage, store: IBlobStore, layout: LayoutFolder, places: Sequence[str]
    ) -> None:
        """Restore some manifests of one image, with their blobs."""
        found: dict[str, BlobInfo] = {}
        sidecars: list[ManifestSidecar] = []
        for place in places:
            self._progress.step()
            try:
                repository = self._repository_of(storage, place)
                data = await self._pools.disk(layout.read, place)
                sidecar = decode(data or b"", ManifestSidecar, place)
            except FAILURES as error:
                self._report.problems.append(f"{storage.name}: {place}: {reason_of(error)}")
                continue
            sidecars.append(sidecar)
            entries: list[BlobEntry | ManifestSidecar] = [*sidecar.blobs, sidecar]
            for each in entries:
                if each.digest in found:
                    continue
                try:
                    found[each.digest] = await self._find_image_blob(repository, store, layout, sidecar.image, each)
                except PkgrepoError as error:
                    problem = f"{repository.path}: {sidecar.image}: {each.digest}: {error}"
                    self._report.problems.append(problem)
        if sidecars:
            self._report.manifests += await restore_manifests(
                self._catalog, repository, sidecars, found, self._clock.now_ms()
            )

    async def _find_image_blob(
        self,
        repository: Repository,
        store: IBlobStore,
        layout: LayoutFolder,
        image: str,
        entry: BlobEntry | ManifestSidecar,
    ) -> BlobInfo:
        place = ImagePlaces.of(repository.folder, image).bytes_of(entry.digest)
        return await self._find_bytes(store, layout, place, entry.locator, entry.sha256, entry.size, {})

    async def _restore_tags(self, repository: Repository, sidecar: ImageSidecar) -> None:
        lost: list[str] = []
        self._report.tags += await restore_tags(
            self._catalog, repository, sidecar.key, sidecar.tags, self._clock.now_ms(), lost
        )
        if lost:
            problem = f"{repository.path}: {sidecar.key}: {len(lost)} tags such as {lost[0]} have no manifest any more"
            self._report.problems.append(problem)

    async def _restore_package(self, repository: Repository, sidecar: PackageSidecar) -> None:
        format_ = self._formats[repository.format]
        try:
            await self._catalog.write(restore_package, repository, sidecar, format_.index, self._clock.now_ms())
        except PkgrepoError as error:
            self._report.problems.append(f"{repository.path}: {sidecar.key}: {error}")

    async def _find_blob(self, store: IBlobStore, layout: LayoutFolder, file: FileSidecar) -> BlobInfo:
        return await self._find_bytes(store, layout, file.place, file.locator, file.sha256, file.size, file.digests)

    async def _find_bytes(
        self,
        store: IBlobStore,
        layout: LayoutFolder,
        place: str,
        locator: str,
        sha256: str,
        size: int,
        digests: Mapping[str, str],
    ) -> BlobInfo:
        """Return the blob that a sidecar names, or make a new one from the file in the layout."""
        found = await store.stat(locator) if locator else None
        if found is not None and found[0] == size:
            return BlobInfo(sha256=sha256, size=size, locator=locator, digests={"sha256": sha256, **digests})
        return await copy_file(self._pools, store, layout.file(place), sha256, size, digests)


def _is_sidecar(place: str, trees: Collection[str]) -> bool:
    """Whether a place may hold a sidecar that belongs to no repository; ``trees`` are repositories with free paths."""
    if place.partition("/")[0] in trees:
        return kind_of(place) is not None
    return place.endswith(".json") and place.rpartition("/")[2] != REPOSITORY


def _possible_losses(marker: LayoutMarker | None, catalog: str | None) -> list[str]:
    """Return sentences about what a layout may lack of other catalogs than this one."""
    if marker is None:
        return [
            "the readable layout has no marker, as when it was written by an earlier release or the disk was full: the "
            "last changes may be missing"
        ]
    losses = []
    for status in (each for uid, each in marker.catalogs.items() if uid != catalog):
        at = f"{status.at:%Y-%m-%d %H:%M:%S} UTC"
        if status.missing is None:
            losses.append(f"the server that was started at {at} marked no clean stop: its last changes may be missing")
        elif status.missing:
            losses.append(f"{status.missing} changes were not in the readable layout when a server stopped at {at}")
    return losses
