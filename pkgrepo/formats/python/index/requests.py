"""Answers to reads of a Python repository: pages, files, metadata."""

from __future__ import annotations

from datetime import datetime
from html import escape
from urllib.parse import unquote

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.formats.python.index.indexing import JSON_TYPE
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_json import read_document, read_listed
from pkgrepo.formats.python.index.project_lists import MergedLists, Project
from pkgrepo.formats.python.names import file_path, parse_filename, parse_version, split_companion
from pkgrepo.gateway.answers.answer_cache import CachedAnswer
from pkgrepo.gateway.answers.content import SAFE, choose_encoding, document_answer, document_cache_control, is_private
from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import best_media_type, names_media_type
from pkgrepo.http.answers import Answer, Fields, json_answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, File, Identity, Repository, RepositoryType, Version
from pkgrepo.repositories.publish.package_lists import PackageLists
from pkgrepo.repositories.publish.splicing import render
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.events import last_activity
from pkgrepo.storage.catalog.server import repositories

JSON_V1 = b"application/vnd.pypi.simple.v1+json"
HTML_V1 = b"application/vnd.pypi.simple.v1+html"
JSON_LATEST = b"application/vnd.pypi.simple.latest+json"
HTML_LATEST = b"application/vnd.pypi.simple.latest+html"
HTML = b"text/html"

PLAIN_HTML = b"text/html; charset=utf-8"

