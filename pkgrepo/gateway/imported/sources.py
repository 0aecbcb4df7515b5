"""Sources that say all in the ways of the format: its documents at an address, its paths in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.imported.items import Item, SourcePackage
from pkgrepo.gateway.imported.places import Folder, FoundFile, Site
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.parts.jobs import normaliser_of
from pkgrepo.proxy.parts.values import Context, Entry

LARGEST_DOCUMENT: Final = 64 * 1024 * 1024  # bytes


def entry_items(
    site: Site, entries: Iterable[Entry], is_taken: Callable[[str], bool] = lambda _path: True
) -> list[Item]:
    """The files that a document lists, as proxies read it; ``is_taken`` tells it of the path of a file."""
    return [
        Item(
            name=source.path.rpartition("/")[2],
            path=source.path,
            place=site.file(source.url),
            version=entry.version,
            size=source.size,
            digests=source.digests,
            published_ms=entry.published_ms,
        )
        for entry in entries
        for source in entry.files
        if is_taken(source.path)
    ]


class DocumentSource:
    """A repository of another server, which is asked for the documents that proxies ask for."""

    def __init__(self, site: Site, request: Callable[[str], DocumentRequest]) -> None:
        self._site = site
        self._request = request

    async def names(self) -> AsyncIterator[str]:
        """:raises Invalid: names of packages have to be given"""
        raise Invalid("the server does not list its packages: give their names", "/names")
        yield

    async def package(self, name: str) -> SourcePackage:
        """The files that the document of a package lists. :raises NotFound: no URL has it"""
        request = self._request(name)
        for url in request.urls(self._site.url):
            try:
                content, final = await self._site.read(url, request.accept, largest=LARGEST_DOCUMENT)
            except NotFound:
                continue
            return await self._site.pools.cpu(self._package, request, content, final)
        raise NotFound("package", name)

    def _package(self, request: DocumentRequest, content: bytes, url: str) -> SourcePackage:
        normalised = normaliser_of(request.normaliser)(content, Context(request.name, url))
        return SourcePackage(
            name=request.name,
            key=request.package_key,
            fingerprint=hashlib.sha256(content).hexdigest(),
            items=entry_items(self._site, normalised.entries),
        )


class PathFolder:
    """
    A folder with files at the paths that they have in a repository.

    ``read`` gives the package (a key) and the version that a path is of, and raises ``Invalid`` if it is of none.
    """

    def __init__(self, folder: Folder, read: Callable[[str], tuple[str, str]]) -> None:
        self._folder = folder
        self._read = read
        self._found: dict[str, list[tuple[str, FoundFile]]] = {}  # versions and files, by package

    async def names(self) -> AsyncIterator[str]:
        """The packages of which the folder has files."""
        await self._folder.pools.cpu(self._sort_in, await self._folder.files())
        for each in sorted(self._found):
            yield each

    def _sort_in(self, files: Iterable[FoundFile]) -> None:
        for file in files:
            try:
                package, version = self._read(file.path)
            except Invalid as error:
                self._folder.left_out[file.path] = error.message
            else:
                self._found.setdefault(package, []).append((version, file))

    async def package(self, name: str) -> SourcePackage:
        """The files of a package."""
        found = self._found.pop(name)
        items = [
            Item(
                name=file.name,
                path=file.path,
                place=self._folder.file(file),
                version=version,
                size=file.size,
                published_ms=file.modified_ns // 1_000_000,
            )
            for version, file in found
        ]
        mark = hashlib.sha256("\n".join(file.mark for _, file in found).encode()).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items)
