"""Answers reads of the compact index and of the legacy lists. Permissions are checked by the caller."""

from __future__ import annotations

import base64
import gzip
from typing import Final

from pkgrepo.gateway.answer_cache import CachedAnswer
from pkgrepo.gateway.content import SMALL, document_cache_control, is_private
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.negotiation import best_encoding
from pkgrepo.http.answers import Answer, Fields
from pkgrepo.http.request import Request
from pkgrepo.model import Document, Repository
from pkgrepo.storage.catalog.packages import appended_lists

from .caches import IndexCaches
from .gem_lists import BINARY_TYPE, NAMES, TEXT_TYPE
from .indexing import INFO
from .versions_list import VersionsList

CODINGS: Final = (b"gzip", b"identity")
MAX_AGE: Final = b"max-age=60, public"


class IndexRequests:
    """Reads of the indexes of one repository."""

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches

    async def info(self, request: Request, name: str) -> Answer:
        """
        The versions of one gem.

        :raises NotFound: no such gem
        """
        services, index = self._services, self._caches.info
        generation = services.catalog.generation()
        state = await services.resolver.state(self._repository, name, revalidate=request.revalidates)
        rendered = await index.get(services.pools, state, INFO, "")

        def negotiate(again: Request) -> Answer | None:
            ready = index.ready(rendered.state, INFO, "")
            return None if ready is None else self._text(again, ready)

        services.answer_cache.put_document(request, rendered, negotiate=negotiate, generation=generation)
        return self._text(request, rendered.document)

    async def names(self, request: Request) -> Answer:
        """The names of all gems with live versions."""
        document = await self._list(request, NAMES)
        return self._text(request, document)

    async def specs(self, request: Request, name: str) -> Answer:
        """
        A list of the legacy index by the name of its file, as a gzip file.

        It has no Last-Modified: clients compare that with their own clock, and would keep an old list.
        """
        document = await self._list(request, name.removesuffix(".gz"))
        return self._packed(document)

    async def versions(self, request: Request) -> Answer:
        """The list of all changes, in pieces if clients want them."""
        services, repository = self._services, self._repository
        generation = services.catalog.generation()
        found = await self._caches.versions.get(services.catalog, repository)
        answer = self._versions_answer(found)
        services.answer_cache.put_answer(
            request,
            repository,
            answer,
            package=None,
            fresh=lambda r: appended_lists.find_list(r, repository.id) == found.state,
            generation=generation,
        )
        return answer

    def _versions_answer(self, found: VersionsList) -> Answer:
        return Answer(
            body=found.read() if found.size <= SMALL else found.content(),
            content_type=TEXT_TYPE.encode(),
            etag=_etag(found.md5.hexdigest()),
            headers=self._headers(found.sha256.digest()),
            ranges=True,
        )

    async def _list(self, request: Request, form: str) -> Document:
        services, repository, lists = self._services, self._repository, self._caches.lists
        generation = services.catalog.generation()
        document = await lists.get(services.catalog, services.pools, repository, form)
        services.answer_cache.put(
            request,
            CachedAnswer(
                repository,
                package=None,
                negotiate=lambda again: self._text(again, document) if form == NAMES else self._packed(document),
                fresh=lambda r: lists.ready(r, repository, form) is document,
                size=2 * len(document.body),
                generation=generation,
            ),
        )
        return document

    def _text(self, request: Request, document: Document) -> Answer:
        """
        A document of the compact index.

        Clients check the validator and the digests after decoding, so they are those of the plain form in every coding.
        Only the plain form has ranges: clients append them to a plain file.
        """
        headers = (*self._headers(bytes.fromhex(document.digests["sha256"])), (b"Vary", b"Accept-Encoding"))
        packed = document.gzip
        if packed is not None and best_encoding(request.header(b"accept-encoding"), CODINGS) == b"gzip":
            headers = (*headers, (b"Content-Encoding", b"gzip"))
        else:
            packed = None
        return Answer(
            body=document.body if packed is None else packed,
            content_type=document.content_type.encode(),
            etag=_etag(document.digests["md5"]),
            headers=headers,
            ranges=packed is None,
        )

    def _packed(self, document: Document) -> Answer:
        packed = document.gzip or gzip.compress(document.body, mtime=0)
        headers: Fields = ((b"Cache-Control", document_cache_control(self._repository)),)
        return Answer(
            body=packed,
            content_type=BINARY_TYPE.encode(),
            etag=document.etag.encode(),
            headers=headers,
            ranges=True,
        )

    def _headers(self, sha256: bytes) -> Fields:
        encoded = base64.b64encode(sha256)
        fields: Fields = (
            (b"Repr-Digest", b"sha-256=:%b:" % encoded),
            (b"Digest", b"sha-256=" + encoded),  # RFC 3230, which Bundler up to 2.5 reads
        )
        if is_private(self._repository):
            return (*fields, (b"Cache-Control", b"private, no-cache"))
        return (*fields, (b"Cache-Control", MAX_AGE))


def _etag(md5: str) -> bytes:
    return b'"%s"' % md5.encode("ascii")
