"""Answers ``npm audit`` from the cached advisories."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.formats.npm.authorization import RepositoryRequests
from pkgrepo.formats.npm.limits import AUDIT_SIZE
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository

from . import matching
from .cache import AdvisoryCache
from .export import AdvisoryIndex


class AuditRequests(RepositoryRequests):
    """Answers audit requests."""

    def __init__(self, services: Services, repository: Repository, advisories: AdvisoryCache) -> None:
        super().__init__(services, repository)
        self._advisories = advisories

    async def bulk(self, request: Request) -> Answer:
        """The advisories on a list of packages and versions."""
        return await self._work(request, _bulk)

    async def quick(self, request: Request) -> Answer:
        """The advisories on a tree of packages."""
        return await self._work(request, _quick)

    async def _work(self, request: Request, work: Callable[[bytes, AdvisoryIndex], Answer]) -> Answer:
        await self._authorize_audit(request)
        body = await read_body(request, AUDIT_SIZE)
        index = await self._advisories.index(self._services.pools, self._services.clock)
        try:
            return await self._services.pools.cpu(work, body, index)
        except RecursionError:
            raise Refusal(400, "the tree is nested too deeply") from None


def _bulk(body: bytes, index: AdvisoryIndex) -> Answer:
    return json_answer(matching.bulk_answer(matching.read_bulk(body), index), headers=NO_STORE)


def _quick(body: bytes, index: AdvisoryIndex) -> Answer:
    return json_answer(matching.quick_answer(matching.read_tree(body), index), headers=NO_STORE)
