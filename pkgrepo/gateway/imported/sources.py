"""
Sources that say all in the ways of the format: its documents at an address, its paths in a folder.

What a document lists of a file is read as proxies read it: the fragments of its entry are what the file is ``about``.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.imported.described import Once
from pkgrepo.gateway.imported.items import Fact, Item, SourcePackage, State, downloads_of
from pkgrepo.gateway.imported.places import LARGEST_LIST, Folder, FoundFile, Site
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.parts.jobs import normaliser_of
from pkgrepo.proxy.parts.values import Context, Entry, FileSource, name_in

LARGEST_DOCUMENT: Final = 64 * 1024 * 1024  # bytes

StateOf = Callable[[Entry], State | None]
Read = Callable[[str], tuple[str, str]]
Paths = Callable[[], AsyncIterator[tuple[str, Fact]]]  # of files, below an address, and what is known of each


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
            about=entry.fragments,
        )
        for entry in entries
        for source in entry.files
        if is_taken(source.path)
    ]


def states_in(entries: Iterable[Entry], state_of: StateOf) -> Mapping[str, State]:
    """The states of the versions that are not live."""
    return {entry.version: state for entry in entries if (state := state_of(entry)) is not None}


class DocumentSource:
    """
    A repository of another server, which is asked for the documents that proxies ask for.

    ``state_of`` tells of an entry whether its version is yanked or deprecated; None if it is neither.
    """

    def __init__(
        self, site: Site, request: Callable[[str], DocumentRequest], state_of: StateOf = lambda _entry: None
    ) -> None:
        self._site = site
        self._request = request
        self._state_of = state_of
        self._service: Once[dict[str, Any]] = Once()

    async def names(self) -> AsyncIterator[str]:
        """:raises Invalid: names of packages have to be given"""
        raise Invalid("the server does not list its packages: give their names", "/names")
        yield

    async def package(self, name: str) -> SourcePackage:
        """The files that the document of a package lists. :raises NotFound: no URL has it"""
        request = self._request(name)
        service = request.service
        said = {} if service is None else await self._service.get(partial(self._read_service, service))
        content, url = await self._read(request)
        return await self._site.pools.cpu(self._package, request, content, Context(request.name, url, service=said))

    async def _read_service(self, request: DocumentRequest) -> dict[str, Any]:
        content, url = await self._read(request)
        return normaliser_of(request.normaliser)(content, Context(request.name, url)).top

    async def _read(self, request: DocumentRequest) -> tuple[bytes, str]:
        for url in request.urls(self._site.url):
            with suppress(NotFound):
                return await self._site.read(url, request.accept, largest=LARGEST_DOCUMENT)
        raise NotFound("package", request.name)

    def _package(self, request: DocumentRequest, content: bytes, context: Context) -> SourcePackage:
        entries = list(normaliser_of(request.normaliser)(content, context).entries)
        return SourcePackage(
            name=request.name,
            key=request.package_key,
            fingerprint=hashlib.sha256(content).hexdigest(),
            items=entry_items(self._site, entries),
            states=states_in(entries, self._state_of),
        )


@frozen(kw_only=True)
class FolderDocuments:
    """
    Documents of packages in the folder ``below`` another one: that of a package (a key) is at ``path``, if it is there.

    ``request`` is how an upstream is asked for it, which says of itself what is in ``service``.
    """

    below: str
    path: Callable[[str], str]
    request: Callable[[str], DocumentRequest]
    service: Mapping[str, Any]
    state_of: StateOf

    async def read(self, folder: Folder, key: str) -> tuple[bytes, list[Entry]]:
        """The document of a package and its entries; empty if there is none."""
        try:
            content = await folder.read(f"{self.below}/{self.path(key)}", LARGEST_DOCUMENT)
        except NotFound:
            return b"", []
        return content, await folder.pools.cpu(self._entries, self.request(key), content)

    def _entries(self, request: DocumentRequest, content: bytes) -> list[Entry]:
        context = Context(request.name, "", service=dict(self.service))
        return list(normaliser_of(request.normaliser)(content, context).entries)


class IndexSource:
    """
    A repository of another server, with one document over all its packages, in sections.

    ``is_taken`` tells which of the files are taken that it lists, by their paths.
    """

    def __init__(self, site: Site, request: DocumentRequest, is_taken: Callable[[str], bool]) -> None:
        self._site = site
        self._request = request
        self._is_taken = is_taken
        self._entries: dict[str, list[Entry]] = {}

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages. :raises NotFound: there is no such document"""
        for url in self._request.urls(self._site.url):
            content, final = await self._site.read(url, self._request.accept)
            for each in await self._site.pools.cpu(_entries, self._request, content, final):
                self._entries.setdefault(name_in(each.sort), []).append(each)
        for name in list(self._entries):
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a package."""
        entries = self._entries.pop(name)
        mark = hashlib.sha256(b"\n".join(body for each in entries for body in each.fragments.values())).hexdigest()
        items = entry_items(self._site, entries, self._is_taken)
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items)


class FolderIndex:
    """The one document over all packages that a folder may have at its path; it is used as L{FolderDocuments}."""

    state_of: StateOf = staticmethod(lambda _entry: None)

    def __init__(self, request: DocumentRequest) -> None:
        self.below = request.key
        self._request = request
        self._listed: dict[str, list[Entry]] | None = None

    async def read(self, folder: Folder, key: str) -> tuple[bytes, list[Entry]]:
        """The entries of a package; none if there is no document. :raises Invalid: it cannot be read"""
        if self._listed is None:
            self._listed = {}
            with suppress(NotFound):
                content = await folder.read(self.below, LARGEST_LIST)
                for each in await folder.pools.cpu(_entries, self._request, content, "http://folder.invalid/"):
                    self._listed.setdefault(name_in(each.sort), []).append(each)
        return b"", self._listed.get(key, [])


def _entries(request: DocumentRequest, content: bytes, url: str) -> list[Entry]:
    return list(normaliser_of(request.normaliser)(content, Context(request.name, url)).entries)


class PathFolder:
    """
    A folder with files at the paths that they have in a repository, or at others: ``path_of`` are the former.

    ``read`` gives the package (a key) and the version that a path is of, and raises ``Invalid`` if it is of none;
    without a message such a file is passed over in silence. Of those that ``documents`` list these say more.
    """

    def __init__(
        self,
        folder: Folder,
        read: Read,
        *,
        path_of: Callable[[str], str] = str,
        documents: FolderDocuments | FolderIndex | None = None,
    ) -> None:
        self._folder = folder
        self._read = read
        self._path_of = path_of
        self._documents = documents
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
                listed = self._documents is not None and f"{file.path}/".startswith(f"{self._documents.below}/")
                if error.message and not listed:
                    self._folder.left_out[file.path] = error.message
            else:
                self._found.setdefault(package, []).append((version, file))

    async def package(self, name: str) -> SourcePackage:
        """The files of a package."""
        found, entries, content = self._found.pop(name), list[Entry](), b""
        states: Mapping[str, State] = {}
        if self._documents is not None:
            content, entries = await self._documents.read(self._folder, name)
            states = states_in(entries, self._documents.state_of)
        listed = {source.path: (entry, source) for entry in entries for source in entry.files}
        items = [
            self._item(version, file, *listed.get(self._path_of(file.path), (None, None))) for version, file in found
        ]
        mark = hashlib.sha256("\n".join(file.mark for _, file in found).encode() + content).hexdigest()
        return SourcePackage(name=name, key=name, fingerprint=mark, items=items, states=states)

    def _item(self, version: str, file: FoundFile, entry: Entry | None, source: FileSource | None) -> Item:
        said_ms = None if entry is None else entry.published_ms
        return Item(
            name=file.name,
            path=self._path_of(file.path),
            place=self._folder.file(file),
            version=version,
            size=file.size,
            digests={} if source is None else source.digests,
            published_ms=file.modified_ns // 1_000_000 if said_ms is None else said_ms,
            about=None if entry is None else entry.fragments,
        )


class PathSite:
    """
    The files of a repository by a list of their paths below an address, which the API of another server has.

    ``read`` and ``path_of`` are as in L{PathFolder}. ``settle`` returns the package with what else the format says of
    its files. What is left out comes last, in the package without a name.
    """

    def __init__(
        self,
        site: Site,
        paths: Paths,
        read: Read,
        *,
        path_of: Callable[[str], str] = str,
        settle: Callable[[SourcePackage], SourcePackage] = lambda package: package,
    ) -> None:
        self._site = site
        self._paths = paths
        self._read = read
        self._path_of = path_of
        self._settle = settle
        self._found: dict[str, list[tuple[str, str, Fact]]] = {}  # paths and versions, by package
        self._left_out: list[tuple[str, str]] = []

    async def names(self) -> AsyncIterator[str]:
        """The packages of which there are files, and an empty name if something is left out."""
        async for path, fact in self._paths():
            try:
                package, version = self._read(path)
            except Invalid as error:
                if error.message:
                    self._left_out.append((path[:255], error.message))
            else:
                self._found.setdefault(package, []).append((path, version, fact))
        found = dict.fromkeys(sorted(self._found))
        if self._left_out:
            found |= {"": None}
        for name in found:
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The files of a package."""
        found, left_out = sorted(self._found.pop(name, ()), key=itemgetter(0)), [] if name else self._left_out
        items = [
            Item(
                name=path,
                path=self._path_of(path),
                place=self._site.file(f"{self._site.url}/{quote(path)}"),
                version=version,
                digests=fact.digests,
                published_ms=fact.published_ms,
                publisher=fact.publisher,
            )
            for path, version, fact in found
        ]
        said = SourcePackage(
            name=name,
            key=name,
            fingerprint=hashlib.sha256(repr((found, left_out)).encode()).hexdigest(),
            items=items,
            left_out=left_out,
            downloads=downloads_of(items, {path: fact for path, _, fact in found}),
        )
        return self._settle(said)
