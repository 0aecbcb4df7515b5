"""Reads of a Python repository: pages, the list of projects, files, and its description."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from html import escape
from urllib.parse import unquote

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.formats.python.index.indexing import JSON_TYPE
from pkgrepo.formats.python.index.pages import HELD_PAGE, HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_json import read_listed
from pkgrepo.formats.python.index.project_lists import MergedLists, Project
from pkgrepo.formats.python.names import PROVENANCE, file_path, parse_filename, project_key, split_companion
from pkgrepo.formats.python.versions import version_key
from pkgrepo.gateway.package_documents import Found, answer_document, serve_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.responses.content import SAFE, choose_encoding, document_cache_control, document_response
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.answering.negotiation import best_media_type, named_media_types, names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Document, Identity, Repository, RepositoryType
from pkgrepo.repositories.publish.package_lists import PackageLists
from pkgrepo.storage.catalog import usage_counts
from pkgrepo.storage.catalog.packages import files, versions
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

# uv 0.13 takes a yanked version only for a requirement of the project itself, or of its lock file. pip 26 and Poetry
# 2.5 also take it for one of another package, and then stop at the 403 where they would look for an older one of that.
_TAKES_YANKED = b"uv/"

_CONCRETE = {JSON_V1: JSON_V1, JSON_LATEST: JSON_V1, HTML_V1: HTML_V1, HTML_LATEST: HTML_V1, HTML: PLAIN_HTML}


def choose_page_type(accept: bytes | None, format_parameter: str | None) -> bytes:
    """
    The content type of the response, always with a concrete version.

    ``format_parameter`` (``?format=``) wins over Accept. JSON wins among types of equal quality. A wildcard alone, no
    Accept, or only unknown types get HTML: some tools parse HTML without asking for it.
    """
    if format_parameter is not None:
        return _CONCRETE.get(format_parameter.encode("latin-1", "replace"), PLAIN_HTML)
    named = named_media_types(accept, _CONCRETE)
    best = best_media_type(accept, named) if named else None
    return _CONCRETE.get(best or HTML, PLAIN_HTML)


@frozen(eq=False)
class IndexCaches:
    """The pages of projects, the project lists of hosted repositories, and those of the others."""

    pages: SplicedDocuments
    lists: PackageLists[Project, Document]
    merged_lists: MergedLists


async def page(context: Context[IndexCaches], request: Request, project: str) -> Response:
    """
    The page of a project, in the form and content coding that the client prefers.

    Other spellings of its name, or a missing slash, get one redirect.

    :raises NotFound: no such project
    """
    key = project_key(project)
    await context.admit(request, Action.READ, key)
    slash = request.raw_path.endswith(b"/")
    if project != key or not slash:
        return _moved(request, (b"../" if slash else b"") + key.encode("ascii") + b"/")
    repository = context.repository
    return await answer_document(
        context.services,
        request,
        repository,
        key,
        context.caches.pages,
        partial(_form_of_page, repository),
        # Links are relative. A view may show all that there is now, and its documents have other ETags.
        address="" if repository.view is None else repository.address,
        respond=partial(_page_response, context),
    )


async def project_list(context: Context[IndexCaches], request: Request) -> Response:
    """The list of all projects: the simple index's root (PEP 503, PEP 691)."""
    await context.admit(request, Action.READ)
    if not request.raw_path.endswith(b"/"):
        return _moved(request, request.raw_path.rsplit(b"/", 1)[-1] + b"/")
    services, repository, lists = context.services, context.repository, context.caches.lists
    kind = _form(_page_type(request))
    if repository.type is not RepositoryType.HOSTED or repository.view is not None:
        merged = context.caches.merged_lists
        document = await merged.get(services, repository, kind, revalidate=request.revalidates)
        return _page_response(context, request, document)

    async def look() -> Found[Document]:
        document = await lists.get(services.catalog, services.pools, repository, kind)
        return Found(
            document=document,
            respond=partial(_page_response, context),
            ready=lambda again: document if _form(_page_type(again)) == kind else None,
            fresh=lambda r: lists.ready(r, repository, kind) is document,
            size=2 * len(document.body),
        )

    return await serve_document(services, request, repository, look)


async def file(context: Context[object], request: Request, project: str, version: str, filename: str) -> Response:
    """A distribution, its metadata (PEP 658), signature or provenance (PEP 740). :raises NotFound: no such file"""
    key = project_key(project)
    identity = await context.admit(request, Action.READ, key)
    path = file_path(key, version, filename)
    catalog = context.services.catalog
    if not path.isprintable() or await catalog.look(files.find_file, context.repository.id, path) is None:
        path = await find_path(context, filename, key, version)
    return await _file_at(context, request, identity, path)


