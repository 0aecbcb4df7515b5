"""What imports take, and where a repository has what lock files name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.described import with_names
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, differs, parse_hashes
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, is_version, list_files
from pkgrepo.gateway.services import Services
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.pools import Pools

from .index import file_source, make_release, read_listing
from .names import INDEX, NAME, FilePath, check_name

_LINE: Final = re.compile(r"(\S+)==(\S+)((?:\s+sha256:[0-9a-f]{64})*)\s*")


class ToyServer:
    """A repository of another server, of which the names of packages are given."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def names(self) -> AsyncIterator[str]:
        """:raises Invalid: no names were given"""
        raise Invalid("the server does not list its packages: give their names", "/names")
        yield ""

    async def package(self, name: str) -> SourcePackage:
        """The files that the document of a package lists."""
        content, url = await self._site.read(f"{self._site.url}/{check_name(name)}/{INDEX}")
        listing, items = read_listing(content, name), []
        for each in listing.files:
            source = file_source(listing, each, url)
            item = Item(
                name=each.file,
                path=source.path,
                place=self._site.file(source.url),
                version=each.version,
                size=each.size,
                digests=source.digests,
                published_ms=round(each.published.timestamp() * 1000),
            )
            items.append(item)
        return SourcePackage(name=name, key=name, fingerprint=hashlib.sha256(content).hexdigest(), items=items)


class ToyFolder:
    """A folder with files at the paths that they have in a repository."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._found: dict[str, list[tuple[FilePath, FoundFile]]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The packages of which the folder has files."""
        for file in await self._folder.files():
            try:
                place = FilePath(*file.path.split("/"))
            except (Invalid, TypeError):
                self._folder.left_out[file.path] = "its path is not <name>/<version>/<file>"
            else:
                self._found.setdefault(place.package, []).append((place, file))
        for each in self._found:
            yield each

    async def package(self, name: str) -> SourcePackage:
        """The files of a package."""
        found = self._found[name]
        items = [
            Item(
                name=place.file,
                path=place.path,
                place=self._folder.file(file),
                version=place.version,
                size=file.size,
                published_ms=file.modified_ns // 1_000_000,
            )
            for place, file in found
        ]
        mark = hashlib.sha256("\n".join(file.mark for _, file in found).encode()).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items)


async def _take(_package: SourcePackage, item: Item, _staged: Staged, blob: BlobInfo, _pools: Pools) -> Release:
    return make_release(FilePath(*item.path.split("/")), blob)


def read_lock(text: str) -> Lock:
    """A lock file: lines of ``name==version sha256:HEX ...``. :raises Invalid: it is another file"""
    lock = Lock()
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is None:
            raise Invalid("it has a line that is not name==version sha256:HEX")
        lock.want(Wanted(format=NAME, name=found[1], version=found[2], digests=parse_hashes(found[3].split())))
    return lock


async def _places(services: Services, repository: Repository, wanted: Sequence[Wanted]) -> list[Place]:
    key = check_name(wanted[0].name)
    return [
        Place(wanted=each, key=key, path=file.path)
        for file in await list_files(services, repository, key)
        for each in wanted
        if is_version(each, file.version, file.path, file.name) and not differs(each.digests, file.digests)
    ]


IMPORTED: Final = Imported(
    kind=NAME,
    about="Toy packages: a toy repository by its address, or a folder of <name>/<version>/<file>.",
    address=lambda site, request: with_names(ToyServer(site), request.names),
    folder=lambda folder, _: ToyFolder(folder),
    taker=take_files(Taking(take=_take)),
    listed=False,
)
MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("toy.lock",), read_lock, frozenset({NAME})),),
    read_list=read_lock,
    name_sign=re.compile(NAME),
    document_keys=lambda wanted: iter([check_name(wanted.name)]),
    places=_places,
    is_wanted=is_version,
)
