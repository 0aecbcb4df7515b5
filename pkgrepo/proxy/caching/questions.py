"""Questions to upstreams, and their answers as this process holds them."""

from __future__ import annotations

import io
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from attrs import evolve, frozen

from pkgrepo.errors import NotFound, PkgrepoError, UpstreamFailed
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, File, Origin, Package, ReadLimits, Repository, Version
from pkgrepo.proxy.caching.states import GONE
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised, section_of
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

T = TypeVar("T")

ABSENT = (404, 410)


@frozen
class Growing:
    """
    How a document is kept that only grows: what was appended has parts of its own, behind those of the rest.

    ``normaliser`` is the ``module:function`` that makes them. ``read`` gives the bytes that parts were made of, also
    those of the rest.
    """

    normaliser: str
    read: Callable[[PartsFile], Iterator[bytes]]


@frozen
class Listing:
    """
    A list of documents with their digests, which an upstream has too.

    ``confirms`` is called with a document's name and MD5 (hex), and with the parts of the response to ``request``. It
    tells whether that names the document with this MD5; None if it does not name it. ``empty_md5`` is that of a
    document without content, which an upstream may list and not have.
    """

    request: DocumentRequest
    confirms: Callable[..., bool | None]
    empty_md5: str = ""


@frozen
class Composition:
    """
    How a document is made where a route does not have it.

    ``make`` gives its bytes, None if the route does not have what they are made of, either. It raises
    L{pkgrepo.errors.Invalid} if that cannot be used. ``normaliser`` is the ``module:function`` that makes parts of it.
    """

    make: Callable[[Sources], Awaitable[bytes | None]]
    normaliser: str


@frozen
class DocumentRequest:
    """
    One question to upstreams.

    ``key`` names it in the repository, ``package_key`` is the package that it is about, ``name`` is the package's name
    for error messages. ``urls`` gives the URLs to ask, in order, for the URL of a route; the next one is asked if one
    does not exist. ``normaliser`` is the ``module:function`` that makes parts of the response, which is asked for as
    ``accept``.

    With ``merges`` the responses of all routes are joined, each of which has its own key; otherwise the first route
    that has it answers alone. ``route`` is the name of the only route that is asked, empty for all. A response is fresh
    for ``most_ttl_s`` seconds at most, whatever the repository's ``cache_ttl`` is.

    With a ``section`` the document is about many packages: of this one are the entries whose ``sort`` begins with it,
    and if there are none, the upstream does not have the package. It is kept once for all of them.

    With a ``service`` the normaliser is given what the route says of itself in another document (``Context.service``),
    such as where its files are. When it says something else, the response is asked for anew. A route without it fails.

    For ``kind`` see L{Upstream.open}.

    Of a ``growing`` document only what was appended is asked for, if the upstream can tell that nothing else changed. A
    document of a ``listing`` that is kept and fresh is as old as that says. One with a ``composition`` is made of
    others where a route does not have it. A ``packed`` one is a gzip file, which is inflated before it is normalised.
    """

    key: str
    package_key: str
    name: str
    urls: Callable[[str], Sequence[str]]
    accept: str
    normaliser: str
    merges: bool = False
    route: str = ""
    most_ttl_s: int | None = None
    growing: Growing | None = None
    listing: Listing | None = None
    composition: Composition | None = None
    packed: bool = False
    section: bytes = b""
    kind: str = ""
    service: DocumentRequest | None = None

    @property
    def owner(self) -> str:
        """The key of the package that the response is kept with; empty if it is about many, or none."""
        return "" if self.section else self.package_key

    @property
    def tail_key(self) -> str:
        """The key of what was appended to the response that has the key of the question."""
        return f"{self.key}+"

    def of_route(self, name: str) -> DocumentRequest:
        """Return the request to one route alone. The route's name has no ``@`` in the key, so the last one ends it."""
        return evolve(self, key=f"{self.key}@{quote(name, safe='')}", route=name, merges=False)


class UnstoredParts:
    """A parts file that is staged and not stored yet: its bytes, or a descriptor that ``close`` closes."""

    def __init__(self, content: int | bytes) -> None:
        self._content: int | bytes | None = content

    def open(self) -> int | bytes | None:
        """The bytes, or a new descriptor, which the caller closes; None after ``close``."""
        return os.dup(self._content) if isinstance(self._content, int) else self._content

    def close(self) -> None:
        """Release the content: the parts are stored, or given up."""
        content, self._content = self._content, None
        if isinstance(content, int):
            os.close(content)


