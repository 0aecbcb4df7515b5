"""The route to the statistics of a repository."""

from __future__ import annotations

from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.management.jobs.records import job_record
from pkgrepo.management.repositories.configuration.parts import warnings_of
from pkgrepo.management.upstreams.schema import CacheFigures
from pkgrepo.model import RepositoryType
from pkgrepo.repositories.upkeep.gc import KIND
from pkgrepo.storage.catalog.server.statistics import repository_figures
from pkgrepo.storage.catalog.usage.cache_counts import cache_counts

from .schema import DownloadFigures, RepositoryStats, TopImage, TopPackageRecord, UploadFigures


class Statistics(Handlers):
    """Shows what a repository contains and how it is used."""

    table = Table("repositories")

    @table.route(
        "GET",
        "/repository/<repository>/stats",
        access=ADMINS,
        summary="Show statistics of a repository",
        answer=RepositoryStats,
    )
    async def show(self, call: Call) -> RepositoryStats:
        """The figures are counted at each request, in a background thread."""
        repository = call.repository
        found = await self._catalog.scan(repository_figures, repository.storage_id, repository.id, call.now_ms)
        # images have tags where other packages have versions
        images = found.manifests > 0
        versions = found.tags if images else found.versions
        counts = await self._catalog.look(cache_counts, repository.id)
        job = await self._services.jobs.last(KIND, self._registry.storage(repository.storage_id).uid)
        return RepositoryStats(
            repository_id=repository.uid,
            total_images=found.packages,
            total_tags=versions,
            storage_used=for_people(found.stored),
            last_activity=found.last_activity,
            top_images=[
                TopImage(name=each.name, tag_count=each.tags if images else each.versions) for each in found.top
            ],
            format=repository.format,
            type=repository.type,
            total_packages=found.packages,
            total_versions=versions,
            total_files=found.blobs if images else found.files,
            total_manifests=found.manifests,
            total_blobs=found.blobs,
            storage_used_bytes=found.stored,
            logical_bytes=found.logical,
            shared_bytes=found.shared,
            unreferenced_bytes=found.unreferenced,
            pending_uploads=found.pending_uploads,
            downloads=DownloadFigures(
                total=found.downloads[0], day=found.downloads[1], week=found.downloads[2], month=found.downloads[3]
            ),
            uploads=UploadFigures(total=found.uploads[0], day=found.uploads[1]),
            cache=CacheFigures.of(counts) if repository.type is RepositoryType.PROXY else None,
            top_packages=[
                TopPackageRecord(
                    name=each.name,
                    versions=each.tags if images else each.versions,
                    downloads=each.downloads,
                    bytes=each.size,
                )
                for each in found.top
            ],
            warnings=warnings_of(self._services, repository),
            gc=None if job is None else job_record(job, repository),
        )


def for_people(size: int) -> str:
    """A size in bytes with a binary unit: 2684354560 is 2.5GB."""
    value, units = float(size), ["B", "KB", "MB", "GB", "TB", "PB", "EB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f}".removesuffix(".0") + units[0]
