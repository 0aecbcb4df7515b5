"""Reads of the documents of a hosted channel, and what those of other channels share. Callers check permissions."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Any, Final

from attrs import evolve

from pkgrepo.errors import NotFound, existing
from pkgrepo.formats.conda.index.documents import BZ2, GZIP, PLAIN, ZSTD, ChannelLists, StoredDocument
from pkgrepo.formats.conda.paths import ChannelPath, ShardPath, SubdirPath
from pkgrepo.gateway.package_documents import Found, serve_document
from pkgrepo.gateway.responses.content import choose_encoding, document_cache_control, file_cache_control
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, Fields, Response, json_response
from pkgrepo.model import Action, Repository
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.server import repositories

from .documents import CHANNELDATA, FOLDER_DOCUMENTS, FROM_PACKAGES, REPODATA, SHARDS_INDEX, Form

NOTICES: Final = "notices.json"

ENDINGS: Final = {".zst": ZSTD, ".bz2": BZ2}
TYPES: Final = {ZSTD: b"application/zstd", BZ2: b"application/x-bzip2"}  # of documents with such an ending
_SUFFIXES: Final = {PLAIN: "", GZIP: "-gz", ZSTD: "-zst", BZ2: "-bz2"}  # of validators
_CODINGS: Final = {"identity": PLAIN, "gzip": GZIP, "zstd": ZSTD}


def form_of(path: ChannelPath | SubdirPath) -> tuple[Form, bool]:
    """
    The document at a path, and whether its content coding is the one that the client prefers.

    :raises NotFound: there is none of this name
    """
    if isinstance(path, ChannelPath):
        subdir, file, known = "", path.document, frozenset({CHANNELDATA})
    elif path.document == SHARDS_INDEX:
        return shards_index(path.subdir), False
    else:
        subdir, file, known = path.subdir, path.document.replace(FROM_PACKAGES, REPODATA), FOLDER_DOCUMENTS
    ending = next((each for each in ENDINGS if file.endswith(each)), "")
    document = file.removesuffix(ending)
    if document not in known:
        raise NotFound("document", file[:100])
    return Form(subdir, document, ENDINGS.get(ending, PLAIN)), not ending


def notices(repository: Repository) -> Response:
    """The messages of a channel to its users: there are none."""
    return json_response({"notices": []}, headers=((b"Cache-Control", document_cache_control(repository)),))


async def get_document(context: Context[ChannelLists], request: Request, form: Form, *, negotiated: bool) -> Response:
    """A document of a hosted channel; if ``negotiated``, in the content coding that the client prefers."""
    services, repository, lists = context.services, context.repository, context.caches

    async def look() -> Found[StoredDocument]:
        document = await _stored(context, wanted(request, form, negotiated=negotiated))
        serial = document.serial
        return Found(
            document=document,
            respond=partial(document_response, repository, form, negotiated=negotiated),
            ready=lambda again: lists.at_serial(repository, wanted(again, form, negotiated=negotiated).key, serial),
            fresh=lambda r: repositories.content_serial(r, repository.id) == serial,
            size=document.size,
        )

    return await serve_document(services, request, repository, look)


async def find_shard(context: Context[ChannelLists], path: ShardPath) -> tuple[str, bytes]:
    """A shard of the present index of a hosted channel, or of one of the last week, with the name of its package."""
    index = await _stored(context, shards_index(path.subdir))
    shard = index.shards.get(bytes.fromhex(path.sha256))
    if shard is not None:
        return shard.name, shard.body
    key = f"{path.subdir}/{path.sha256}"
    found: tuple[str, bytes] | None = await context.services.catalog.look(
        index_documents.find_superseded, context.repository.id, key
    )
    return existing(found, "shard", path.sha256)


async def get_shard(
    context: Context[Any], request: Request, path: ShardPath, found: Awaitable[tuple[str, bytes]]
) -> Response:
    """
    The records of a package in a folder, which never change under their address, from ``found``.

    :raises NotFound: there is no such shard
    """
    services, repository = context.services, context.repository
    generation = services.catalog.generation()
    name, body = await found
    await context.admit(request, Action.READ, name)
    response = Response(
        body=body,
        content_type=TYPES[ZSTD],
        etag=b'"%b"' % path.sha256.encode(),
        headers=((b"Cache-Control", file_cache_control(repository)),),
        ranges=True,
    )
    services.response_cache.put_response(
        request, repository, response, package=name, fresh=lambda _: True, generation=generation
    )
    return response


def document_response(
    repository: Repository,
    form: Form,
    request: Request,
    document: StoredDocument,
    *,
    negotiated: bool,
    settled: bool = False,
) -> Response:
    """The response with a document, which has the content coding for the request if it is ``negotiated``."""
    form = wanted(request, form, negotiated=negotiated)
    headers: Fields = ((b"Cache-Control", document_cache_control(repository, settled=settled)),)
    if negotiated:
        headers = (*headers, (b"Vary", b"Accept-Encoding"))
        if form.coding != PLAIN:
            headers = (*headers, (b"Content-Encoding", form.coding.encode()))
    codings = _CODINGS if negotiated else {}
    return Response(
        body=document.body,
        content_type=JSON if negotiated else TYPES[form.coding],
        etag=_etag(document, form.coding),
        variants={coding.encode(): _etag(document, each) for coding, each in codings.items()},
        headers=headers,
        ranges=True,
    )


async def _stored(context: Context[ChannelLists], form: Form) -> StoredDocument:
    """A document; the shards that it replaced are saved first, for clients that have the index of before."""
    services, repository = context.services, context.repository
    document = await context.caches.get(services.catalog, services.pools, repository, form.key)
    if document.superseded:
        rows = [(f"{form.subdir}/{each.digest.hex()}", each.name, each.body) for each in document.superseded]
        document.superseded.clear()
        await services.catalog.write(index_documents.put_superseded, repository.id, rows, services.clock.now_ms())
    return document


def _etag(document: StoredDocument, coding: str) -> bytes:
    return f'"{document.digest}{_SUFFIXES[coding]}"'.encode()


def shards_index(subdir: str) -> Form:
    """The index of the shards of a folder."""
    return Form(subdir, SHARDS_INDEX, ZSTD)


def wanted(request: Request, form: Form, *, negotiated: bool) -> Form:
    """The form of a document for a request: if ``negotiated``, in the content coding that its client prefers."""
    return evolve(form, coding=_CODINGS[choose_encoding(request.header(b"accept-encoding"))]) if negotiated else form
