"""Answers ``npm audit``, from the advisories of this server and from those of upstreams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from twisted.logger import Logger

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.npm.authorization import RepositoryRequests
from pkgrepo.formats.npm.limits import AUDIT_SIZE
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.private_names import find_private
from pkgrepo.proxy.uncached import UncachedQuestion, ask_routes

from . import matching, upstream_audits
from .cache import AdvisoryCache

log = Logger()


class AuditRequests(RepositoryRequests):
    """Answers audit requests. An upstream that fails is left out: an install goes on without its advisories."""

    def __init__(self, services: Services, repository: Repository, advisories: AdvisoryCache) -> None:
        super().__init__(services, repository)
        self._advisories = advisories

    async def bulk(self, request: Request) -> Answer:
        """The advisories on a list of packages and versions."""
        body, cpu = await self._receive(request), self._services.pools.cpu
        asked = await cpu(matching.read_bulk, body)
        found: dict[str, Any] = {}
        async for proxy, private in self._proxies(asked):
            answer = await self._ask(proxy, await cpu(upstream_audits.bulk_question, asked, private))
            if answer is not None:
                found = {**await cpu(upstream_audits.read_bulk_answer, answer, asked.keys(), private), **found}
        index = await self._advisories.index(self._services.pools, self._services.clock)
        ours = await cpu(matching.bulk_answer, asked, index)
        return await cpu(_answer, {**ours, **found})

    async def quick(self, request: Request) -> Answer:
        """The advisories on a tree of packages."""
        body, cpu = await self._receive(request), self._services.pools.cpu
        try:
            if self._repository.type is not RepositoryType.HOSTED:
                tree = await cpu(upstream_audits.read_whole_tree, body)
                async for proxy, private in self._proxies(await cpu(upstream_audits.names_in, tree)):
                    answer = await self._ask(proxy, await cpu(upstream_audits.quick_question, tree, private))
                    found = None if answer is None else await cpu(upstream_audits.read_quick_answer, answer)
                    if found is not None:
                        return await cpu(_answer, found)
            index = await self._advisories.index(self._services.pools, self._services.clock)
            return await cpu(lambda: _answer(matching.quick_answer(matching.read_tree(body), index)))
        except RecursionError:
            raise Refusal(400, "the tree is nested too deeply") from None

    async def _receive(self, request: Request) -> bytes:
        await self._authorize_audit(request)
        return await read_body(request, AUDIT_SIZE)

    async def _proxies(self, names: Collection[str]) -> AsyncIterator[tuple[Repository, set[str]]]:
        """The proxies behind this repository, and the names that each must not be told."""
        leaves = self._services.resolver.leaves(self._repository)
        for each in leaves:
            if each.type is RepositoryType.PROXY and each.active:
                leaf = self._services.resolver.leaf(self._repository, each)
                yield each, await find_private(self._services.catalog, leaves, leaf, names)

    async def _ask(self, proxy: Repository, question: UncachedQuestion) -> bytes | None:
        try:
            return await ask_routes(self._services.upstreams, proxy, question)
        except (NotFound, UpstreamFailed) as error:
            log.warn("an audit goes without the upstreams of {repository}: {error}", repository=proxy.path, error=error)
            return None


def _answer(value: dict[str, Any]) -> Answer:
    return json_answer(value, headers=NO_STORE)
