"""
The route that lists what clients read of a repository: files, and the documents in which they find them.

Static twins and bundles consist of it. What is listed is that of the lists of packages, versions and files: packages
that the caller may read. The bytes are read at the addresses of clients, which ask the rules for each of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal

from pkgrepo.gateway.client_documents import ClientDocument
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.mirrored.choosing import Chosen
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS_OF_SOME
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page, cursor_of
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Action, File, Package, Version
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages import files, packages, versions

from . import images

AT_ONCE: Final = 100  # packages whose permissions are asked together, and plain files that are read together
ENOUGH: Final = 1000  # paths, after which a page ends with the package

table = Table("repositories")


class DocumentSelection(Record):
    """The entries of a JSON document that a bundle keeps: those of files that it has in a folder."""

    path: Annotated[str, meaning("The path of the document in the bundle.")]
    below: Annotated[str, meaning("The folder of the files.")]
    files: Annotated[
        Mapping[str, Sequence[str]],
        meaning("Members with an entry for each file: by its name, or by the address at a place in the entry."),
    ]
    keys: Annotated[Sequence[str], meaning("Members that have the keys of such entries.")]
    values: Annotated[Sequence[str], meaning("Members whose values are keys of such entries.")]
    whole: Annotated[Sequence[str] | None, meaning("Other members that are kept; null: all.")]


class PathRecord(Record, omit_defaults=True):
    """
    A file, a document that the server makes of others, or an image. Fields that do not apply are absent.

    A document need not exist. A withheld file, such as that of a yanked gem, is served to nobody; its address is the
    one before. The manifests and blobs of an image are read by the registry API.
    """

    kind: Annotated[Literal["file", "document", "image"], meaning("What it is.")]
    path: Annotated[str, meaning("Where a copy of the repository has it; of an image, its name.")]
    address: Annotated[str | None, meaning("Its path below the address of the repository, if that is another.")] = None
    accept: Annotated[str, meaning("The media types to ask for.")] = "*/*"
    folder: Annotated[str, meaning("The address of the folder that a document describes, if clients ask for it.")] = ""
    absolute: Annotated[bool, meaning("Whether it has addresses below that of the repository.")] = False
    beside: Annotated[Sequence[str], meaning("Endings of the paths of documents beside it.")] = ()
    stored: Annotated[bool, meaning("Whether a document is stored, and not made of what else is listed.")] = False
    selection: Annotated[DocumentSelection | None, meaning("What a bundle has of a document.")] = None
    withheld: Annotated[bool, meaning("Whether it is served to nobody.")] = False
    package: Annotated[str | None, meaning("The key of the package.")] = None
    version: Annotated[str | None, meaning("The version.")] = None
    sha256: Annotated[str | None, meaning("The digest of a file, in hex.")] = None
    size: Annotated[int | None, meaning("The size of a file in bytes.")] = None
    published_at: Annotated[datetime | None, meaning("When the version was published.")] = None
    publisher: Annotated[str | None, meaning("Who published the version.")] = None
    state: Annotated[str | None, meaning("The state of the version: live, yanked or deprecated.")] = None
    reason: Annotated[str | None, meaning("The reason of the state.")] = None
    origin_at: Annotated[datetime | None, meaning("The time of the file that its upstream gives.")] = None


@table.get("/repository/<repository>/paths", CONTENT_READERS_OF_SOME, "List the files and documents that clients read")
async def list_paths(call: Call) -> Page[PathRecord]:
    """
    A static twin is made of it. Packages come first, one after the other, and documents about all packages last.

    A page has whole packages, so that it may be longer than its limit. Who may read some packages of the repository, as
    a member of a project or with a token, gets these. A path of a document may be listed more than once.
    """
    items: list[PathRecord] = []
    enough = min(call.page_request.limit, ENOUGH)
    async for cursor, some in listed(call, call.page_request.after("")):
        items += some
        if cursor and len(items) >= enough:
            return Page(items=items, next=cursor_of(cursor))
    return Page(items=items)


async def listed(call: Call, after: str, chosen: Chosen | None = None) -> AsyncIterator[tuple[str, list[PathRecord]]]:
    """
    What comes after a cursor, each part with the cursor behind it, which is empty at the end.

    What ``chosen`` does not take is left out.
    """
    phase, _, last = after.partition("/")
    whole = await call.may(Action.READ, call.repository)
    list_package = partial(_package, format_=call.format, chosen=chosen)
    while phase in ("", "package"):
        some = await call.catalog.scan(packages.list_packages, call.repository.id, after=last, limit=AT_ONCE)
        keys = [each.key for each in some if chosen is None or chosen.has_package(each.key)]
        if not whole:
            keys = await call.shared.access.allowed(call.identity, Action.READ, call.repository, keys)
        for each in some:
            last = each.key
            if last in keys and images.are_in(call):
                yield f"package/{last}", [path async for path in _image(call, each, chosen)]
            elif last in keys:
                yield f"package/{last}", await call.catalog.scan(list_package, each)
        if len(some) < AT_ONCE:
            phase, last = "plain", ""
    while phase == "plain" and whole and call.format.tree is not None and chosen is None:
        paths = await call.catalog.scan(files.list_plain_files, call.repository.id, last, AT_ONCE)
        if not paths:
            break
        yield f"plain/{paths[-1]}", await call.catalog.scan(partial(_plain, call.repository.id, call.format), paths)
        last = paths[-1]
    if chosen is None:
        yield "", [_document(each) for each in call.format.client_documents.repository]


async def _image(call: Call, package: Package, chosen: Chosen | None) -> AsyncIterator[PathRecord]:
    """The tags and digests of an image; without any, the image itself."""
    empty = chosen is None
    async for each in images.references(call, package):
        if chosen is None or chosen.takes(package.key, each.name, "", {}):
            empty = False
            yield PathRecord(
                kind="image",
                path=package.key,
                package=package.key,
                version=each.name,
                published_at=each.pushed_at,
            )
    if empty:
        yield PathRecord(kind="image", path=package.key, package=package.key)


def _package(r: Reader, package: Package, *, format_: Format, chosen: Chosen | None) -> list[PathRecord]:
    """The files of a package, and the documents about it."""
    documents, found, folders = format_.client_documents, list[PathRecord](), dict[str, None]()
    for key in versions.version_keys(r, package.id):
        version = versions.find_version(r, package.id, key)
        if version is None:
            continue
        for each in files.files_of_version(r, version.id):
            public = format_.public_path(each.path)
            digests = {**each.digests, "sha256": each.sha256}
            if chosen is None or chosen.takes(package.key, version.text, public, digests):
                found.append(_file(format_, each, public, package.key, version))
                folders |= dict.fromkeys(_folders(each.path))
        found += map(_document, documents.version(package.name, version))
    if not found and chosen is not None:
        return []
    return [
        *found,
        *map(_document, documents.package(package.key, package.name)),
        *_of_folders(format_, folders),
    ]


def _plain(repository_id: int, format_: Format, r: Reader, paths: Sequence[str]) -> list[PathRecord]:
    """Files that belong to no package; one that is the document of its folder is a document."""
    assert format_.tree is not None, "other formats have no such files"
    found, beside = list[PathRecord](), format_.client_documents.beside
    for path in paths:
        each = files.find_file(r, repository_id, path)
        if path.rpartition("/")[2] in format_.tree.document_names:
            found.append(PathRecord(kind="document", path=path, stored=True, beside=beside))
        elif each is not None:
            found.append(PathRecord(kind="file", path=path, sha256=each.sha256, size=each.size, beside=beside))
    return [*found, *_of_folders(format_, dict.fromkeys(folder for path in paths for folder in _folders(path)))]


def _file(format_: Format, file: File, public: str, key: str, version: Version) -> PathRecord:
    origin_ms = None if file.origin is None else file.origin.published_ms
    return PathRecord.from_attributes(
        file,
        kind="file",
        address=None if public == file.path else public,
        withheld=public != file.path,
        beside=format_.client_documents.beside,
        package=key,
        version=version.text,
        published_at=version.published_at,
        publisher=version.publisher,
        state=version.state,
        reason=version.reason,
        origin_at=None if origin_ms is None else from_ms(origin_ms),
    )


def _of_folders(format_: Format, folders: Iterable[str]) -> Iterator[PathRecord]:
    documents = format_.client_documents
    for folder in folders:
        for each in documents.folder(folder):
            yield _document(each, documents.beside)


def _document(document: ClientDocument, beside: Sequence[str] = ()) -> PathRecord:
    chosen = document.selection
    selection = None if chosen is None else DocumentSelection.from_attributes(chosen)
    return PathRecord.from_attributes(document, kind="document", selection=selection, beside=beside)


def _folders(path: str) -> Iterator[str]:
    """The folders above a file, the nearest first, and the root."""
    while path:
        path = path.rpartition("/")[0]
        yield path
