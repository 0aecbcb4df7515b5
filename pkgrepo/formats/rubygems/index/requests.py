"""Answers reads of the compact index and of the legacy lists. Permissions are checked by the caller."""

from __future__ import annotations

from pkgrepo.gateway.answers.answer_cache import CachedAnswer
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Document, Repository
from pkgrepo.storage.catalog.documents import appended_lists

from .answers import list_answer, packed_answer, text_document_answer
from .caches import IndexCaches
from .gem_lists import NAMES
from .indexing import INFO


class IndexRequests:
    """Reads of the indexes of one repository. The lists are those of hosted ones."""

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches

    async def info(self, request: Request, name: str) -> Answer:
        """
        The versions of one gem.

        :raises NotFound: no such gem; :raises UpstreamFailed: that is not known
        """
        services, index = self._services, self._caches.info
        generation = services.catalog.generation()
        state = await services.proxy.resolver.state(self._repository, name, revalidate=request.revalidates)
        rendered = await index.get(services.pools, state, INFO, "")

        def negotiate(again: Request) -> Answer | None:
            ready = index.ready(rendered.state, INFO, "")
            return None if ready is None else text_document_answer(again, self._repository, ready, services.pools.cpu)

        services.answer_cache.put_document(request, rendered, negotiate=negotiate, generation=generation)
        return text_document_answer(request, self._repository, rendered.document, services.pools.cpu)

    async def names(self, request: Request) -> Answer:
        """The names of all gems with live versions."""
        return text_document_answer(
            request, self._repository, await self._list(request, NAMES), self._services.pools.cpu
        )

    async def specs(self, request: Request, file: str) -> Answer:
        """
        A list of the legacy index by the name of its file, as a gzip file.

        It has no Last-Modified: clients compare that with their own clock, and would keep an old list.
        """
        return packed_answer(self._repository, await self._list(request, file.removesuffix(".gz")))

    async def versions(self, request: Request) -> Answer:
        """The list of all changes, in pieces if clients want them."""
        services, repository = self._services, self._repository
        generation = services.catalog.generation()
        found = await self._caches.versions.get(services.catalog, repository)
        answer = list_answer(repository, found.file)
        services.answer_cache.put_answer(
            request,
            repository,
            answer,
            package=None,
            fresh=lambda r: appended_lists.find_list(r, repository.id) == found.state,
            generation=generation,
        )
        return answer

    async def _list(self, request: Request, form: str) -> Document:
        services, repository, lists = self._services, self._repository, self._caches.lists
        generation = services.catalog.generation()
        document = await lists.get(services.catalog, services.pools, repository, form)

        def negotiate(again: Request) -> Answer:
            if form == NAMES:
                return text_document_answer(again, repository, document, services.pools.cpu)
            return packed_answer(repository, document)

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
        return document
