"""Files of a folder, and of addresses below which there are pages of folders."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Final
from urllib.parse import quote

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.formats.raw.configuration import patterns_of
from pkgrepo.formats.raw.files import make_release
from pkgrepo.formats.raw.paths import ALGORITHMS, check_path, check_version, media_type, package_of, version_of
from pkgrepo.gateway.imported.items import Item, Place, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.listings import list_below, read_listing
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site
from pkgrepo.gateway.imported.sources import PathSite
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, NewFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.server.repositories import get_repository

MOST: Final = 100_000  # files and folders of a package at an address
Found = tuple[str, Place, int | None, int | None]  # a path, where it is, its size in bytes, when it was written (ms)


def _source_package(name: str, found: Sequence[Found], marks: Sequence[str]) -> SourcePackage:
    items, left_out = [], []
    for path, place, size, at_ms in found:
        try:
            check_path(path)
        except Invalid as error:
            left_out.append((path[:255], error.message))
            continue
        version = version_of(name, path)
        items.append(Item(name=path, path=path, place=place, version=version, size=size, published_ms=at_ms))
    mark = hashlib.sha256("\n".join(marks).encode()).hexdigest()
    return SourcePackage(name=name, key=name, fingerprint=mark, items=items, left_out=left_out)


class FileFolder:
    """A folder of this machine; what is in one of its folders is a package."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._alone: dict[str, FoundFile] = {}

    async def names(self) -> AsyncIterator[str]:
        """The names of its folders and files."""
        folders, files = await self._folder.list()
        self._alone = {each.name: each for each in files}
        for name in [*folders, *self._alone]:
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a folder, or one file."""
        alone = self._alone.get(name)
        files = await self._folder.files(name) if alone is None else [alone]
        found = [(each.path, self._folder.file(each), each.size, each.modified_ns // 1_000_000) for each in files]
        return _source_package(name, found, [each.mark for each in files])


class FileSite:
    """An address with pages of folders, as web servers make them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._alone: set[str] = set()

    async def names(self) -> AsyncIterator[str]:
        """The names of its folders and files. :raises Invalid: there is no page of the folder"""
        found = await read_listing(self._site, f"{self._site.url}/")
        if found is None:
            raise Invalid("there is no page with the files of this folder", "/source")
        self._alone = set(found.files)
        for name in [*found.folders, *found.files]:
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a folder, or one file. :raises Invalid: a page is none, or these have no end"""
        found, marks = ([name], []) if name in self._alone else await list_below(self._site, name, MOST)
        places = (self._site.file(f"{self._site.url}/{quote(path)}") for path in found)
        return _source_package(
            name, [(path, place, None, None) for path, place in zip(found, places, strict=True)], marks
        )


def _read(path: str) -> tuple[str, str]:
    """The package and the version of the file at a path. :raises Invalid: no file can be there"""
    package = package_of(check_path(path), ())
    return package, check_version(version_of(package, path))


def _settle(r: Reader, repository_id: int, source: SourcePackage) -> SourcePackage:
    """The package. :raises Invalid: by the patterns of the repository it would be several"""
    patterns = patterns_of(get_repository(r, repository_id))
    other = next((key for each in source.items if (key := package_of(each.path, patterns)) != source.key), None)
    if other is not None:
        raise Invalid(f"by the patterns of the repository it has files of {other}: import into one without patterns")
    return source


async def _take(source: SourcePackage, item: Item, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    return make_release(source.key, NewFile(path=item.path, blob=blob, media_type=media_type(item.path)))


TAKING: Final = Taking(take=_take, settle=_settle, algorithms=ALGORITHMS)

IMPORTED: Final = Imported(
    kind="raw",
    about="Files: a folder, or an address with pages of folders.",
    address=lambda site, _: FileSite(site),
    folder=lambda folder, _: FileFolder(folder),
    assets=lambda site, paths: PathSite(site, paths, _read),
    taker=take_files(TAKING),
)
