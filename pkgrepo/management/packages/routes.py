"""The routes that show packages and versions."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, timedelta

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.model import Action, File, Version
from pkgrepo.storage.catalog.packages import files, packages, tags
from pkgrepo.storage.catalog.packages.summaries import find_package_summary
from pkgrepo.storage.catalog.usage.cache_counts import DAY_MS
from pkgrepo.storage.catalog.usage.downloads import downloads_of_package, package_downloads_by_day

from . import images
from .handlers import find_package, find_version
from .records import read_requirements, repository_url, version_record
from .schema import DailyDownloads, DayDownloads, PackageRecord, Requirement, VersionRecord

MOST_TAGS = 1000
MOST_FILES = 100_000  # of a version
MOST_DAYS = 731
EPOCH = date(1970, 1, 1)


table = Table("packages")


@table.route(
    "GET",
    "/package/<repository>/<package>",
    access=CONTENT_READERS,
    summary="Show a package",
    answer=PackageRecord,
)
async def show_package(call: Call) -> PackageRecord:
    """With the latest version, and the totals of its versions, files and downloads."""
    found = await call.catalog.scan(find_package_summary, call.repository.id, call.package or "")
    if found is None:
        raise NotFound("package", call.package or "")
    return PackageRecord.of(found)


@table.route(
    "GET",
    "/package/<repository>/<package>/downloads",
    access=CONTENT_READERS,
    summary="Show the downloads of a package by day",
    answer=DailyDownloads,
    query=[Parameter("days", f"The number of days up to today, 1 to {MOST_DAYS}; 90 by default.", "integer")],
)
async def show_downloads(call: Call) -> DailyDownloads:
    """Complete downloads of files, and pulls of images; a day begins at midnight UTC."""
    package, count = await find_package(call), call.integer("days", 90, 1, MOST_DAYS)
    today = call.now_ms // DAY_MS
    first = today - count + 1
    found = dict(await call.catalog.look(package_downloads_by_day, package.id, first, today + 1))
    total = await call.catalog.look(downloads_of_package, package.id)
    days = [DayDownloads(day=EPOCH + timedelta(days=day), count=found.get(day, 0)) for day in range(first, today + 1)]
    return DailyDownloads(package=package.name, total=total, days=days)


@table.route(
    "GET",
    "/package/<repository>/<package>/versions/<version>",
    access=CONTENT_READERS,
    summary="Show a version with its files",
    answer=VersionRecord,
    query=[Parameter("files", "Maximum number of files in the answer, the first ones by name.", "integer")],
)
async def show_version(call: Call, version: str) -> VersionRecord:
    """
    In the answer, metadata contains further fields of the format, without the readme.

    file_count and size are those of all files, however many are in the answer.
    """
    if images.are_in(call):
        return await images.version(call, await find_package(call), version)
    package, found = await find_version(call, version)
    most = call.integer("files", MOST_FILES, 0, MOST_FILES)
    held, totals, names = await call.catalog.scan(_below, package.id, found.id, most)
    address = repository_url(call.base_url, call.repository)
    may_edit = await call.may(Action.EDIT, call.repository)
    needed = await _requirements(call, found)
    return version_record(package.name, found, held, totals, names, needed, address, shows_urls=may_edit)


async def _requirements(call: Call, version: Version) -> list[Requirement]:
    """The dependencies of a version, with the names of those that are in its repository."""
    found, keys = read_requirements(version.meta), dict[str, str]()
    for each in found:
        with suppress(Invalid):
            keys[each.name] = call.services.formats[call.repository.format].package_key(each.name)
    known = await call.catalog.scan(packages.names_of, call.repository.id, sorted(set(keys.values())))
    for each in found:
        each.package = known.get(keys.get(each.name, ""))
    return found


def _below(
    reader: Reader, package_id: int, version_id: int, most: int
) -> tuple[list[File], tuple[int, int], list[str]]:
    every = tags.list_tags(reader, package_id, limit=MOST_TAGS)
    return (
        files.list_files_of_version(reader, version_id, limit=most),
        files.count_files_of_version(reader, version_id),
        [tag.name for tag in every if tag.version_id == version_id],
    )
