"""The routes that list and show packages and versions."""

from __future__ import annotations

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.answers import NO_STORE, Answer
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.pages import MAX_LIMIT, Page, PageRequest
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, File, Package, Version
from pkgrepo.storage.catalog.packages import files, packages, tags, versions
from pkgrepo.storage.catalog.packages.summaries import (
    VersionSummary,
    count_packages,
    find_package_summary,
    list_package_summaries,
    list_version_summaries,
)

from .images import Images
from .records import repository_url, version_record
from .schema import PackageRecord, VersionRecord, VersionSummaryRecord

MOST_PAGES = 10_000
MOST_TAGS = 1000

TEXT_TYPES = {"text/markdown", "text/x-rst", "text/plain"}


class Packages(Handlers):
    """Lists and shows packages and versions of every format."""

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
            Parameter("page", "The number of the page, from 1; replaces cursor and limit.", "integer"),
            Parameter("per_page", "Maximum number of items on a numbered page, 1 to 1000; 50 by default.", "integer"),
        ),
    )
    async def list_page(self, call: Call) -> Page[PackageRecord]:
        """Sorted by name. Pages are selected by cursor, or by page and per_page."""
        repository_id, search = call.repository.id, call.query("q")
        page_request, skip = call.page_request, 0
        if call.query("page") or call.query("per_page"):
            number, size = call.integer("page", 1, 1, MOST_PAGES), call.integer("per_page", 50, 1, MAX_LIMIT)
            page_request, skip = PageRequest(limit=size, cursor=None, count=True), (number - 1) * size
        found = await self._catalog.scan(
            list_package_summaries,
            repository_id,
            after=page_request.after(""),
            skip=skip,
            limit=page_request.limit + 1,
            search=search,
        )
        total = await self._catalog.scan(count_packages, repository_id, search) if page_request.count else None
        return page_request.page(found, lambda package: package.key, PackageRecord.of, total)

    @table.route(
        "GET",
        "/package/<repository>/<package>",
        access=CONTENT_READERS,
        summary="Show a package",
        answer=PackageRecord,
    )
    async def get(self, call: Call) -> PackageRecord:
        """With the latest version, and the totals of its versions, files and downloads."""
        found = await self._catalog.scan(find_package_summary, call.repository.id, call.package or "")
        if found is None:
            raise NotFound("package", call.package or "")
        return PackageRecord.of(found)

    @table.route(
        "GET",
        "/package/<repository>/<package>/versions",
        access=CONTENT_READERS,
        summary="List a package's versions",
        answer=VersionSummaryRecord,
        paged=True,
    )
    async def versions(self, call: Call) -> Page[VersionSummaryRecord]:
        """Sorted from the highest version to the lowest, in the order of the format; for images, by time of push."""
        package, page_request = await find_package(self._catalog, call), call.page_request
        if self._images.are_in(call.repository):
            return await self._images.versions(call, package)
        before = _position(page_request.after(""))
        found = await self._catalog.scan(
            list_version_summaries, package.id, before=before, limit=page_request.limit + 1
        )
        total = await self._catalog.scan(versions.count_versions, package.id) if page_request.count else None
        return page_request.page(found, _cursor, VersionSummaryRecord.of, total)

    @table.route(
        "GET",
        "/package/<repository>/<package>/versions/<version>",
        access=CONTENT_READERS,
        summary="Show a version with its files",
        answer=VersionRecord,
    )
    async def version(self, call: Call, version: str) -> VersionRecord:
        """In the answer, metadata contains further fields of the format, without the readme."""
        if self._images.are_in(call.repository):
            return await self._images.version(call, await find_package(self._catalog, call), version)
        package, found = await find_version(self._services, call, version)
        held, names = await self._catalog.scan(_below, package.id, found.id)
        address = repository_url(call.base_url, call.repository)
        may_edit = await call.may(Action.EDIT, call.repository)
        return version_record(package.name, found, held, names, address, shows_urls=may_edit)

    @table.route(
        "GET",
        "/package/<repository>/<package>/versions/<version>/readme",
        access=CONTENT_READERS,
        summary="Get the readme of a version",
        media_type="text/plain",
    )
    async def readme(self, call: Call, version: str) -> Answer:
        """
        The text is not rendered; X-Readme-Type is the media type that the publisher declared.

        It is sent as text/plain, or as text/markdown if it is Markdown and the Accept field contains text/markdown.
        """
        _, found = await find_version(self._services, call, version)
        readme = found.meta.get("readme")  # npm shows it as Markdown; Python's description has a declared type
        text = readme or found.meta.get("description")
        if not text:
            raise NotFound("readme of version", found.text)
        assumed = "text/markdown" if readme else "text/plain"
        written = str(found.meta.get("description_content_type") or assumed).partition(";")[0].strip().lower()
        kind = written if written in TEXT_TYPES else "text/plain"
        accepted = call.request.header(b"accept") or b""
        shown = b"text/markdown" if kind == "text/markdown" and b"text/markdown" in accepted else b"text/plain"
        return Answer(
            body=str(text).encode(),
            content_type=shown + b"; charset=utf-8",
            headers=(
                *NO_STORE,
                (b"X-Readme-Type", kind.encode("ascii")),
                (b"Content-Security-Policy", b"sandbox; default-src 'none'"),
            ),
        )


async def find_package(catalog: ICatalog, call: Call) -> Package:
    """The package that the path names. :raises NotFound: there is none"""
    package: Package | None = await catalog.look(packages.find_package, call.repository.id, call.package or "")
    if package is None:
        raise NotFound("package", call.package or "")
    return package


async def find_version(services: ManagementServices, call: Call, text: str) -> tuple[Package, Version]:
    """The version that the path names, with its package. :raises NotFound: there is none"""
    package = await find_package(services.shared.catalog, call)
    try:
        key = services.formats[call.repository.format].version_key(text)
    except Invalid:
        raise NotFound("version", text) from None
    version: Version | None = await services.shared.catalog.look(versions.find_version, package.id, key)
    if version is None:
        raise NotFound("version", text)
    call.object = f"{call.repository.path}/{package.key}@{version.text}"
    return package, version


def _below(reader: Reader, package_id: int, version_id: int) -> tuple[list[File], list[str]]:
    every = tags.list_tags(reader, package_id, limit=MOST_TAGS)
    return files.files_of_version(reader, version_id), [tag.name for tag in every if tag.version_id == version_id]


def _cursor(summary: VersionSummary) -> str:
    return f"{summary.sort.hex()}/{summary.key}"


def _position(cursor: str) -> tuple[bytes, str] | None:
    if not cursor:
        return None
    sort, _, key = cursor.partition("/")
    try:
        return bytes.fromhex(sort), key
    except ValueError:
        raise Invalid("the cursor is none that this list has given out", "cursor") from None
