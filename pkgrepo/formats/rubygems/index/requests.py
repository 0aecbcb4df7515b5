"""
Reads of gems, of the compact index and of the legacy lists.

Clients keep the plain form of a document of the compact index, append to it what is new, and check the whole. So the
validator is the MD5 of the plain form in every content coding, and the digests are of it too.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from attrs import Factory, frozen

from pkgrepo.concurrency.pools import Pool
from pkgrepo.formats.rubygems.index.gem_lists import BINARY_TYPE, GEM_LISTS, NAMES, GemRows, VersionsLists
from pkgrepo.formats.rubygems.index.indexing import make_documents
from pkgrepo.formats.rubygems.index.info import INFO, TEXT_TYPE
from pkgrepo.formats.rubygems.index.list_files import ListFile
from pkgrepo.formats.rubygems.names import is_name
from pkgrepo.formats.rubygems.paths import GemPath, InfoPath, QuickPath, gem_path, quick_path
from pkgrepo.gateway.package_documents import Found, answer_document, serve_document
from pkgrepo.gateway.package_files import answer_named_file
from pkgrepo.gateway.responses.content import SMALL, document_cache_control, is_private, plain_body
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.answering.negotiation import best_encoding
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response
from pkgrepo.model import Action, Document, Repository
from pkgrepo.repositories.publish.package_lists import PackageLists
from pkgrepo.storage.catalog import index_documents

CODINGS: Final = (b"gzip", b"identity")
MAX_AGE: Final = b"max-age=60, public"


def text_document_response(
    request: Request, document: Document, *, repository: Repository, cpu: Pool, settled: bool = False
) -> Response:
    """A document in the coding that the client wants. Only the plain form has ranges. ``cpu``: see L{plain_body}."""
    digest = bytes.fromhex(document.digests["sha256"])
    headers = (*_headers(repository, digest, settled=settled), (b"Vary", b"Accept-Encoding"))
    packed = document.gzip
    if packed is not None and best_encoding(request.header(b"accept-encoding"), CODINGS) == b"gzip":
        headers = (*headers, (b"Content-Encoding", b"gzip"))
    else:
        packed = None
    return Response(
        body=plain_body(document, cpu) if packed is None else packed,
        content_type=document.content_type.encode(),
        etag=_etag(document.digests["md5"]),
        headers=headers,
        ranges=packed is None,
    )


def list_response(repository: Repository, found: ListFile) -> Response:
    """A long list, always in the plain form."""
    return Response(
        body=found.read() if found.size <= SMALL else found.content(),
        content_type=TEXT_TYPE.encode(),
        etag=_etag(found.md5.hexdigest()),
        headers=_headers(repository, found.sha256.digest()),
        ranges=True,
    )


def packed_response(repository: Repository, document: Document) -> Response:
    """A list of the legacy index as a gzip file."""
    return Response(
        body=document.gzip or gzip.compress(document.body, mtime=0),
        content_type=BINARY_TYPE.encode(),
        etag=document.etag.encode(),
        headers=((b"Cache-Control", document_cache_control(repository)),),
        ranges=True,
    )


def _headers(repository: Repository, sha256: bytes, *, settled: bool = False) -> Fields:
    encoded = base64.b64encode(sha256)
    usual = b"private, no-cache" if is_private(repository) else MAX_AGE
    return (
        (b"Repr-Digest", b"sha-256=:%b:" % encoded),
        (b"Digest", b"sha-256=" + encoded),  # RFC 3230, which Bundler up to 2.5 reads
        (b"Cache-Control", document_cache_control(repository, settled=True) if settled else usual),
    )


def _etag(md5: str) -> bytes:
    return b'"%s"' % md5.encode("ascii")


@frozen(eq=False)
class IndexCaches:
    """The documents of gems, and of hosted repositories the lists of all gems and those of all changes."""

    info: SplicedDocuments = Factory(make_documents)
    lists: PackageLists[GemRows, Document] = Factory(lambda: PackageLists(GEM_LISTS))
    versions: VersionsLists = Factory(VersionsLists)


async def info(context: Context[IndexCaches], request: Request, path: InfoPath) -> Response:
    """
    The versions of one gem.

    :raises NotFound: no such gem; :raises UpstreamFailed: that is not known
    """
    services, repository = context.services, context.repository
    await context.admit(request, Action.READ, path.name)
    respond = partial(text_document_response, repository=repository, cpu=services.pools.cpu)
    return await answer_document(
        services, request, repository, path.name, context.caches.info, lambda _: INFO, respond=respond
    )


async def names(context: Context[IndexCaches], request: Request) -> Response:
    """The names of all gems with live versions in a hosted repository."""
    respond = partial(text_document_response, repository=context.repository, cpu=context.services.pools.cpu)
    return await _list(context, request, NAMES, respond)


async def specs(context: Context[IndexCaches], request: Request, file: str) -> Response:
    """
    A list of the legacy index of a hosted repository by the name of its file, as a gzip file.

    It has no Last-Modified: clients compare that with their own clock, and would keep an old list.
    """
    form, repository = file.removesuffix(".gz"), context.repository
    return await _list(context, request, form, lambda _, document: packed_response(repository, document))


async def versions(context: Context[IndexCaches], request: Request) -> Response:
    """The list of all changes in a hosted repository, in pieces if clients want them."""
    services, repository = context.services, context.repository
    generation = services.catalog.generation()
    found = await context.caches.versions.get(services.catalog, repository)
    response = list_response(repository, found.file)
    services.response_cache.put_response(
        request,
        repository,
        response,
        package=None,
        fresh=lambda r: index_documents.find_list(r, repository.id) == found.state,
        generation=generation,
    )
    return response


async def _list(
    context: Context[IndexCaches], request: Request, form: str, respond: Callable[[Request, Document], Response]
) -> Response:
    services, repository, lists = context.services, context.repository, context.caches.lists

    async def look() -> Found[Document]:
        document = await lists.get(services.catalog, services.pools, repository, form)
        return Found(
            document=document,
            respond=respond,
            ready=lambda _: document,
            fresh=lambda r: lists.ready(r, repository, form) is document,
            size=2 * len(document.body),
        )

    return await serve_document(services, request, repository, look)


async def file(context: Context[object], request: Request, path: GemPath | QuickPath) -> Response:
    """
    A gem, what is beside it, or its specification in the legacy index. The files of a yanked version are elsewhere.

    The gem that it belongs to is looked up: a file name cannot be split into name, version and platform.

    :raises NotFound: there is no such file; :raises UpstreamFailed: that is not known
    """
    public = quick_path(path.full_name)
    if isinstance(path, GemPath):
        public = gem_path(path.full_name) + path.beside
    return await answer_named_file(context, request, public, possible_names(path.full_name))


def possible_names(full_name: str) -> Iterator[str]:
    """The names that a full name may begin with, longest first: a version begins with a digit."""
    end = len(full_name)
    while (end := full_name.rfind("-", 0, end)) > 0:
        if full_name[end + 1 : end + 2].isdigit() and is_name(full_name[:end]):
            yield full_name[:end]
