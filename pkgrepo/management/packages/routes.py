"""The routes that show packages, versions and files, and list them in one of several orders."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.interfaces import Reader, Value
from pkgrepo.management.api.access_rules import CONTENT_READERS, CONTENT_READERS_OF_SOME
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import MAX_LIMIT, Page, PageRequest, cursor_of
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.management.packages import images
from pkgrepo.management.packages.advisories import known_of_package, worst_of, worst_of_packages
from pkgrepo.management.packages.contents import TreeEntry
from pkgrepo.management.packages.image_contents import Platforms, platforms_of
from pkgrepo.management.packages.merged import Held, get_held, go_to_member, is_merged, list_held, readable_members
from pkgrepo.management.packages.records import contents_of, file_record, file_url, repository_url, version_record
from pkgrepo.management.packages.refused import find_refusal
from pkgrepo.management.packages.schema import (
    DailyDownloads,
    DayDownloads,
    FileRecord,
    OriginRecord,
    PackageRecord,
    RepositoryDownloads,
    Requirement,
    VersionDownloads,
    VersionRecord,
    VersionSummaryRecord,
)
from pkgrepo.model import Action, File, Version
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages import files, packages, tags
from pkgrepo.storage.catalog.packages.dependencies import read_dependencies
from pkgrepo.storage.catalog.packages.files import FILE_ORDERS, count_files_of_version, list_files_of_version
from pkgrepo.storage.catalog.packages.summaries import (
    PACKAGE_ORDERS,
    VERSION_ORDERS,
    PackageSummary,
    VersionSummary,
    count_packages,
    count_versions,
    find_package_summary,
    list_package_summaries,
    list_version_summaries,
)
from pkgrepo.storage.catalog.packages.tree import Level, file_or_folder, list_tree
from pkgrepo.storage.catalog.rows import to_ms
from pkgrepo.storage.catalog.usage_counts import (
    DAY_MS,
    downloads_by_day,
    downloads_by_version,
    downloads_of_package,
    package_downloads_by_day,
)

MOST_TAGS = 1000
MOST_FILES = 100_000  # of a version
MOST_DAYS = 731
MOST_VERSIONS = 20  # whose downloads are told apart
EPOCH = date(1970, 1, 1)


table = Table("packages")
MOST_PAGES: Final = 10_000
AT_ONCE: Final = 500  # packages of a repository whose permissions are asked together


@table.command(
    "package show REPOSITORY NAME",
    fields="package: name | latest: latest | versions: :counted | files: files | size: size:size | "
    "downloads: downloads | source: source | route: route | created: created_at:time | changed: updated_at:time",
    about="Show a package, or one of its versions with its files.",
)
@table.get("/package/<repository>/<package>", CONTENT_READERS, "Show a package")
async def show_package(call: Call) -> PackageRecord:
    """
    With the latest version, and the totals of its versions, files and downloads.

    Of a virtual repository it is that of the first member that has it, of those that the caller may read.
    """
    if is_merged(call):
        return (await _held_records(call, [await get_held(call)]))[0]
    found = await call.catalog.scan(find_package_summary, call.repository.id, call.package or "")
    if found is None:
        raise NotFound("package", call.package or "")
    return PackageRecord.of(found, known=(await worst_of_packages(call, [found.key])).get(found.key))


@table.get(
    "/package/<repository>/<package>/downloads",
    CONTENT_READERS,
    "Show the downloads of a package by day",
    query=[Parameter("days", f"The number of days up to today, 1 to {MOST_DAYS}; 90 by default.", "integer")],
)
async def show_downloads(call: Call) -> DailyDownloads:
    """Complete downloads of files, and pulls of images; a day begins at midnight UTC."""
    package, count = await call.find_package(), call.integer("days", 90, 1, MOST_DAYS)
    today = call.now_ms // DAY_MS
    first = today - count + 1
    found = dict(await call.catalog.look(package_downloads_by_day, package.id, first, today + 1))
    total = await call.catalog.look(downloads_of_package, package.id)
    if images.are_in(call):
        most = await images.most_pulled(call, package, first, MOST_VERSIONS)
    else:
        most = await call.catalog.scan(downloads_by_version, package.id, first, MOST_VERSIONS)
    versions = [VersionDownloads(version=text, count=count) for text, count in most]
    return DailyDownloads(package=package.name, total=total, days=_days(found, first, today), versions=versions)


@table.get(
    "/repository/<repository>/downloads",
    CONTENT_READERS,
    "Show the downloads of a repository by day",
    query=[Parameter("days", f"The number of days up to today, 1 to {MOST_DAYS}; 90 by default.", "integer")],
)
async def show_repository_downloads(call: Call) -> RepositoryDownloads:
    """Complete downloads of files, and pulls of images; a day begins at midnight UTC."""
    count, today = call.integer("days", 90, 1, MOST_DAYS), call.now_ms // DAY_MS
    first = today - count + 1
    found = dict(await call.catalog.look(downloads_by_day, call.repository.id, first, today + 1))
    return RepositoryDownloads(repository=call.repository.path, days=_days(found, first, today))


def _days(counts: Mapping[int, int], first: int, last: int) -> list[DayDownloads]:
    return [DayDownloads(day=EPOCH + timedelta(days=day), count=counts.get(day, 0)) for day in range(first, last + 1)]


@table.command(
    "package show REPOSITORY NAME==VERSION",
    fields="package: package | version: version | state: state | reason: reason | published: published_at:time | "
    "by: publisher | digest: digest | licence: license | keywords: keywords:listed | tags: tags:listed | "
    "links: links:links | dependencies: dependencies:lines | files: files:files",
)
@table.get(
    "/package/<repository>/<package>/versions/<version>",
    CONTENT_READERS,
    "Show a version with its files",
    query=[Parameter("files", "Maximum number of files in the answer, the first ones by name.", "integer")],
)
async def show_version(call: Call, version: str) -> VersionRecord:
    """
    In the answer, metadata contains further fields of the format, without the readme.

    file_count and size are those of all files, however many are in the answer. Of a virtual repository it is that of
    the first member that has the package, of those that the caller may read; refused is what its own clients get.
    """
    asked = await go_to_member(call)
    if images.are_in(call):
        image = await call.find_package()
        record = await images.version(call, image, version)
        with suppress(UpstreamFailed):  # what labels the image has is not known just now
            refused = await find_refusal(call, image, version, asked)
            record.refused = None if refused is None else str(refused)
        return record
    package, found = await call.find_version(version)
    most = call.integer("files", MOST_FILES, 0, MOST_FILES)
    held, totals, names = await call.catalog.scan(_below, package.id, found.id, most)
    address = repository_url(call.base_url, call.repository)
    may_edit = await call.may(Action.EDIT, call.repository)
    needed = await _requirements(call, found)
    inside = await call.catalog.scan(contents_of, call.format, package.key)
    record = version_record(
        package.name, found, held, totals, names, needed, address, shows_urls=may_edit, contents=inside
    )
    refused = await find_refusal(call, package, found.text, asked)
    record.refused = None if refused is None else str(refused)
    return record


async def _requirements(call: Call, version: Version) -> list[Requirement]:
    """The dependencies of a version, with the names of those that are in its repository."""
    found = [Requirement.from_attributes(each) for each in read_dependencies(version.meta)]
    keys = dict[str, str]()
    for each in found:
        with suppress(Invalid):
            keys[each.name] = call.format.package_key(each.name)
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


PART_ORDERS: Final[Mapping[str, Order[FileRecord]]] = both_ways(  # of manifests and blobs, which are in memory
    {
        "name": [("path", str, lambda each: each.path)],
        "size": [("size", int, lambda each: each.size), ("path", str, lambda each: each.path)],
        "uploaded_at": [
            ("uploaded_at", int, lambda each: to_ms(each.uploaded_at)),
            ("path", str, lambda each: each.path),
        ],
    }
)


@table.command(
    "package list REPOSITORY",
    options="query -q: q, limit",
    columns="PACKAGE: name | LATEST: latest | VERSIONS: versions:number | SIZE: size:size | "
    "DOWNLOADS: downloads:number | CHANGED: updated_at:ago | FROM: route or member or 'here'",
    nothing="there are no such packages",
)
@table.get(
    "/repository/<repository>/packages",
    CONTENT_READERS_OF_SOME,
    "List packages",
    query=(
        Parameter("q", "Only packages whose name contains this text."),
        sorting(PACKAGE_ORDERS, "name"),
        Parameter("page", "The number of the page, from 1; replaces cursor and limit.", "integer"),
        Parameter("per_page", "Maximum number of items on a numbered page, 1 to 1000; 50 by default.", "integer"),
    ),
)
async def list_packages(call: Call) -> Page[PackageRecord]:
    """
    Pages are selected by cursor, or by page and per_page.

    Who may read some packages of the repository, as a member of a project or with a token, gets these. A virtual
    repository has those of its members that the caller may read, each name once, without a total.
    """
    repository_id, search, order = call.repository.id, call.query("q"), call.order(PACKAGE_ORDERS, "name")
    page_request, skip = call.page_request, 0
    if is_merged(call):
        if call.query("page") or call.query("per_page"):
            raise Invalid("packages of a virtual repository have no numbered pages: use cursor and limit", "page")
        after = page_request.after_position(order)
        held = await call.catalog.scan(
            list_held, await readable_members(call), after, page_request.limit + 1, search, order
        )
        records = {id(each): one for each, one in zip(held, await _held_records(call, held), strict=True)}
        return page_request.page(held, lambda each: order.place(each.summary), lambda each: records[id(each)])
    if call.query("page") or call.query("per_page"):
        number, size = call.integer("page", 1, 1, MOST_PAGES), call.integer("per_page", 50, 1, MAX_LIMIT)
        page_request, skip = PageRequest(limit=size, cursor=None, count=True), (number - 1) * size
    after, total = page_request.after_position(order), None
    if await call.may(Action.READ, call.repository):
        found = await call.catalog.scan(
            list_package_summaries,
            repository_id,
            after=after,
            skip=skip,
            limit=page_request.limit + 1,
            search=search,
            order=order.name,
        )
        if page_request.count:
            total = await call.catalog.scan(count_packages, repository_id, search)
    else:
        first, last = skip, skip + page_request.limit + 1
        found, count = [], 0
        async for some in _readable(call, search, order, after):
            found += some[max(first - count, 0) : max(last - count, 0)]
            count += len(some)
            if count >= last and (after or not page_request.count):
                break
        if page_request.count:
            total = count if not after else sum([len(some) async for some in _readable(call, search, order, ())])
    known = await worst_of_packages(call, [each.key for each in found])
    return page_request.page(found, order.place, lambda each: PackageRecord.of(each, known=known.get(each.key)), total)


async def _held_records(call: Call, held: Sequence[Held]) -> list[PackageRecord]:
    """The records of packages of members, with what is known of the vulnerabilities of each."""
    by_member: dict[int, list[Held]] = {}
    for each in held:
        by_member.setdefault(each.member.id, []).append(each)
    known = {
        (some[0].member.id, key): worst
        for some in by_member.values()
        for key, worst in (await worst_of_packages(call, [each.summary.key for each in some], some[0].member)).items()
    }
    return [
        PackageRecord.of(each.summary, known=known.get((each.member.id, each.summary.key)), member=each.member.path)
        for each in held
    ]


async def _readable(
    call: Call, search: str, order: Order[PackageSummary], after: Sequence[Value]
) -> AsyncIterator[list[PackageSummary]]:
    """The packages that the caller may read, one by one, some at a time, beginning after a position."""
    while True:
        some = await call.catalog.scan(
            list_package_summaries, call.repository.id, after=after, limit=AT_ONCE, search=search, order=order.name
        )
        keys = [each.key for each in some]
        may = {*await call.shared.access.allowed(call.identity, Action.READ, call.repository, keys)}
        yield [each for each in some if each.key in may]
        if len(some) < AT_ONCE:
            return
        after = order.position(some[-1])


@table.command(
    "package versions REPOSITORY NAME",
    options="limit",
    columns="VERSION: version | STATE: :state | FILES: files:number | SIZE: size:size | DOWNLOADS: downloads:number | "
    "PUBLISHED: published_at:ago | BY: publisher",
    nothing="there are no versions",
    about="List the versions of a package, the highest first; of an image its tags, the newest first.",
)
@table.get(
    "/package/<repository>/<package>/versions",
    CONTENT_READERS,
    "List a package's versions",
    query=(
        Parameter("q", "Only versions whose text contains this; ignored for images."),
        sorting(VERSION_ORDERS, "-version, for images -published_at,"),
        Parameter(
            "without_statements",
            "For images, whether to leave out manifests about others: signatures, attestations, SBOMs...",
            "boolean",
        ),
        Parameter("platforms", "For images, whether to return the platforms; their documents are read.", "boolean"),
    ),
)
async def list_versions(call: Call) -> Page[VersionSummaryRecord]:
    """
    Versions are compared as the format orders them; those of images by their names.

    Of a virtual repository they are those of the first member that has the package, of those that the caller may read.
    """
    await go_to_member(call)
    package = await call.find_package()
    if images.are_in(call):
        listed = await images.versions(call, package)
        if call.flag("platforms"):
            named = await platforms_of(call, package, [each.digest for each in listed.items if each.digest])
            for each in listed.items:
                known = named.get(each.digest or "", Platforms())
                each.platforms = list(known.names)
                if known.attested:
                    each.statements = sorted({*each.statements, "attestation"})
        return listed
    search, kinds = call.query("q"), call.format.versions
    advisories = await known_of_package(call, package.key)

    def show(each: VersionSummary) -> VersionSummaryRecord:
        prerelease = kinds is not None and kinds.prerelease(each.text)
        return VersionSummaryRecord.of(each, prerelease=prerelease, known=worst_of(advisories, each.sort))

    return await call.page(
        list_version_summaries,
        package.id,
        search=search,
        by=call.order(VERSION_ORDERS, "-version"),
        show=show,
        count=(count_versions, package.id, search),
    )


@table.get(
    "/package/<repository>/<package>/versions/<version>/files",
    CONTENT_READERS,
    "List a version's files",
    query=[sorting(FILE_ORDERS, "name")],
)
async def list_files(call: Call, version: str) -> Page[FileRecord]:
    """For images, these are the manifests and blobs of a version."""
    order = call.order(FILE_ORDERS, "name")
    if images.are_in(call):
        shown = await images.version(call, await call.find_package(), version)
        return call.page_request.page_of_sorted(shown.files, PART_ORDERS[order.name], lambda each: each)
    package, found = await call.find_version(version)
    address, may_edit = repository_url(call.base_url, call.repository), await call.may(Action.EDIT, call.repository)
    inside = await call.catalog.scan(contents_of, call.format, package.key)
    return await call.page(
        list_files_of_version,
        found.id,
        by=order,
        show=lambda each: file_record(each, address, shows_url=may_edit, contents=inside),
        count=(_count_files, found.id),
    )


def _count_files(reader: Reader, version_id: int) -> int:
    return count_files_of_version(reader, version_id)[0]


@table.get(
    "/repository/<repository>/tree/<path:path>",
    CONTENT_READERS,
    "List a folder of a repository, or show a file",
    aliases=[
        ("GET", "/repository/<repository>/tree/"),
        ("GET", "/repository/<repository>/browse/"),
        ("GET", "/repository/<repository>/browse/<path:path>"),
        ("GET", "/browse/<repository>/"),
        ("GET", "/browse/<repository>/<path:path>"),
    ],
)
async def list_folder(call: Call, path: str = "") -> Page[TreeEntry]:
    """Folders come before files. The path of a file returns a page with that file only."""
    path = path.strip("/")
    repository_id, page_request = call.repository.id, call.page_request
    address = repository_url(call.base_url, call.repository)
    there = await call.catalog.scan(file_or_folder, repository_id, path)
    if isinstance(there, File):
        return Page(items=[_file(there, address)])
    if not there:
        raise NotFound("path", path)
    level: Level = await call.catalog.scan(
        list_tree, repository_id, path, after=page_request.after(""), limit=page_request.limit
    )
    prefix = f"{path}/" if path else ""
    folders = [TreeEntry(name=name, path=prefix + name, kind="folder") for name in level.folders]
    return Page(
        items=[*folders, *(_file(file, address) for file in level.files)],
        next=None if level.after is None else cursor_of(level.after),
    )


def _file(file: File, address: str) -> TreeEntry:
    return TreeEntry.from_attributes(
        file,
        name=file.path.rsplit("/", 1)[-1],
        kind="file",
        digest=f"sha256:{file.sha256}",
        modified_at=file.created_at,
        url=file_url(address, file.path),
        upstream=OriginRecord.of(file.origin, shows_url=False),
    )
