"""Runs the followers of all proxy repositories that follow another one, in one process at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.services import PeriodicTask, Service
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import Followed, proxy_config_of
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import replicas

from .copies import Copies
from .follower import Follower
from .source import Source

LOOK_S: Final = 1.0  # seconds between two looks at the configurations
LONGEST_WAIT_S: Final = 20  # that a request waits for an event; proxies on the way may end it after 30

log = Logger()


@frozen
class _Plan:
    """What a follower is for: another plan needs another follower."""

    repository_id: int
    route: Route
    followed: Followed
    format: str


@frozen(kw_only=True)
class Parts:
    """
    What followers are made of.

    ``upstreams`` are clients of their own, with as many connections to one server as it needs for requests that wait.
    ``copies`` are those of a format; for ``settle`` and ``mark_old`` see L{Follower}.
    ``idle_timeout_s`` is how long connections may be silent, if a route has no other.
    """

    catalog: ICatalog
    registry: Registry
    clock: Clock
    formats: Mapping[str, StoredFormat]
    copies: Callable[[str], Copies]
    upstreams: Upstreams
    settle: Callable[[], Awaitable[None]]
    mark_old: Callable[[Repository, Sequence[str]], None]
    idle_timeout_s: float
    reactor: Any


class Replication(Service):
    """Begins and ends followers, as configurations say."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._running: dict[_Plan, tuple[Follower, Deferred[None]]] = {}
        what = "looking for repositories that follow others"
        self._looking = PeriodicTask(self._look, parts.reactor, every_s=LOOK_S, what=what)

    def startService(self) -> None:
        """Begin to look."""
        super().startService()
        self._looking.startService()

    async def _look(self) -> None:
        await self._parts.registry.refresh()
        plans = {plan: repository for repository in self._parts.registry.all() if (plan := _plan_of(repository))}
        for plan in self._running.keys() - plans.keys():
            self._end(plan)
        for plan in plans.keys() - self._running.keys():
            if not any(each.repository_id == plan.repository_id for each in self._running):
                self._begin(plan, plans[plan])
        await self._forget_others({each.repository_id for each in plans})

    async def _forget_others(self, followed: set[int]) -> None:
        """Forget replicas that follow nothing any more."""
        for each in await self._parts.catalog.look(replicas.all_replicas):
            if each.repository_id not in followed and not self._is_off(each.repository_id):
                await self._parts.catalog.write(replicas.forget_replica, each.repository_id)

    def _is_off(self, repository_id: int) -> bool:
        """Whether a repository is switched off for a while."""
        found = self._parts.registry.find_id(repository_id)
        return found is not None and not found.active and _follows(found) is not None

    def _begin(self, plan: _Plan, repository: Repository) -> None:
        parts = self._parts
        try:
            upstream = parts.upstreams.of(plan.repository_id, plan.route)
        except PkgrepoError as error:  # of its certificates or credentials: the page of the repository says so, too
            log.debug("{repository} follows nothing: {error}", repository=repository.path, error=str(error))
            return
        idle_s = parts.idle_timeout_s if plan.route.idle_timeout_s is None else plan.route.idle_timeout_s
        format_ = parts.formats[plan.format]
        source = Source(
            upstream=upstream,
            followed=plan.followed,
            waits_s=min(LONGEST_WAIT_S, int(idle_s / 2)),
            images=format_.images is not None,
        )
        follower = Follower(
            repository=repository,
            source=source,
            copies=parts.copies(plan.format),
            package_key=format_.package_key,
            catalog=parts.catalog,
            clock=parts.clock,
            reactor=parts.reactor,
            settle=parts.settle,
            mark_old=parts.mark_old,
        )
        running = Deferred.fromCoroutine(follower.run())
        self._running[plan] = follower, running
        running.addErrback(_report).addCallback(lambda _: self._running.pop(plan, None))

    def _end(self, plan: _Plan) -> None:
        follower, running = self._running[plan]
        follower.end()
        running.cancel()

    def stopService(self) -> Deferred[Any]:
        """End the followers; what they had not ended is done by the next process."""
        super().stopService()
        looking = self._looking.stopService()
        running = [each for _, each in self._running.values()]
        for plan in list(self._running):
            self._end(plan)
        return DeferredList([*([] if looking is None else [looking]), *running], consumeErrors=True)


def _report(failure: Failure) -> None:
    if not failure.check(CancelledError):
        log.failure("a follower has ended", failure=failure)


def _follows(repository: Repository) -> Followed | None:
    return proxy_config_of(repository).follows if repository.type is RepositoryType.PROXY else None


def _plan_of(repository: Repository) -> _Plan | None:
    followed = _follows(repository) if repository.active else None
    if followed is None:
        return None
    return _Plan(repository.id, proxy_config_of(repository).routes[0], followed, repository.format)
