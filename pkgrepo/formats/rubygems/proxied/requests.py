"""Answers reads of the lists of a proxy or virtual repository. Permissions are checked by the caller."""

from __future__ import annotations

from contextlib import suppress

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.index.answers import list_answer
from pkgrepo.formats.rubygems.index.list_files import ListFile
from pkgrepo.gateway.answers.content import document_cache_control
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType

from .merged_lists import MergedLists


class ListRequests:
    """The lists of one repository that is not hosted."""

    def __init__(self, services: Services, repository: Repository, lists: MergedLists) -> None:
        self._services = services
        self._repository = repository
        self._lists = lists

    async def versions(self, request: Request) -> Answer:
        """The list of all changes. :raises NotFound, UpstreamFailed: see L{MergedLists.versions}"""
        services, repository = self._services, self._repository
        generation, config_serial = services.catalog.generation(), services.registry.serial
        state, found = await self._lists.versions(services, repository, revalidate=request.revalidates)
        answer = list_answer(repository, found)
        if state.cacheable:
            services.answer_cache.put_answer(
                request,
                repository,
                answer,
                package=None,
                fresh=lambda r: state.fresh(r, config_serial),
                ends_s=state.ends_s,
                generation=generation,
            )
        return answer

    async def names(self, request: Request) -> Answer:
        """The names of all gems. :raises NotFound, UpstreamFailed: see L{MergedLists.versions}"""
        found = await self._lists.names(self._services, self._repository, revalidate=request.revalidates)
        return list_answer(self._repository, found)

    async def specs(self, request: Request, file: str) -> Answer:
        """
        A list of the legacy index.

        That of a virtual repository has the gems of all members that have a list of versions. If none has, it is the
        list of the first member that has one.

        :raises NotFound, UpstreamFailed: see L{MergedLists.specs}
        """
        if self._repository.type is RepositoryType.VIRTUAL:
            with suppress(NotFound):
                return self._specs_answer(
                    await self._lists.joined_specs(
                        self._services, self._repository, file, revalidate=request.revalidates
                    )
                )
        for leaf in self._services.proxy.resolver.leaves(self._repository):
            if not leaf.active or leaf.type is not RepositoryType.PROXY:
                continue
            try:
                found = await self._lists.specs(self._services, leaf, file, revalidate=request.revalidates)
            except NotFound:
                continue
            return self._specs_answer(found)
        raise NotFound("file", file)

    def _specs_answer(self, found: ListFile) -> Answer:
        headers = ((b"Cache-Control", document_cache_control(self._repository)),)
        etag = b'"%s"' % found.sha256.hexdigest()[:32].encode()
        return Answer(
            body=found.content(), content_type=b"application/octet-stream", etag=etag, headers=headers, ranges=True
        )
