"""The routes that list packages, versions and files, a page at a time, in one of several orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import MAX_LIMIT, Page, PageRequest
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.model import Action
from pkgrepo.storage.catalog.columns import to_ms
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages.files import (
    FILE_ORDERS,
    count_files_of_version,
    list_files_of_version,
)
from pkgrepo.storage.catalog.packages.summaries import (
    PACKAGE_ORDERS,
    VERSION_ORDERS,
    count_packages,
    count_versions,
    list_package_summaries,
    list_version_summaries,
)

from . import images
from .handlers import find_package, find_version
from .records import file_record, repository_url
from .schema import FileRecord, PackageRecord, VersionSummaryRecord

MOST_PAGES: Final = 10_000
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


table = Table("packages")


@table.route(
    "GET",
    "/repository/<repository>/packages",
    access=CONTENT_READERS,
    summary="List packages",
    answer=PackageRecord,
    paged=True,
    query=(
        Parameter("q", "Only packages whose name contains this text."),
        sorting(PACKAGE_ORDERS, "name"),
        Parameter("page", "The number of the page, from 1; replaces cursor and limit.", "integer"),
        Parameter("per_page", "Maximum number of items on a numbered page, 1 to 1000; 50 by default.", "integer"),
    ),
)
async def list_packages(call: Call) -> Page[PackageRecord]:
    """Pages are selected by cursor, or by page and per_page."""
    repository_id, search, order = call.repository.id, call.query("q"), call.order(PACKAGE_ORDERS, "name")
    page_request, skip = call.page_request, 0
    if call.query("page") or call.query("per_page"):
        number, size = call.integer("page", 1, 1, MOST_PAGES), call.integer("per_page", 50, 1, MAX_LIMIT)
        page_request, skip = PageRequest(limit=size, cursor=None, count=True), (number - 1) * size
    found = await call.catalog.scan(
        list_package_summaries,
        repository_id,
        after=page_request.after_position(order),
        skip=skip,
        limit=page_request.limit + 1,
        search=search,
        order=order.name,
    )
    total = await call.catalog.scan(count_packages, repository_id, search) if page_request.count else None
    return page_request.page(found, order.place, PackageRecord.of, total)


@table.route(
    "GET",
    "/package/<repository>/<package>/versions",
    access=CONTENT_READERS,
    summary="List a package's versions",
    answer=VersionSummaryRecord,
    paged=True,
    query=(
        Parameter("q", "Only versions whose text contains this; ignored for images."),
        sorting(VERSION_ORDERS, "-version, for images -published_at,"),
    ),
)
async def list_versions(call: Call) -> Page[VersionSummaryRecord]:
    """Versions are compared as the format orders them; those of images by their names."""
    package = await find_package(call)
    if images.are_in(call):
        return await images.versions(call, package)
    search = call.query("q")
    return await call.page(
        list_version_summaries,
        package.id,
        search=search,
        by=call.order(VERSION_ORDERS, "-version"),
        show=VersionSummaryRecord.of,
        count=(count_versions, package.id, search),
    )


@table.route(
    "GET",
    "/package/<repository>/<package>/versions/<version>/files",
    access=CONTENT_READERS,
    summary="List a version's files",
    answer=FileRecord,
    paged=True,
    query=[sorting(FILE_ORDERS, "name")],
)
async def list_files(call: Call, version: str) -> Page[FileRecord]:
    """For images, these are the manifests and blobs of a version."""
    order = call.order(FILE_ORDERS, "name")
    if images.are_in(call):
        shown = await images.version(call, await find_package(call), version)
        return call.page_request.page_of_sorted(shown.files, PART_ORDERS[order.name], lambda each: each)
    _, found = await find_version(call, version)
    address, may_edit = repository_url(call.base_url, call.repository), await call.may(Action.EDIT, call.repository)
    return await call.page(
        list_files_of_version,
        found.id,
        by=order,
        show=lambda each: file_record(each, address, shows_url=may_edit),
        count=(_count_files, found.id),
    )


def _count_files(reader: Reader, version_id: int) -> int:
    return count_files_of_version(reader, version_id)[0]
