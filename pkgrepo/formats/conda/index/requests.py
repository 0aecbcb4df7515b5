"""Answers reads of the documents of a channel. Permissions are checked by the caller."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.formats.conda.paths import SubdirPath
from pkgrepo.gateway.answer_cache import CachedAnswer
from pkgrepo.gateway.content import choose_encoding, document_answer, document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository

from .caches import REPODATA, RUN_EXPORTS, IndexCaches

DOCUMENTS = frozenset({REPODATA, RUN_EXPORTS})


class IndexRequests:
    """Reads of the documents of one hosted channel."""

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches

    async def document(self, request: Request, path: SubdirPath) -> Answer:
        """A document of a folder. :raises NotFound: there is none of this name"""
        if path.document not in DOCUMENTS:
            raise NotFound("document", path.document)
        services, repository, lists = self._services, self._repository, self._caches.lists
        form = f"{path.subdir}/{path.document}"
        generation = services.catalog.generation()
        document = await lists.get(services.catalog, services.pools, repository, form)

        def negotiate(again: Request) -> Answer:
            headers = ((b"Cache-Control", document_cache_control(repository)), (b"Vary", b"Accept-Encoding"))
            return document_answer(document, choose_encoding(again.header(b"accept-encoding")), headers)

        services.answer_cache.put(
            request,
            CachedAnswer(
                repository,
                package=None,
                negotiate=negotiate,
                fresh=lambda r: lists.ready(r, repository, form) is document,
                size=2 * len(document.body),
                generation=generation,
            ),
        )
        return negotiate(request)
