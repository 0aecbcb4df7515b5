"""Folders of raw repositories: which package they belong to, and which versions upstreams list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.formats.raw.configuration import patterns_of
from pkgrepo.formats.raw.paths import UNVERSIONED, package_of_folder, version_of
from pkgrepo.formats.raw.proxied import VERSIONS
from pkgrepo.gateway.folders.levels import FolderFormat, Meaning
from pkgrepo.gateway.folders.pages import ListingTurns
from pkgrepo.gateway.folders.requests import Folders
from pkgrepo.gateway.services import Context, Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository
from pkgrepo.proxy.format import merge_versions
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages.tree import list_tree

FolderContext = Context[ListingTurns]


def _meaning(repository: Repository, path: str) -> Meaning:
    key = package_of_folder(path, patterns_of(repository))
    if key is None:
        return Meaning()
    return Meaning(key, (key, None)) if path == key else Meaning(files_of=(key, version_of(key, f"{path}/")))


def _files(
    r: Reader, repository_id: int, folder: str, after: str, limit: int, /, *, of_packages: bool
) -> list[File]:  # all files are those of packages
    return list_tree(r, repository_id, folder, after=f"f/{after}", limit=limit).files if of_packages else []


async def _listed(services: Services, repository: Repository, key: str) -> Sequence[str]:
    """The versions of a package (a key) that have folders; none where no upstream has the page of the package."""
    resolver = services.proxy.resolver
    try:
        members = await resolver.members(repository, key, Trace())
        found = merge_versions(await resolver.parts(members, key, VERSIONS))
    except NotFound:
        return ()
    return sorted({*found} - {UNVERSIONED}, key=lambda each: f"{each}/")


FOLDERS: Final = FolderFormat(meaning=_meaning, files=_files, whole=True, listed=_listed)


def folders_of(context: FolderContext) -> Folders:
    """The folders of the repository."""
    return Folders(services=context.services, repository=context.repository, format=FOLDERS)