async def provenance(context: Context[object], request: Request, project: str, version: str, filename: str) -> Response:
    """The provenance of a distribution (PEP 740)."""
    return await file(context, request, project, version, filename + PROVENANCE)


async def file_by_name(context: Context[object], request: Request, filename: str) -> Response:
    """A file by its name alone."""
    distribution, _ = split_companion(filename)
    try:
        key = parse_filename(distribution, eggs=True).project_key
    except Invalid:
        key = None
    identity = await context.admit(request, Action.READ, key)
    return await _file_at(context, request, identity, await find_path(context, filename))


async def file_beside_page(context: Context[object], request: Request, project: str, filename: str) -> Response:
    """A file below its project's page."""
    key = project_key(project)
    identity = await context.admit(request, Action.READ, key)
    return await _file_at(context, request, identity, await find_path(context, filename, key))


async def file_of_version(context: Context[object], request: Request, project: str, version: str) -> Response:
    """
    The preferred file of a version: a universal pure wheel, else the sdist, else the first wheel.

    ``filename`` and ``packagetype`` narrow the choice. The response is not cached: a later upload may change which file
    is preferred.

    :raises NotFound: no file fits
    """
    key = project_key(project)
    identity = await context.admit(request, Action.READ, key)
    filename, packagetype = request.parameter(b"filename"), request.parameter(b"packagetype")
    if filename is not None:  # an unescaped ``+`` of a local version decodes to a blank, which no file name has
        filename = filename.replace(" ", "+")
    if filename is not None and packagetype is None:
        path = await find_path(context, filename, key, version)  # a rule that hides it says so
    else:
        candidates = [
            (path, kind)
            for path, kind in await _distributions_of(context, key, version)
            if (filename is None or path.endswith("/" + filename)) and (packagetype is None or kind == packagetype)
        ]
        if not candidates:
            raise NotFound("file", filename or f"{key} {version}")
        path, _ = min(candidates, key=_rank)
    named = b'attachment; filename="%s"' % path.rsplit("/", 1)[-1].encode("ascii")
    headers: Fields = (
        (b"Content-Disposition", named),
        (b"Cache-Control", document_cache_control(context.repository)),
        *(field for field in SAFE if field[0] != b"Content-Disposition"),
    )
    return await _file_at(context, request, identity, path, headers)


async def find_path(
    context: Context[object], filename: str, project: str | None = None, version: str | None = None
) -> str:
    """
    The path of a file, from its name and from the project and version in the URL if they are there.

    :raises NotFound: there is no such version, or the name is of another project or version
    """
    distribution, _ = split_companion(filename)
    try:
        name = parse_filename(distribution, project=project, eggs=True)
    except Invalid:
        raise NotFound("file", filename) from None
    if version is not None and version_key(version) != name.version_key:
        raise NotFound("file", f"{version}/{filename}")
    for member in context.services.proxy.resolver.flat_members(context.repository):
        if member.type is RepositoryType.HOSTED:
            found = await context.services.catalog.look(
                versions.find_by_keys, member.id, name.project_key, name.version_key
            )
            if found is not None:
                return file_path(name.project_key, found.text, filename)
    if context.repository.type is RepositoryType.HOSTED:
        raise NotFound("file", filename)
    # As the normaliser of pages makes it.
    return file_path(name.project_key, name.version_text, filename)


async def info(context: Context[object], request: Request) -> Response:
    """The description of the repository: HTML if Accept names and prefers it, as browsers do, else JSON."""
    await context.admit(request, Action.READ)
    accept, catalog = request.header(b"accept"), context.services.catalog
    repository = await catalog.look(repositories.find_repository, context.repository.uid) or context.repository
    downloaded, changed_at = await catalog.scan(_read_figures, repository)
    simple = f"{context.url(request)}/simple/"
    headers: Fields = ((b"Cache-Control", document_cache_control(repository)), (b"Vary", b"Accept"))
    if names_media_type(accept, HTML) and best_media_type(accept, (JSON, HTML)) == HTML:
        page = _PAGE.format(
            title=escape(repository.path),
            description=escape(repository.description),
            packages=repository.package_count,
            downloads=downloaded,
            simple=escape(simple),
        )
        safe: Fields = ((b"Content-Security-Policy", POLICY),)
        return Response(body=page.encode(), content_type=b"text/html; charset=utf-8", headers=(*headers, *safe))
    value = {
        "repository": repository.path,
        "title": repository.name,
        "description": repository.description,
        "packages_count": repository.package_count,
        "downloads_count": downloaded,
        "last_updated": msgspec.to_builtins(changed_at),
        "simple": simple,
    }
    return json_response(value, headers=headers)