@frozen
class Held:
    """
    A response as it is served: its row, and its parts while they are not stored.

    ``failure`` is what happened when an upstream was asked again; then this is an old response. What is not ``stored``
    is not cached by its row. This may continue another response, its ``base``, whose parts come before these.

    ``listed_ms`` is when the list came that names the document (0: none is kept), and ``named`` whether that list is
    fresh and names these bytes; None if that is not known.
    """

    document: UpstreamDocument
    unstored: UnstoredParts | None = None
    stored: bool = True
    failure: PkgrepoError | None = None
    base: Held | None = None
    listed_ms: int = 0
    named: bool | None = None

    @property
    def stale(self) -> bool:
        """Whether an upstream failed when it was asked again, or none has it any more."""
        return self.failure is not None or GONE in self.document.meta

    def missing(self, name: str) -> PkgrepoError:
        """The error that means this response, which is that no upstream has the package ``name``."""
        return NotFound("package", name) if self.failure is None else self.failure.with_traceback(None)

    def is_of(self, other: Held) -> bool:
        """Whether this has the same content as another answer to the same question."""
        return self.document.fetched_ms == other.document.fetched_ms


@frozen
class Received:
    """
    A new response of a route: its final URL, validators, and sha256 (hex).

    It is to be kept under ``key`` with ``meta``. If that is the ``tail_key`` of the question, it continues the earlier
    answer.

    Its ``parts`` are ``staged``; ``content`` are their bytes, or a descriptor if they are many. The caller who gets
    this closes that and ``stack``, which removes the parts if they were not claimed.
    """

    key: str
    meta: Mapping[str, Any]
    url: str
    etag: str | None
    last_modified: str | None
    source: str
    parts: BlobInfo
    content: int | bytes
    staged: Staged
    stack: AsyncExitStack


class Answers(Protocol):
    """The responses of all upstreams, see L{pkgrepo.proxy.caching.documents.Documents}."""

    async def answer(
        self, repository: Repository, request: DocumentRequest, trace: Trace, *, revalidate: bool = False
    ) -> Held:
        """The present answer to a question."""

    async def read(self, repository: Repository, request: DocumentRequest, held: Held, work: Callable[..., T]) -> T:
        """The result of ``work``, which is called with the parts of a response."""


