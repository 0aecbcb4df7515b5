"""The route that shows the files of a repository as a tree."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page, cursor_of
from pkgrepo.management.api.route import Table
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages.tree import Level, file_or_folder, list_tree

from .records import file_url, repository_url
from .schema import OriginRecord, TreeEntry

table = Table("packages")


@table.route(
    "GET",
    "/repository/<repository>/tree/<path:path>",
    access=CONTENT_READERS,
    summary="List a folder of a repository, or show a file",
    answer=TreeEntry,
    paged=True,
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
