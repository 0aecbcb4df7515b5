"""Answers reads of the documents of a channel. Permissions are checked by the caller."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from attrs import evolve

from pkgrepo.errors import NotFound, existing
from pkgrepo.formats.conda.index.documents import BZ2, GZIP, PLAIN, ZSTD, IndexCaches, StoredDocument
from pkgrepo.formats.conda.paths import ChannelPath, ShardPath, SubdirPath
from pkgrepo.gateway.answer_cache import CachedResponse
from pkgrepo.gateway.content import choose_encoding, document_cache_control, file_cache_control
from pkgrepo.gateway.services import Services
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


class IndexRequests:
    """Reads of the documents of one hosted channel; those of others override where documents are found."""

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches

    async def of_channel(self, request: Request, path: ChannelPath) -> Response:
        """A document of the whole channel. :raises NotFound: there is none of this name"""
        if path.document == NOTICES:
            headers = ((b"Cache-Control", document_cache_control(self._repository)),)
            return json_response({"notices": []}, headers=headers)
        return await self._document(request, "", path.document, {CHANNELDATA})

    async def of_folder(self, request: Request, path: SubdirPath) -> Response:
        """A document of a folder. :raises NotFound: there is none of this name"""
        if path.document == SHARDS_INDEX:
            return await self.answer(request, shards_index(path.subdir))
        document = path.document.replace(FROM_PACKAGES, REPODATA)
        return await self._document(request, path.subdir, document, FOLDER_DOCUMENTS)

    async def shard(self, request: Request, path: ShardPath) -> Response:
        """
        The records of a package in a folder, which never change under their address.

        :raises NotFound: there is no such shard
        """
        services, repository = self._services, self._repository
        generation = services.catalog.generation()
        name, body = await self.find_shard(request, path)
        await services.access.admit(request, Action.READ, repository, name)
        answer = Response(
            body=body,
            content_type=TYPES[ZSTD],
            etag=b'"%b"' % path.sha256.encode(),
            headers=((b"Cache-Control", file_cache_control(repository)),),
            ranges=True,
        )
        services.answer_cache.put_answer(
            request, repository, answer, package=name, fresh=lambda _: True, generation=generation
        )
        return answer

    async def find_shard(self, _request: Request, path: ShardPath) -> tuple[str, bytes]:
        """A shard of the present index, or of one of the last week, with the name of its package."""
        index = await self._get(shards_index(path.subdir))
        shard = index.shards.get(bytes.fromhex(path.sha256))
        if shard is not None:
            return shard.name, shard.body
        key = f"{path.subdir}/{path.sha256}"
        found: tuple[str, bytes] | None = await self._services.catalog.look(
            index_documents.find_superseded, self._repository.id, key
        )
        return existing(found, "shard", path.sha256)

    async def _get(self, form: Form) -> StoredDocument:
        """A document; the shards that it replaced are saved first, for clients that have the index of before."""
        services, repository = self._services, self._repository
        document = await self._caches.lists.get(services.catalog, services.pools, repository, form.key)
        if document.superseded:
            rows = [(f"{form.subdir}/{each.digest.hex()}", each.name, each.body) for each in document.superseded]
            document.superseded.clear()
            put = index_documents.put_superseded
            await services.catalog.write(put, repository.id, rows, services.clock.now_ms())
        return document

    async def _document(self, request: Request, subdir: str, file: str, known: Container[str]) -> Response:
        ending = next((each for each in ENDINGS if file.endswith(each)), "")
        document = file.removesuffix(ending)
        if document not in known:
            raise NotFound("document", file[:100])
        return await self.answer(request, Form(subdir, document, ENDINGS.get(ending, PLAIN)), negotiated=not ending)

    async def answer(self, request: Request, form: Form, *, negotiated: bool = False) -> Response:
        """A document; if ``negotiated``, in the content coding that the client prefers."""
        services, repository, lists = self._services, self._repository, self._caches.lists
        generation = services.catalog.generation()
        wanted = in_coding_for(request, form) if negotiated else form
        document = await self._get(wanted)
        serial = document.serial

        def again(other: Request) -> Response | None:
            made = in_coding_for(other, form) if negotiated else form
            found = lists.at_serial(repository, made.key, serial)
            return None if found is None else self.render(found, made, negotiated=negotiated)

        services.answer_cache.put(
            request,
            CachedResponse(
                repository,
                package=None,
                negotiate=again,
                fresh=lambda r: repositories.content_serial(r, repository.id) == serial,
                size=len(document.body) if isinstance(document.body, bytes) else 0,
                generation=generation,
            ),
        )
        return self.render(document, wanted, negotiated=negotiated)

    def render(self, document: StoredDocument, form: Form, *, negotiated: bool) -> Response:
        """A document as an answer, which with ``negotiated`` has a content coding."""
        headers: Fields = ((b"Cache-Control", document_cache_control(self._repository)),)
        if negotiated:
            headers = (*headers, (b"Vary", b"Accept-Encoding"))
            if form.coding != PLAIN:
                headers = (*headers, (b"Content-Encoding", form.coding.encode()))
        return Response(
            body=document.body,
            content_type=JSON if negotiated else TYPES[form.coding],
            etag=_etag(document, form.coding),
            variants={coding.encode(): _etag(document, each) for coding, each in _CODINGS.items()}
            if negotiated
            else {},
            headers=headers,
            ranges=True,
        )


def _etag(document: StoredDocument, coding: str) -> bytes:
    return f'"{document.digest}{_SUFFIXES[coding]}"'.encode()


def shards_index(subdir: str) -> Form:
    """The index of the shards of a folder."""
    return Form(subdir, SHARDS_INDEX, ZSTD)


def in_coding_for(request: Request, form: Form) -> Form:
    """A document in the content coding that a client prefers."""
    return evolve(form, coding=_CODINGS[choose_encoding(request.header(b"accept-encoding"))])
