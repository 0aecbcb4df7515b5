"""The routes that show and check the upstreams of a proxy repository."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.model import Repository, RepositoryType, UpstreamHealth
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.upkeep.checks import check_routes
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.upstreams.upstream_documents import DocumentFigures, document_figures
from pkgrepo.storage.catalog.usage.cache_counts import cache_counts

from .schema import CacheFigures, RouteCheckRecord, RouteRecord, UpstreamCheck, UpstreamRecord

UNUSED = "unused"


class Upstreams(Handlers):
    """Shows what is known about upstreams, and asks them."""

    table = Table("upstreams")

    @table.route(
        "GET",
        "/repository/<repository>/upstream",
        access=EDITORS,
        summary="Show the upstreams of a proxy repository",
        answer=UpstreamRecord,
    )
    async def show(self, call: Call) -> UpstreamRecord:
        """With their health, and how much is kept of them. Repositories of other types have no upstreams (404)."""
        repository = proxy_of(await call.fresh_repository())
        counts = await self._catalog.look(cache_counts, repository.id)
        figures = {each.route: each for each in await self._catalog.scan(document_figures, repository.id)}
        config = proxy_config_of(repository)
        health = self._services.shared.proxy.upstreams.health
        document_bytes = sum(each.size for each in figures.values())
        return UpstreamRecord(
            routes=[_route(each, health(repository.id, each), figures.get(each.name)) for each in config.routes],
            documents=sum(each.count for each in figures.values()),
            document_bytes=document_bytes,
            cached_bytes=repository.bytes_used + document_bytes,
            max_bytes=config.max_bytes,
            unused_days=config.unused_days,
            cache=CacheFigures.of(counts),
        )

    @table.route(
        "POST",
        "/repository/<repository>/upstream/check",
        access=EDITORS,
        summary="Ask the upstreams of a proxy repository",
        answer=UpstreamCheck,
        audit="upstream.check",
    )
    async def check(self, call: Call) -> UpstreamCheck:
        """
        Sends one small request to each route, over a new connection, and waits for 15 seconds at most.

        The status is 200 also if a route fails. Repositories of other types have no upstreams (404).
        """
        repository = proxy_of(call.repository)
        format_ = self._services.formats[repository.format]
        found = await check_routes(self._services.shared.proxy.upstreams, repository, format_)
        return UpstreamCheck(
            ok=all(each.ok for each in found),
            routes=[
                RouteCheckRecord.from_attributes(each, name=each.route.name, url=each.route.url, message=each.sentence)
                for each in found
            ],
        )


def proxy_of(repository: Repository) -> Repository:
    """The repository. :raises NotFound: it is no proxy"""
    if repository.type is not RepositoryType.PROXY:
        raise NotFound("proxy repository", repository.path)
    return repository


def _route(route: Route, health: UpstreamHealth | None, figures: DocumentFigures | None) -> RouteRecord:
    latency_s = None if health is None else health.latency_s
    return RouteRecord(
        name=route.name,
        url=route.url,
        priority=route.priority,
        state=UNUSED if health is None else health.state,
        last_error=None if health is None else health.last_error,
        last_success_at=None if health is None else health.last_success_at,
        last_failure_at=None if health is None else health.last_failure_at,
        latency_ms=None if latency_s is None else round(latency_s * 1000),
        successes=0 if health is None else health.successes,
        failures=0 if health is None else health.failures,
        limited_until=None if health is None else health.limited_until,
        documents=0 if figures is None else figures.count,
        document_bytes=0 if figures is None else figures.size,
        last_checked_at=None if figures is None else from_ms(figures.checked_ms),
    )
