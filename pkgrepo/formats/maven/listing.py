"""Answers GET and HEAD of directories: what they are, what is computed in them, and who may read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.paths import ALGORITHMS, METADATA_NAME, Metadata, parse_text
from pkgrepo.formats.maven.paths import Directory as DirectoryPath
from pkgrepo.gateway.folders.levels import FolderFormat, Meaning
from pkgrepo.gateway.folders.pages import HTML, Entry, moved_to_folder
from pkgrepo.gateway.folders.requests import ARCHIVE, Folders
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import Action, File, Identity, Repository
from pkgrepo.storage.catalog.packages.tree import list_files


def _meaning(_repository: Repository, path: str) -> Meaning:
    """The package whose directory a path may be, and the version."""
    if not path:
        return Meaning()
    try:
        found = parse_text(f"{path}/{METADATA_NAME}")
    except Invalid:  # too long for having metadata
        return Meaning()
    assert isinstance(found, Metadata)
    at = found.coordinates
    package = found.package_key if found.version is None else None
    return Meaning(package, None if at is None else (at.package_key, at.version))


def _entries(file: File) -> Iterator[Entry]:
    entry = Entry(file.path.rpartition("/")[2], size=file.size, modified_at=file.created_at)
    return _with_checksums(entry, [each for each in ALGORITHMS if each in file.digests])


def _with_checksums(entry: Entry, algorithms: Sequence[str]) -> Iterator[Entry]:
    yield entry
    for algorithm in algorithms:
        yield Entry(f"{entry.name}.{algorithm}")


FOLDERS: Final = FolderFormat(
    meaning=_meaning,
    files=list_files,
    whole=False,  # that of an artifact may be a group, too
    entries=_entries,
    computed=tuple(_with_checksums(Entry(METADATA_NAME), ALGORITHMS)),
)


def folders_of(services: Services, repository: Repository) -> Folders:
    """The directories of a repository."""
    return Folders(services=services, repository=repository, format=FOLDERS)


async def list_directory(context: MavenContext, request: Request, target: DirectoryPath) -> Response:
    """
    A directory, as HTML, or as JSON for clients that prefer it; or all that is in it as an archive.

    Below a group are packages of others, too, so that an archive is for those who may read the whole repository.

    :raises NotFound: there is no such directory; for others see L{Folders.answer}
    """
    if request.parameter(ARCHIVE) is None:
        identity = await _admit(context, request, target.path)
    else:
        identity = await context.admit(request, Action.READ)
    folders = folders_of(context.services, context.repository)
    return await folders.answer(request, target.path, identity, context.caches.listing_turns)


async def find_moved(context: MavenContext, request: Request, path: str) -> Response | None:
    """
    A redirect to the address with a slash, if a directory is at a path where no file is, and a browser asks.

    Build tools ask for directories with a slash, and must not take a listing for the file that they miss.
    """
    if not names_media_type(request.header(b"accept"), HTML):
        return None
    found = await folders_of(context.services, context.repository).is_folder(path)
    return moved_to_folder(path) if found else None


async def _admit(context: MavenContext, request: Request, path: str) -> Identity:
    """
    The caller, who may read what is below a directory: as a group, an artifact, or a version of an artifact.

    :raises Forbidden: none of these; for the other errors see L{Access.require}
    """
    repository = context.repository
    access = context.services.access
    identity = await access.identify(request)
    for key in _permission_keys(path):
        if await access.authorizer.may(identity, Action.READ, repository, key):
            await access.require(identity, Action.READ, repository, key)
            return identity
    await access.require(identity, Action.READ, repository)
    return identity


def _permission_keys(path: str) -> list[str]:
    """The names by which the permission for a directory is asked, besides that for the whole repository."""
    keys: list[str] = []
    while "/" in path and len(keys) < 3:
        if not keys:
            keys.append(path.replace("/", "."))
        parent, _, name = path.rpartition("/")
        keys.append(f"{parent.replace('/', '.')}:{name}")
        path = parent
    return keys