class Sources:
    """
    The other documents and files of a route, of which a document is made. Each call is named in a step of the trace.

    ``before`` is the earlier response of the route to the question itself; the failures of a route count as those of
    the ``subject``, which is the package that the question is about.

    ``asked`` are the names of what was asked for, and how many files. ``failure`` is set if an old response was read,
    which may lack what the route has by now.

    :raises UpstreamFailed: of all methods: the route failed
    """

    def __init__(
        self,
        repository: Repository,
        route: Route,
        answers: Answers,
        upstreams: Upstreams,
        before: Held | None,
        subject: str,
    ) -> None:
        self._repository = repository
        self._route = route
        self._answers = answers
        self._upstream = upstreams.of(repository.id, route)
        self._timeout_s = upstreams.document_timeout_s
        self._before = before
        self._subject = subject
        self.failure: PkgrepoError | None = None
        self._names: list[str] = []
        self._files = 0

    @property
    def asked(self) -> str:
        """What the route was asked for, as a list in words."""
        files = [f"{self._files} files"] if self._files > 1 else ["a file"] * self._files
        return ", ".join([*self._names, *files])

    async def read(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """The result of ``work``, which is called with the parts of another document; None if the route has none."""
        # The key of a question to one route differs from that of the same question to all.
        alone = len(proxy_config_of(self._repository).routes) == 1
        question = request if alone else request.of_route(self._route.name)
        self._names.append(request.name)
        held = await self._answers.answer(self._repository, question, Trace())
        self.failure = self.failure or held.failure
        if held.document.found:
            return await self._answers.read(self._repository, question, held, work)
        if held.failure is not None:
            raise held.missing(request.name)
        return None

    async def read_previous(self, request: DocumentRequest, work: Callable[[PartsFile], T]) -> T | None:
        """The result of ``work`` with what was made for the question itself before; None if there is nothing."""
        if self._before is None:
            return None
        return await self._answers.read(self._repository, request, self._before, work)

    async def has(self, path: str) -> bool:
        """Whether the route has a file at a path below its URL, as far as it says so; it is not fetched."""
        self._names.append(path)
        async with self._upstream.open("HEAD", path, {}, subject=self._subject) as response:
            if response.status == 200:
                return True
            if response.status in ABSENT:
                return False
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")

    async def fetch(self, path: str, most: int) -> bytes | None:
        """A file at a path below the route's URL, of at most ``most`` bytes; None if the route has none."""
        self._files += 1
        limits = ReadLimits(most, self._timeout_s)
        async with self._upstream.open("GET", path, {}, limits=limits, subject=self._subject) as response:
            if response.status == 200:
                return await response.read()
            if response.status in ABSENT:
                return None
            raise UpstreamFailed(self._route.name, f"it answered {response.status} for {path}")


def restored_document(
    request: DocumentRequest, origin: Origin, normalised: Normalised
) -> tuple[UpstreamDocument, bytes]:
    """
    The answer to a question and its parts, as of the file that was fetched last, which has this ``origin``.

    :raises Invalid: see L{write_parts}
    """
    out = io.BytesIO()
    write_parts(out, normalised)
    document = UpstreamDocument(
        key=request.key,
        package_key=request.package_key,
        route=origin.route,
        fetched_ms=origin.fetched_ms,
        checked_ms=origin.fetched_ms,
        fresh_until_ms=origin.fetched_ms,
    )
    return document, out.getvalue()


def restored_document_of(
    request: Callable[[str], DocumentRequest],
    restore: Callable[[Reader, Package], tuple[Origin, Normalised] | None],
) -> Callable[[Reader, Package], Sequence[tuple[UpstreamDocument, bytes]]]:
    """The function that makes the one document of a package; ``restore`` returns None if nothing is kept of it."""

    def restore_documents(reader: Reader, package: Package) -> Sequence[tuple[UpstreamDocument, bytes]]:
        found = restore(reader, package)
        return () if found is None else (restored_document(request(package.key), *found),)

    return restore_documents


def restored_versions(
    entry_of: Callable[[Version, Origin, Sequence[File]], Entry | None],
) -> Callable[[Reader, Package], tuple[Origin, Normalised] | None]:
    """
    The function that makes the parts of a document of what is kept of a package, with the newest origin.

    ``entry_of`` makes the entry of a version from its files, the main one of which has this origin; None if it cannot.
    """

    def restore(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
        found: list[tuple[Origin, Entry]] = []
        for version in versions.list_versions(reader, package.id):
            stored = files.files_of_version(reader, version.id)
            origin = next((each.origin for each in stored if each.role is None and each.origin is not None), None)
            entry = None if origin is None else entry_of(version, origin, stored)
            if origin is not None and entry is not None:
                found.append((origin, entry))
        if not found:
            return None
        newest = max((origin for origin, _ in found), key=lambda each: each.fetched_ms)
        return newest, Normalised({}, iter([entry for _, entry in found]))

    return restore


def restored_sections(
    request: DocumentRequest, kind: str
) -> Callable[[Reader, Repository], Sequence[tuple[UpstreamDocument, bytes]]]:
    """
    The function that makes the one document over all packages of a proxy, as far as their files are kept.

    ``kind`` is that of the fragments, which packages of the proxy have by the texts of versions.
    """

    def restore(reader: Reader, repository: Repository) -> Sequence[tuple[UpstreamDocument, bytes]]:
        entries: list[Entry] = []
        origins: list[Origin] = []
        for key, fragments in index_documents.fragments_by_package(reader, repository.id, kind):
            bodies = {each.key: each.body for each in fragments}
            package = packages.find_package(reader, repository.id, key)
            for version in [] if package is None else versions.list_versions(reader, package.id):
                stored = files.files_of_version(reader, version.id)
                origin = next((each.origin for each in stored if each.role is None), None)
                if origin is not None and version.text in bodies:
                    origins.append(origin)
                    sort, body = section_of(key) + version.sort, {kind: bodies[version.text]}
                    entries.append(restored_entry(version, version.text, origin, body, stored, sort=sort))
        if not origins:
            return ()
        newest = max(origins, key=lambda each: each.fetched_ms)
        return (restored_document(request, newest, Normalised({}, iter(entries))),)

    return restore


def restored_entry(
    version: Version, key: str, origin: Origin, fragments: dict[str, bytes], kept: Iterable[File], *, sort: bytes = b""
) -> Entry:
    """
    The entry of a version, or of its file, that was fetched from ``origin``.

    What is ``kept`` without an origin does not count. Its place is ``sort``, or else that of the version.
    """
    return Entry(
        sort=sort or version.sort,
        key=key,
        version=version.text,
        published_ms=origin.fetched_ms if origin.published_ms is None else origin.published_ms,
        first_seen=origin.first_seen or origin.published_ms is None,
        fragments=fragments,
        files=[
            FileSource(each.path, each.origin.url, each.size, dict(each.digests), each.media_type, {})
            for each in kept
            if each.origin is not None
        ],
    )


def restored_files_of(
    request: Callable[[str], DocumentRequest], fragments: Callable[[Version, File, datetime], dict[str, bytes]]
) -> Callable[[Reader, Package], Sequence[tuple[UpstreamDocument, bytes]]]:
    """
    The function that makes the one document of a package, which lists each file by itself.

    ``fragments`` are those of a file of a version that was published at a time.
    """

    def restore(reader: Reader, package: Package) -> tuple[Origin, Normalised] | None:
        entries: list[Entry] = []
        origins: list[Origin] = []
        for version in versions.list_versions(reader, package.id):
            for file in files.files_of_version(reader, version.id):
                if file.origin is not None:
                    said_ms = file.origin.published_ms
                    published = from_ms(file.origin.fetched_ms if said_ms is None else said_ms)
                    made = fragments(version, file, published)
                    entries.append(restored_entry(version, file.path, file.origin, made, [file]))
                    origins.append(file.origin)
        newest = max(origins, key=lambda each: each.fetched_ms, default=None)
        return None if newest is None else (newest, Normalised({}, iter(entries)))

    return restored_document_of(request, restore)
