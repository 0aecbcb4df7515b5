"""The routes that list packages, versions and files, a page at a time, in one of several orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.pages import MAX_LIMIT, Page, PageRequest
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action
from pkgrepo.storage.catalog.packages.files import (
    FILE_ORDERS,
    count_files_of_version,
    list_files_of_version,
    position_of_file,
)
from pkgrepo.storage.catalog.packages.summaries import (
    PACKAGE_ORDERS,
    VERSION_ORDERS,
    count_packages,
    count_versions,
    list_package_summaries,
    list_version_summaries,
    position_of_package,
    position_of_version,
)

from .images import Images
from .records import file_record, repository_url
from .routes import find_package, find_version
from .schema import FileRecord, PackageRecord, VersionSummaryRecord

MOST_PAGES: Final = 10_000
# By the name of an order without its dash: the types of the columns that it sorts by.
_KINDS: Final[Mapping[str, Sequence[type]]] = {
    "name": (str,),
    "updated_at": (int, str),
    "downloads": (int, str),
    "version": (bytes, str),
    "published_at": (int, str),
    "size": (int, str),
    "uploaded_at": (int, str),
}


class Lists(Handlers):
    """Lists packages, versions and files of every format."""

    table = Table("packages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._images = Images(services)

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
    async def packages(self, call: Call) -> Page[PackageRecord]:
        """Pages are selected by cursor, or by page and per_page."""
        repository_id, search, order = call.repository.id, call.query("q"), call.order(PACKAGE_ORDERS, "name")
        page_request, skip = call.page_request, 0
        if call.query("page") or call.query("per_page"):
            number, size = call.integer("page", 1, 1, MOST_PAGES), call.integer("per_page", 50, 1, MAX_LIMIT)
            page_request, skip = PageRequest(limit=size, cursor=None, count=True), (number - 1) * size
        found = await self._catalog.scan(
            list_package_summaries,
            repository_id,
            after=page_request.after_position(order, _KINDS[order.removeprefix("-")]),
            skip=skip,
            limit=page_request.limit + 1,
            search=search,
            order=order,
        )
        total = await self._catalog.scan(count_packages, repository_id, search) if page_request.count else None
        return page_request.page(
            found, lambda each: (order, *position_of_package(each, order)), PackageRecord.of, total
        )

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
    async def versions(self, call: Call) -> Page[VersionSummaryRecord]:
        """Versions are compared as the format orders them; those of images by their names."""
        package, page_request = await find_package(self._catalog, call), call.page_request
        if self._images.are_in(call.repository):
            return await self._images.versions(call, package)
        search, order = call.query("q"), call.order(VERSION_ORDERS, "-version")
        found = await self._catalog.scan(
            list_version_summaries,
            package.id,
            after=page_request.after_position(order, _KINDS[order.removeprefix("-")]),
            limit=page_request.limit + 1,
            search=search,
            order=order,
        )
        total = await self._catalog.scan(count_versions, package.id, search) if page_request.count else None
        return page_request.page(
            found, lambda each: (order, *position_of_version(each, order)), VersionSummaryRecord.of, total
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
    async def files(self, call: Call, version: str) -> Page[FileRecord]:
        """For images, the manifests and blobs of a version are sorted by digest, and only so."""
        page_request = call.page_request
        if self._images.are_in(call.repository):
            shown = await self._images.version(call, await find_package(self._catalog, call), version)
            parts = sorted(shown.files, key=lambda each: each.path)
            return page_request.page_of_all(parts, lambda each: each.path, lambda each: each)
        order = call.order(FILE_ORDERS, "name")
        _, found = await find_version(self._services, call, version)
        held = await self._catalog.scan(
            list_files_of_version,
            found.id,
            after=page_request.after_position(order, _KINDS[order.removeprefix("-")]),
            limit=page_request.limit + 1,
            order=order,
        )
        total = None
        if page_request.count:
            total, _ = await self._catalog.scan(count_files_of_version, found.id)
        address, may_edit = repository_url(call.base_url, call.repository), await call.may(Action.EDIT, call.repository)
        return page_request.page(
            held,
            lambda each: (order, *position_of_file(each, order)),
            lambda each: file_record(each, address, shows_url=may_edit),
            total,
        )