JSON = b"application/json"
ALL_DAYS = (0, 10**6)  # since 1970
POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>
<h1>{title}</h1>
<p>{description}</p>
<p>{packages} packages, downloaded {downloads} times. <a href="{simple}">Simple index</a></p>
<pre>pip install --index-url {simple} PACKAGE</pre>
</body></html>
"""

_CONCRETE = {JSON_V1: JSON_V1, JSON_LATEST: JSON_V1, HTML_V1: HTML_V1, HTML_LATEST: HTML_V1, HTML: PLAIN_HTML}


def choose_page_type(accept: bytes | None, format_parameter: str | None) -> bytes:
    """
    The content type of the answer, always with a concrete version.

    ``format_parameter`` (``?format=``) wins over Accept. JSON wins among types of equal quality. A wildcard alone, no
    Accept, or only unknown types get HTML: some tools parse HTML without asking for it.
    """
    if format_parameter is not None:
        return _CONCRETE.get(format_parameter.encode("latin-1", "replace"), PLAIN_HTML)
    named = [offer for offer in _CONCRETE if names_media_type(accept, offer)]
    best = best_media_type(accept, named) if named else None
    return _CONCRETE.get(best or HTML, PLAIN_HTML)


@frozen(eq=False)
class IndexCaches:
    """The pages of projects, the project lists of hosted repositories, and those of the others."""

    pages: SplicedDocuments
    lists: PackageLists[Project, Document]
    merged_lists: MergedLists


class IndexRequests:
    """Reads of one repository. Permissions are checked by the caller."""

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches

    async def page(self, request: Request, project: str) -> Answer:
        """
        The page of a project, in the form and content coding that the client prefers.

        :raises NotFound: no such project
        """
        catalog, repository, index = self._services.catalog, self._repository, self._caches.pages
        generation = catalog.generation()
        wanted = choose_page_type(request.header(b"accept"), _format_parameter(request))
        found = await self._services.proxy.resolver.state(repository, project, revalidate=request.revalidates)
        rendered = await index.get(self._services.pools, found, _form(wanted), "")

        def negotiate(again: Request) -> Answer | None:
            wanted = choose_page_type(again.header(b"accept"), _format_parameter(again))
            ready = index.ready(rendered.state, _form(wanted), "")
            return None if ready is None else self._page_answer(again, ready, wanted)

        self._services.answer_cache.put_document(request, rendered, negotiate=negotiate, generation=generation)
        return self._page_answer(request, rendered.document, wanted)

    async def project_list(self, request: Request) -> Answer:
        """The list of all projects."""
        catalog, repository, lists = self._services.catalog, self._repository, self._caches.lists
        generation = catalog.generation()
        wanted = choose_page_type(request.header(b"accept"), _format_parameter(request))
        kind = _form(wanted)
        if repository.type is not RepositoryType.HOSTED:
            merged = self._caches.merged_lists
            document = await merged.get(self._services, repository, kind, revalidate=request.revalidates)
            return self._page_answer(request, document, wanted)
        document = await lists.get(catalog, self._services.pools, repository, kind)

        def negotiate(again: Request) -> Answer | None:
            wanted = choose_page_type(again.header(b"accept"), None)
            return self._page_answer(again, document, wanted) if _form(wanted) == kind else None

        self._services.answer_cache.put(
            request,
            CachedAnswer(
                repository,
                package=None,
                negotiate=negotiate,
                fresh=lambda r: lists.ready(r, repository, kind) is document,
                size=2 * len(document.body),
                generation=generation,
            ),
        )
        return self._page_answer(request, document, wanted)

    async def file(self, request: Request, identity: Identity, project: str, version: str, filename: str) -> Answer:
        """
        A distribution or one of its companions.

        :raises NotFound: no such file
        """
        path = file_path(project, version, filename)
        if not path.isprintable() or await self._find(path) is None:
            path = await self.find_path(filename, project, version)
        return await self.file_at(request, identity, path)

    async def file_at(self, request: Request, identity: Identity, path: str) -> Answer:
        """The file at a path of this repository. :raises NotFound: there is none"""
        package, _, _ = path.removeprefix("packages/").partition("/")
        answer = await answer_file(self._services, request, identity, self._repository, package, path)
        return existing(answer, "file", path.rsplit("/", 1)[-1])

    def project_of(self, filename: str) -> str | None:
        """The key of the project in a file's name, whether or not it exists; None if it cannot be parsed."""
        distribution, _ = split_companion(filename)
        try:
            return parse_filename(distribution).project_key
        except Invalid:
            return None

    async def find_path(self, filename: str, project: str | None = None, version: str | None = None) -> str:
        """
        The path of a file, from its name and from the project and version in the URL if they are there.

        :raises NotFound: there is no such version, or the name is of another project or version
        """
        distribution, _ = split_companion(filename)
        try:
            name = parse_filename(distribution, project=project)
        except Invalid:
            raise NotFound("file", filename) from None
        if version is not None and parse_version(version)[0] != name.version_key:
            raise NotFound("file", f"{version}/{filename}")
        for leaf in self._services.proxy.resolver.flat_members(self._repository):
            if leaf.type is RepositoryType.HOSTED:
                found = await self._find_version(leaf, name.project_key, name.version_key)
                if found is not None:
                    return file_path(name.project_key, found.text, filename)
        if self._repository.type is RepositoryType.HOSTED:
            raise NotFound("file", filename)
        # As the normaliser of pages makes it.
        return file_path(name.project_key, name.version_text, filename)

    async def _find_version(self, repository: Repository, project: str, key: str) -> Version | None:
        package = await self._services.catalog.look(packages.find_package, repository.id, project)
        return None if package is None else await self._services.catalog.look(versions.find_version, package.id, key)

    async def file_of_version(
        self,
        request: Request,
        identity: Identity,
        project: str,
        version: str,
        *,
        filename: str | None,
        packagetype: str | None,
    ) -> Answer:
        """
        The preferred file of a version: a universal pure wheel, else the sdist, else the first wheel.

        The answer is not cached: a later upload may change which file is preferred.

        :raises NotFound: no file fits
        """
        path = await self._path_of_version(project, version, filename=filename, packagetype=packagetype)
        named = b'attachment; filename="%s"' % path.rsplit("/", 1)[-1].encode("ascii")
        headers: Fields = (
            (b"Content-Disposition", named),
            (b"Cache-Control", document_cache_control(self._repository)),
            *(field for field in SAFE if field[0] != b"Content-Disposition"),
        )
        answer = await answer_file(self._services, request, identity, self._repository, project, path, headers)
        return existing(answer, "file", path.rsplit("/", 1)[-1])

    async def _path_of_version(
        self, project: str, version: str, *, filename: str | None, packagetype: str | None
    ) -> str:
        candidates = [
            (path, kind)
            for path, kind in await self._distributions_of(project, version)
            if (filename is None or path.endswith("/" + filename)) and (packagetype is None or kind == packagetype)
        ]
        if not candidates:
            raise NotFound("file", filename or f"{project} {version}")

        def rank(candidate: tuple[str, str]) -> tuple[int, str]:
            path, kind = candidate
            pure = path.endswith(("-py3-none-any.whl", "-py2.py3-none-any.whl"))
            return (0 if pure else 1 if kind == "sdist" else 2), path

        return min(candidates, key=rank)[0]

    async def _distributions_of(self, project: str, version: str) -> list[tuple[str, str]]:
        """The path and package type of each distribution of a version. :raises NotFound: there is no such version"""
        key = parse_version(version)[0]
        if self._repository.type is RepositoryType.HOSTED:
            found = existing(
                await self._find_version(self._repository, project, key), "version", f"{project} {version}"
            )
            stored = await self._services.catalog.look(files.files_of_version, found.id)
            return [(file.path, file.attrs.get("packagetype", "")) for file in stored if file.role is None]
        state = await self._services.proxy.resolver.state(self._repository, project)
        spliced, _ = await state.load(JSON_PAGE)
        releases = await self._services.pools.cpu(read_listed, spliced.fragments, project, "")
        release = existing(releases.get(key), "version", f"{project} {version}")
        return [(unquote(file.url.removeprefix("/")), file.packagetype) for file in release.files]

    async def project_document(self, request: Request, project: str, version: str | None, *, simple: bool) -> Answer:
        """
        The JSON metadata of a project, as of its newest version or of the one named.

        :raises NotFound: no such project or version
        """
        key = None if version is None else parse_version(version)[0]
        body, serial = await self._services.catalog.scan(
            read_document, self._repository.id, project, key, self._address(request), simple=simple
        )
        return self.metadata_answer(request, render("application/json", body, serial))

    def metadata_answer(self, request: Request, document: Document) -> Answer:
        """The JSON metadata of a project, which pages of other origins may read unless the repository is private."""
        headers: Fields = (
            (b"Cache-Control", document_cache_control(self._repository)),
            (b"X-PyPI-Last-Serial", b"%d" % document.serial),
            (b"Vary", b"Accept-Encoding"),
        )
        if not is_private(self._repository):
            headers += ((b"Access-Control-Allow-Origin", b"*"),)
        return document_answer(document, choose_encoding(request.header(b"accept-encoding")), headers)

    async def info(self, request: Request) -> Answer:
        """The description of the repository with its current figures."""
        catalog = self._services.catalog
        now = await catalog.look(repositories.find_repository, self._repository.uid) or self._repository
        figures = await catalog.scan(read_figures, now)
        return info_answer(request.header(b"accept"), now, figures, self._address(request))

    async def _find(self, path: str) -> File | None:
        return await self._services.catalog.look(files.find_file, self._repository.id, path)

    def _address(self, request: Request) -> str:
        return self._services.repository_url(request, self._repository)

    def _page_answer(self, request: Request, document: Document, content_type: bytes) -> Answer:
        headers: Fields = (
            (b"Cache-Control", document_cache_control(self._repository)),
            (b"Vary", b"Accept, Accept-Encoding"),
            (b"X-PyPI-Last-Serial", b"%d" % document.serial),
        )
        encoding = choose_encoding(request.header(b"accept-encoding"))
        answer = document_answer(document, encoding, headers, cpu=self._services.pools.cpu)
        return answer if answer.content_type == content_type else _retyped(answer, content_type)