async def _file_at(
    context: Context[object], request: Request, identity: Identity, path: str, headers: Fields | None = None
) -> Response:
    """The file at a path of the repository. :raises NotFound: there is none"""
    package, _, _ = path.removeprefix("packages/").partition("/")
    response = await answer_file(context.services, request, identity, context.repository, package, path, headers)
    return existing(response, "file", path.rsplit("/", 1)[-1])


async def _distributions_of(context: Context[object], project: str, version: str) -> list[tuple[str, str]]:
    """
    The path and package type of each distribution of a version.

    :raises NotFound: there is no such version; :raises RuleRefused: a rule hides it
    """
    services, repository = context.services, context.repository
    key, what = version_key(version), f"{project} {version}"
    if services.proxy.resolver.reads_catalog(repository, project):
        found = existing(
            await services.catalog.look(versions.find_by_keys, repository.id, project, key), "version", what
        )
        stored = await services.catalog.look(files.files_of_version, found.id)
        return [(file.path, file.attrs.get("packagetype", "")) for file in stored if file.role is None]
    state = await services.proxy.resolver.state(repository, project)
    spliced, state = await services.view_turns.make(repository, partial(state.load, JSON_PAGE), package=project)
    releases = await services.pools.cpu(read_listed, spliced.fragments, project, "")
    release = releases.get(key)
    if release is None:
        raise state.refusal_of(lambda text: version_key(text) == key) or NotFound("version", what)
    return [(unquote(file.url.removeprefix("/")), file.packagetype) for file in release.files]


def _rank(candidate: tuple[str, str]) -> tuple[int, str]:
    path, kind = candidate
    pure = path.endswith(("-py3-none-any.whl", "-py2.py3-none-any.whl"))
    return (0 if pure else 1 if kind == "sdist" else 2), path


def _page_response(
    context: Context[object], request: Request, document: Document, *, settled: bool = False
) -> Response:
    content_type = _page_type(request)
    headers: Fields = (
        (b"Cache-Control", document_cache_control(context.repository, settled=settled)),
        (b"Vary", b"Accept, Accept-Encoding"),
        (b"X-PyPI-Last-Serial", b"%d" % document.serial),
    )
    encoding = choose_encoding(request.header(b"accept-encoding"))
    response = document_response(document, encoding, headers, cpu=context.services.pools.cpu)
    return response if response.content_type == content_type else evolve(response, content_type=content_type)


def _moved(request: Request, location: bytes) -> Response:
    """A redirect; relative, so that it is right behind a reverse proxy that strips a prefix."""
    if request.raw_query:
        location += b"?" + request.raw_query
    return Response(301, headers=((b"Location", location), (b"Cache-Control", b"no-cache")))


def _page_type(request: Request) -> bytes:
    return choose_page_type(request.header(b"accept"), _format_parameter(request))


def _form_of_page(repository: Repository, request: Request) -> str:
    """
    The form of a page that a request asks for.

    What rules hold is listed for programs that ask for a yanked file only if somebody names its version, and not in
    views, which show what there was. There is no Vary for that: documents are revalidated each time.
    """
    form = _form(_page_type(request))
    knows = (request.header(b"user-agent") or b"").startswith(_TAKES_YANKED)
    return HELD_PAGE if form == JSON_PAGE and knows and repository.view is None else form


def _form(content_type: bytes) -> str:
    return JSON_PAGE if content_type == JSON_TYPE.encode() else HTML_PAGE


def _format_parameter(request: Request) -> str | None:
    """The ``format``. An unescaped plus decodes to a blank, which no media type has."""
    value = request.parameter(b"format")
    return None if value is None else value.replace(" ", "+")


def _read_figures(reader: Reader, repository: Repository) -> tuple[int, datetime]:
    """
    The number of downloads, and the time of the last change of content or settings (aware UTC).

    It reads a row for each file and day: use a thread.
    """
    counted = sum(count for _, count in usage_counts.downloads_by_day(reader, repository.id, *ALL_DAYS))
    last = last_activity(reader, repository.id)
    return counted, repository.updated_at if last is None else max(last, repository.updated_at)
