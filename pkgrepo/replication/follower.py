"""
Follows the events of one repository of another server, and does what they mean for what is kept of it here.

=========  ==================================================  =====================================================
part       does                                                after a crash
=========  ==================================================  =====================================================
listening  reads events, which become tasks, together with     goes on at the position that was noted with the tasks
           the position behind them; waits for the next
comparing  makes tasks of what is kept, and of what is listed  goes on where it had come to
           there, and notes which names are taken there: at
           the first time, and when the log there does not
           have the position any more
working    does some tasks at a time                           does again what was not ended
=========  ==================================================  =====================================================

An upstream that fails is asked again after pauses that grow. A task that fails is tried again later, and does not keep
others from being done.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import (
    NotFound,
    PkgrepoError,
    PositionLost,
    StorageFailed,
    StorageFull,
    UpstreamFailed,
    UpstreamLimited,
    UpstreamMisconfigured,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.publish.package_changes import if_active
from pkgrepo.storage.catalog.cached_units import cached_packages
from pkgrepo.storage.catalog.packages.deleted_names import DeletedName, adopt_deleted
from pkgrepo.storage.catalog.server import replicas
from pkgrepo.storage.catalog.server.replicas import (
    ALL,
    DELETED,
    DELETED_NAMES,
    FOLLOWING,
    KEPT,
    LISTED,
    NEW,
    Backlog,
    Replica,
    Task,
)

from .copies import Copies
from .source import BEGIN, MOST_PAGES, Page, RemoteDeleted, Source

PARALLEL: Final = 4  # tasks at a time; each fetches one file at a time
MOST_TASKS: Final = 5000  # that wait: until some are done, no more events are read
MOST_FAILED: Final = 20_000  # tasks, of which those of one package become one then
FOLDED: Final = 50  # packages at a time
FEW_TASKS: Final = 500  # below which a comparison goes on
STEP: Final = 200  # packages of a step of a comparison
FIRST_PAUSE_S: Final = 1.0  # after a failure
LONGEST_PAUSE_S: Final = 15.0  # beside the pause of the circuit breaker, which is up to two minutes
REFUSED_PAUSE_S: Final = 60.0  # many attempts with wrong credentials lock the account
STEADY_S: Final = 0.2  # between pages without an event that means anything
IDLE_S: Final = 5.0  # between two questions, to a server that does not wait for events
LONGEST_RETRY_S: Final = 3600.0  # until a task that failed is tried again
WAKE_S: Final = 1.0  # after which tasks that are due again are looked for
MOST_VERSIONS: Final = 500_000  # of a package, whose names are compared in memory

# Failures that are about everything that the upstream has, or about this server: the task is no worse for them.
GENERAL: Final = (
    UpstreamUnavailable,
    UpstreamTimeout,
    UpstreamLimited,
    UpstreamMisconfigured,
    StorageFull,
    StorageFailed,
)
FIRST: Final = "it is followed for the first time"

log = Logger()


@define(eq=False, kw_only=True)
class Follower:
    """
    Follows one repository. ``mark_old`` tells all processes which documents (their keys) are old; before these are
    marked, ``settle`` has those stored that are only in the memory of processes.

    ``jitter`` returns a number from 0 to 1.
    """

    _repository: Repository
    _source: Source
    _copies: Copies
    _package_key: Callable[[str], str]
    _catalog: ICatalog
    _clock: Clock
    _reactor: Any
    _settle: Callable[[], Awaitable[None]]
    _mark_old: Callable[[Repository, Sequence[str]], None]
    _jitter: Callable[[], float] = random.random
    _wake: Deferred[None] = field(factory=Deferred, init=False)
    _errors: dict[str, str] = field(factory=dict, init=False)  # by part
    _noted: str = field(default="", init=False)
    _caught_up: bool = field(default=False, init=False)  # whether nothing is left to do but what has failed
    _ended: bool = field(default=False, init=False)

    def end(self) -> None:
        """
        Make no further steps. The caller cancels L{run} as well.

        A step whose cancellation breaks a connection that is being made fails as if the upstream did not answer.
        """
        self._ended = True

    async def run(self) -> None:
        """Follow, until it is ended and cancelled."""
        await self._catalog.write(replicas.ensure_replica, self._repository.id, self._source.name)
        steps = {"listening": self._listen, "working": self._work}
        parts = [Deferred.fromCoroutine(self._forever(part, step)) for part, step in steps.items()]
        await DeferredList(parts, consumeErrors=True)  # which ends by being cancelled, and cancels them

    async def _forever(self, part: str, step: Callable[[], Awaitable[None]]) -> None:
        """Do steps of a part one after the other, with pauses after failures."""
        failures = 0
        while not self._ended:
            refused = False
            try:
                await step()
            except CancelledError:
                raise
            except PkgrepoError as error:
                failures, refused = failures + 1, isinstance(error, UpstreamMisconfigured)
                log.debug(
                    "{part} to {repository}: {error}", part=part, repository=self._repository.path, error=str(error)
                )
                await self._note(part, str(error))
            except Exception:  # noqa: BLE001 - what one upstream sends ends nothing else
                failures += 1
                log.failure("following for {repository} failed", repository=self._repository.path)
                await self._note(part, "a fault of this server; its log has the reason")
            else:
                failures = 0
                continue
            if self._ended:
                return
            pause_s = min(FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE_S)
            pause_s = max(pause_s, REFUSED_PAUSE_S if refused else 0)
            await deferLater(self._reactor, pause_s * (0.75 + 0.5 * self._jitter()))

    # Listening and comparing

    async def _listen(self) -> None:
        """Read some events, or make a step of the comparison."""
        replica = await self._find()
        if replica is None or replica.walk == NEW:
            await self._begin(FIRST)
            return
        backlog: Backlog = await self._catalog.look(replicas.backlog_of, self._repository.id)
        waiting = backlog.tasks - backlog.failed  # those that failed keep nothing else from being done
        if backlog.failed > MOST_FAILED:
            await self._catalog.write(replicas.fold_failed, self._repository.id, FOLDED)
        if waiting >= MOST_TASKS:
            await deferLater(self._reactor, WAKE_S)
            return
        following = replica.walk == FOLLOWING
        comparing = not following and waiting < FEW_TASKS
        # what is new since the last task ended is looked for before the wait
        waits = following and not waiting and self._caught_up
        started_s = self._reactor.seconds()
        try:
            page = await self._source.events(replica.position or BEGIN, wait=waits)
        except PositionLost as error:
            await self._begin(str(error))
            await deferLater(self._reactor, WAKE_S)
            return
        if page.position != replica.position:
            await self._take(replica, page)
        if comparing:
            await self._compare(replica)
        self._caught_up = following and not (page.items or page.left or waiting)
        await self._note("listening", "", current=self._caught_up and not backlog.failed)
        if page.position != replica.position:
            # whatever it sends, it is not asked without an end
            await deferLater(self._reactor, 0 if page.items else STEADY_S)
        elif waits and self._reactor.seconds() - started_s < WAKE_S:
            await deferLater(self._reactor, IDLE_S)
        elif not comparing and (waiting or not self._caught_up):
            await deferLater(self._reactor, WAKE_S if waiting else STEADY_S)

    async def _find(self) -> Replica | None:
        """What is known of the replica, if it is still that of the source."""
        found: Replica | None = await self._catalog.look(replicas.find_replica, self._repository.id)
        return found if found is not None and found.source == self._source.name else None

    async def _begin(self, reason: str) -> None:
        """Begin at the newest event there, and compare everything."""
        await self._source.check(self._repository.format)
        page = await self._source.newest()
        log.info("{repository} is compared with {source}: {reason}", **self._names, reason=reason)
        await self._settle()
        keys = await self._catalog.write(
            replicas.begin_comparison,
            self._repository.id,
            self._source.name,
            page.position,
            reason,
            self._clock.now_ms(),
        )
        self._mark_old(self._repository, keys)

    async def _take(self, replica: Replica, page: Page) -> None:
        """Note what events are about."""
        items = []
        for package, version in page.items:
            with suppress(PkgrepoError):  # a name that no client could ask for
                items.append((self._package_key(package), version))
        if items:
            await self._settle()
        keys = await self._catalog.write(
            replicas.take_events,
            self._repository.id,
            replica.position,
            page.position,
            page.left,
            items,
            self._clock.now_ms(),
        )
        if keys is None:
            return
        if items:
            self._mark_old(self._repository, keys)
            self._woken()

    async def _compare(self, replica: Replica) -> None:
        """
        Make tasks of some packages: of those that are kept, then of those that are listed there.

        Then note some of the names that are taken there by what was deleted.
        """
        wanted, walk, walked = bool(self._source.followed.files), replica.walk, replica.walked
        if walk == KEPT:
            keys = await self._catalog.scan(cached_packages, self._repository.id, after=walked, limit=STEP)
            walked = keys[-1] if keys else ""
            walk = KEPT if keys else LISTED if wanted else DELETED
        elif walk == DELETED:
            keys = []
            deleted, cursor = await self._source.deleted(walked)
            await self._adopt_deleted(deleted)
            walk, walked = (FOLLOWING, "") if cursor is None else (DELETED, cursor)
        else:
            names, cursor = await self._source.packages(walked)
            keys = []
            for each in names:
                with suppress(PkgrepoError):
                    keys.append(self._package_key(each))
            walk, walked = (DELETED, "") if cursor is None else (LISTED, cursor)
        items = [(key, ALL) for key in keys]
        await self._catalog.write(replicas.walk_on, self._repository.id, walk, walked, items, self._clock.now_ms())
        self._woken()
        if walk == FOLLOWING:
            log.info("{repository} was compared with {source}", **self._names)

    # Working

    async def _work(self) -> None:
        """Do some tasks, or wait for them."""
        now_ms = self._clock.now_ms()
        found: Sequence[Task] = await self._catalog.look(replicas.due_tasks, self._repository.id, now_ms, PARALLEL)
        if not found or await self._find() is None:
            await self._pause(WAKE_S)
            return
        failures: list[Failure] = []
        doing = [Deferred.fromCoroutine(self._do(each)).addErrback(failures.append) for each in found]
        try:
            await DeferredList(doing)
        finally:
            for each in doing:
                each.cancel()
        if failures:
            failures[0].raiseException()
        await self._note("working", "")

    async def _do(self, task: Task) -> None:
        """Do a task. :raises PkgrepoError: it failed for a reason that others would fail for, too"""
        id_ = self._repository.id
        try:
            await self._apply(task)
        except NotFound:  # it is gone there by now, and an event says so
            await self._catalog.write(replicas.end_task, id_, task)
        except GENERAL:
            raise
        except PkgrepoError as error:
            opens_ms = None
            if isinstance(error, RuleRefused):
                if not error.may_open:
                    await self._catalog.write(replicas.end_task, id_, task)
                    return
                opens_ms = error.verdict.opens_ms
            pause_s = min(5.0 * 2.0 ** min(task.attempts, 12), LONGEST_RETRY_S) * (0.75 + 0.5 * self._jitter())
            due_ms = self._clock.now_ms() + int(1000 * pause_s) if opens_ms is None else opens_ms
            log.info(
                "{package} {version} of {repository} waits: {error}",
                package=task.package_key,
                version=task.version,
                repository=self._repository.path,
                error=str(error),
            )
            await self._catalog.write(replicas.fail_task, id_, task, str(error)[:1000], due_ms)
        else:
            await self._catalog.write(replicas.end_task, id_, task)

    async def _apply(self, task: Task) -> None:
        repository, package = self._repository, task.package_key
        if not task.version:
            await self._copies.renew(repository, package)
        elif task.version == ALL:
            await self._apply_all(package)
        elif task.version == DELETED_NAMES:
            await self._apply_deleted(package)
        else:
            await self._apply_version(package, task.version)

    async def _apply_version(self, package: str, name: str) -> None:
        found = await self._source.version(package, name)
        if found is None:
            # one who may not read the repository any more gets the same answer as of what is gone
            await self._source.check(self._repository.format)
            await self._copies.drop(self._repository, package, name)
        else:
            await self._copies.keep(self._repository, package, found)

    async def _apply_all(self, package: str) -> None:
        """Compare all versions of a package; without files that are wanted only those that are kept."""
        there: set[str] = set()
        async for page in self._source.versions(package):
            there.update(page)
            if len(there) > MOST_VERSIONS:
                raise UpstreamFailed(self._source.upstream.name, f"it lists too many versions of {package}")
        kept = set(await self._copies.kept(self._repository, package))
        failure: PkgrepoError | None = None
        for each in sorted(kept | there if self._source.followed.files else kept):
            try:
                await self._apply_version(package, each)
            except NotFound:
                continue
            except GENERAL:
                raise
            except PkgrepoError as error:  # of this version alone
                if not isinstance(error, RuleRefused) or error.may_open:
                    failure = failure or error
        await self._copies.renew(self._repository, package)
        if failure is not None:
            raise failure

    async def _apply_deleted(self, package: str) -> None:
        """Note the names that are taken there by what was deleted of a package."""
        cursor: str | None = ""
        for _ in range(MOST_PAGES):
            deleted, cursor = await self._source.deleted(cursor or "", package)
            await self._adopt_deleted(deleted)
            if cursor is None:
                return
        raise UpstreamFailed(self._source.upstream.name, f"it lists too many deleted names of {package}")

    async def _adopt_deleted(self, deleted: Sequence[RemoteDeleted]) -> None:
        names = []
        for each in deleted:
            with suppress(PkgrepoError):  # a name that no client could ask for
                key = self._package_key(each.package)
                names.append(DeletedName(key, each.path, each.sha256, each.deleted_at))
        await self._catalog.write(if_active(_adopt), self._repository, names, self._clock.now_ms())

    # Below

    @property
    def _names(self) -> dict[str, str]:
        return {"repository": self._repository.path, "source": self._source.name}

    async def _pause(self, seconds: float) -> None:
        """Wait, until there are new tasks at the latest."""
        self._wake = Deferred()
        with suppress(TimedOut):
            await within(seconds, self._wake, self._reactor, "nothing came")

    def _woken(self) -> None:
        if not self._wake.called:
            self._wake.callback(None)

    async def _note(self, part: str, error: str, *, current: bool = False) -> None:
        """Note what keeps a part from going on, or nothing; and that nothing is left to do."""
        self._errors[part] = error
        shown = next((each for each in self._errors.values() if each), "")
        if shown or current or self._noted != shown:
            self._noted = shown
            now_ms = self._clock.now_ms()
            with suppress(StorageFull, StorageFailed):
                await self._catalog.write(replicas.note_state, self._repository.id, shown, now_ms, current=current)


def _adopt(tx: Transaction, repository: Repository, names: Sequence[DeletedName], now_ms: int) -> None:
    adopt_deleted(tx, repository.id, names, now_ms)