def _form(content_type: bytes) -> str:
    return JSON_PAGE if content_type == JSON_TYPE.encode() else HTML_PAGE


def _retyped(answer: Answer, content_type: bytes) -> Answer:
    return evolve(answer, content_type=content_type)


def _format_parameter(request: Request) -> str | None:
    """The ``format``. An unescaped plus decodes to a blank, which no media type has."""
    value = request.parameter(b"format")
    return None if value is None else value.replace(" ", "+")


@frozen
class Figures:
    """The number of downloads, and the time of the last change of content or settings (aware UTC)."""

    downloaded: int
    changed_at: datetime


def read_figures(reader: Reader, repository: Repository) -> Figures:
    """Read the figures of a repository: a row for each file and day, so this belongs in a reader thread."""
    counted = sum(count for _, count in usage_counts.downloads_by_day(reader, repository.id, *ALL_DAYS))
    last = last_activity(reader, repository.id)
    return Figures(counted, repository.updated_at if last is None else max(last, repository.updated_at))


def info_answer(accept: bytes | None, repository: Repository, figures: Figures, address: str) -> Answer:
    """
    The description: HTML if Accept names and prefers it, as browsers do, else JSON.

    ``address`` is the repository's URL without a trailing slash.
    """
    simple = f"{address}/simple/"
    headers: Fields = ((b"Cache-Control", document_cache_control(repository)), (b"Vary", b"Accept"))
    if names_media_type(accept, HTML) and best_media_type(accept, (JSON, HTML)) == HTML:
        page = _PAGE.format(
            title=escape(repository.path),
            description=escape(repository.description),
            packages=repository.package_count,
            downloads=figures.downloaded,
            simple=escape(simple),
        )
        safe: Fields = ((b"Content-Security-Policy", POLICY),)
        return Answer(body=page.encode(), content_type=b"text/html; charset=utf-8", headers=(*headers, *safe))
    value = {
        "repository": repository.path,
        "title": repository.name,
        "description": repository.description,
        "packages_count": repository.package_count,
        "downloads_count": figures.downloaded,
        "last_updated": msgspec.to_builtins(figures.changed_at),
        "simple": simple,
    }
    return json_answer(value, headers=headers)
