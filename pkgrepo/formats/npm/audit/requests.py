"""Answers ``npm audit``, from the advisories of this server and from those of upstreams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from twisted.logger import Logger

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.npm.authorization import RepositoryRequests
from pkgrepo.formats.npm.limits import AUDIT_SIZE
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.private_names import find_private
from pkgrepo.proxy.uncached import ask_routes

from . import matching, upstream_audits
from .cache import AdvisoriesUnreadable, AdvisoryCache
from .export import AdvisoryIndex

log = Logger()


class AuditRequests(RepositoryRequests):
    """
    Answers audit requests.

    ====================================  ==========================================================================
    the proxies behind the repository     the client gets
    ====================================  ==========================================================================
    all answer, or there is nothing to    their advisories, and those of the server's own export
    ask them
    one fails                             502, 503 or 504; with an export of its own the server answers from that
    none of them has audits               404, or the same
    ====================================  ==========================================================================

    A client is never told that nothing is known when nobody was asked. Installs only warn of an audit that failed.
    """

    def __init__(self, services: Services, repository: Repository, advisories: AdvisoryCache) -> None:
        super().__init__(services, repository)
        self._advisories = advisories

    async def bulk(self, request: Request) -> Answer:
        """The advisories on a list of packages and versions."""
        body, cpu = await self._receive(request), self._services.pools.cpu
        asked = await cpu(matching.read_bulk, body)
        index = await self._index()
        found = await self._ask_all(asked)
        ours = await cpu(matching.bulk_answer, asked, index)
        return await cpu(_answer, {**ours, **found})

    async def quick(self, request: Request) -> Answer:
        """The advisories on a tree of packages."""
        body, cpu = await self._receive(request), self._services.pools.cpu
        try:
            tree = await cpu(matching.read_tree, body)
            index = await self._index()
            asked = await cpu(matching.versions_in, tree)
            found = await self._ask_all(asked)
            if asked and not tree.dependencies:
                # npm 7 to 10 with a lock file of version 3, after a bulk request that has failed.
                raise Refusal(400, "the tree has no versions of the packages that the project requires")
            return await cpu(_quick_answer, tree, index, found)
        except RecursionError:
            raise Refusal(400, "the tree is nested too deeply") from None

    async def _receive(self, request: Request) -> bytes:
        await self._authorize_audit(request)
        return await read_body(request, AUDIT_SIZE)

    async def _index(self) -> AdvisoryIndex:
        try:
            return await self._advisories.index(self._services.pools, self._services.clock)
        except AdvisoriesUnreadable as error:
            raise Refusal(503, str(error), "no_advisories") from None

    async def _ask_all(self, asked: Mapping[str, Sequence[str]]) -> upstream_audits.Entries:
        """What the proxies behind this repository say; see the table above."""
        found: dict[str, Any] = {}
        answered, absent = False, ""
        async for proxy, private in self._proxies(asked):
            told = {name: versions for name, versions in asked.items() if name not in private}
            if not told:
                continue
            try:
                found = {**await self._ask(proxy, told), **found}
                answered = True
            except NotFound:
                absent = absent or proxy.path
            except UpstreamFailed as error:
                if not self._advisories.has_export:
                    raise
                log.warn("an audit goes without {repository}: {error}", repository=proxy.path, error=str(error))
        if absent and not answered and not self._advisories.has_export:
            raise Refusal(404, f"no upstream of {absent} answers audits", "no_audits")
        return found

    async def _proxies(self, names: Collection[str]) -> AsyncIterator[tuple[Repository, set[str]]]:
        """The proxies behind this repository, and the names that each must not be told."""
        leaves = self._services.proxy.resolver.leaves(self._repository)
        for each in leaves:
            if each.type is RepositoryType.PROXY and each.active:
                leaf = self._services.proxy.resolver.leaf(self._repository, each)
                yield each, await find_private(self._services.catalog, leaves, leaf, names)

    async def _ask(self, proxy: Repository, told: Mapping[str, Sequence[str]]) -> upstream_audits.Entries:
        """:raises NotFound: no route has audits; :raises UpstreamFailed: one failed, and none has answered"""
        cpu = self._services.pools.cpu
        question = await cpu(upstream_audits.bulk_question, told)
        body = await ask_routes(self._services.proxy.upstreams, proxy, question)
        try:
            return await cpu(upstream_audits.read_bulk_answer, body, told.keys())
        except Invalid as error:
            raise UpstreamFailed(proxy.path, str(error)) from None


def _quick_answer(tree: matching.Node, index: AdvisoryIndex, found: upstream_audits.Entries) -> Answer:
    theirs = {name: [upstream_audits.read_advisory(name, each) for each in entries] for name, entries in found.items()}
    return _answer(matching.quick_answer(tree, AdvisoryIndex({**index.by_package, **theirs})))


def _answer(value: dict[str, Any]) -> Answer:
    return json_answer(value, headers=NO_STORE)
