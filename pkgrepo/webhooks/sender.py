"""
Delivers the events of the catalog to webhooks.

It runs in one process at a time of all that serve the catalog, and works in rounds, whenever the catalog has changed
or a delivery is due. A round makes deliveries of the events after the cursors of the webhooks, and begins to send the
first pending delivery of each thread.

An attempt that fails is repeated after the pauses in ``PAUSES_S``, with a jitter. A receiver that refuses a message
with a status of 4xx gets it three times. One that answers 410, or has failed for ``LONGEST_FAILING``, is switched off.

A webhook has ``MOST_PENDING`` pending deliveries at most: while its receiver is away, its cursor stays behind, and the
event log is the queue.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Final

from attrs import Factory, define, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.concurrency.services import Service
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages.events import Event, events_after, last_seq
from pkgrepo.storage.catalog.rows import batches
from pkgrepo.storage.catalog.server import webhook_deliveries, webhooks
from pkgrepo.storage.catalog.server.webhook_deliveries import Attempt, Delivery, NewDelivery
from pkgrepo.storage.catalog.server.webhooks import Webhook

from .envelopes import Announcement, announce
from .event_types import matches
from .poster import Outcome, Poster

log = Logger()

LOOK_S: Final = 0.25  # seconds between two looks at the generation of the catalog, which cost a microsecond
EVENTS: Final = 500  # events of which deliveries are made in one transaction
FAR: Final = 5000  # events after the stored cursor that a crash may have looked at again
PARALLEL: Final = 8  # requests to one receiver at a time
MOST_PENDING: Final = 1000  # deliveries of a webhook
TOGETHER_S: Final = 0.05  # seconds; with a transaction for each attempt, publishes waited for their fsyncs
PRUNE_EVERY: Final = 200  # deliveries of a webhook
PAUSES_S: Final = (10, 60, 300, 1800, 7200, 21_600, 43_200, 86_400, 86_400, 86_400, 86_400)
MOST_REFUSED: Final = 3
LONGEST_FAILING: Final = timedelta(days=5)
LONGEST_WAIT_S: Final = 86_400.0  # however long a receiver wants to be left alone


# What is counted of an attempt, by the state of its delivery afterwards.
_RESULTS: Final = {
    webhook_deliveries.DELIVERED: "delivered",
    webhook_deliveries.PENDING: "failed",
    webhook_deliveries.FAILED: "given_up",
}


@define
class _Lane:
    """What this process does for a webhook: threads of which a delivery is sent, and how far its cursor has come."""

    busy: set[str] = Factory(set)
    seen: int = 0
    delivered: int = 0


@frozen
class _Due:
    """Deliveries to begin now, and when the next one is due (ms), None if none is."""

    deliveries: Sequence[Delivery]
    next_ms: int | None


def _read_due(r: Reader, busy: Mapping[int, Set[str]], now: datetime) -> _Due:
    """What is due of webhooks, whose threads that are ``busy`` are given by their catalog keys."""
    ids, later = list[int](), list[datetime]()
    for hook_id in sorted(webhook_deliveries.with_pending(r) & busy.keys()):
        heads = webhook_deliveries.pending_heads(r, hook_id, MOST_PENDING)
        waiting = [each for each in heads if each.thread not in busy[hook_id]]
        free = max(PARALLEL - len(busy[hook_id]), 0)
        ids += [each.id for each in waiting if each.due_at <= now][:free]
        later += [each.due_at for each in waiting if each.due_at > now]
    found = [each for some in batches(ids) for each in webhook_deliveries.get_deliveries(r, some)]
    return _Due(found, int(min(later).timestamp() * 1000) if later else None)


class WebhookSender(Service):
    """
    Sends events to webhooks; ``source`` is the name of this server in events.

    ``attempts`` are the numbers of attempts of this process by what came of them.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        authorizer: Authorizer,
        poster: Poster,
        clock: Clock,
        source: str,
        reactor: Any,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._authorizer = authorizer
        self._poster = poster
        self._clock = clock
        self._source = source
        self._reactor = reactor
        self._jitter = jitter
        self._lanes: dict[int, _Lane] = {}
        self.attempts = dict.fromkeys(_RESULTS.values(), 0)  # of this process
        self._sending: set[Deferred[None]] = set()
        self._attempts: list[tuple[Delivery, Attempt, Deferred[None]]] = []
        self._noting: Deferred[None] | None = None
        self._generation: int | None = None
        self._again = False
        self._due_ms: int | None = None
        self._round: Deferred[None] | None = None
        self._looking = LoopingCall(self._look)
        self._looking.clock = reactor

    def startService(self) -> None:
        """Begin with what happened since the last run."""
        super().startService()
        self._lanes.clear()
        self._generation = None
        self._looking.start(LOOK_S)

    def stopService(self) -> Deferred[Any]:
        """Begin nothing new, and abort what is under way, which the next process sends again; note what was taken."""
        super().stopService()
        self._looking.stop()
        under_way = [*self._sending, *([] if self._round is None else [self._round])]
        for each in under_way:
            each.cancel()
        return DeferredList([*under_way, *([] if self._noting is None else [self._noting])])

    def _look(self) -> None:
        generation = self._catalog.generation()
        due = self._due_ms is not None and self._clock.now_ms() >= self._due_ms
        if self._round is None and (self._again or due or generation != self._generation):
            self._generation, self._again = generation, False
            self._round = Deferred.fromCoroutine(self._run()).addErrback(self._report)
            self._round.addCallback(self._ended)

    def _ended(self, _: None) -> None:
        self._round = None
        if self._again and self.running:
            self._look()

    def _report(self, failure: Failure) -> None:
        if failure.check(CancelledError):
            return
        self._generation = None  # what was not done is done by the next round
        if failure.check(PkgrepoError):
            log.warn("webhooks wait for the catalog: {reason}", reason=str(failure.value))
        else:
            log.failure("a round of webhooks failed", failure=failure)

    async def _run(self) -> None:
        hooks: Sequence[Webhook] = await self._catalog.scan(webhooks.active_webhooks)
        self._lanes = {each.id: self._lanes.get(each.id) or _Lane() for each in hooks}
        self._due_ms = None
        if not hooks:
            return
        await self._registry.refresh()
        if await self._plan(hooks):
            self._again = True
        await self._begin(hooks)

    # From events to deliveries

    async def _plan(self, hooks: Sequence[Webhook]) -> bool:
        """Make deliveries of some events. Returns whether there may be more events."""
        if await self._catalog.look(last_seq) <= min(self._cursor(each) for each in hooks):
            return False
        pending: Mapping[int, int] = await self._catalog.scan(webhook_deliveries.pending_counts)
        open_hooks = [each for each in hooks if pending.get(each.id, 0) < MOST_PENDING]
        if not open_hooks:
            return False
        begin = min(self._cursor(each) for each in open_hooks)
        found: Sequence[Event] = await self._catalog.scan(events_after, begin, EVENTS)
        if not found:
            return False
        wanted = await self._wanted(open_hooks, found)
        last = found[-1].seq
        behind = [each for each in open_hooks if last > self._cursor(each)]
        new = [(each, wanted[each.id]) for each in behind if wanted[each.id] or last - each.cursor >= FAR]
        if new:
            await self._catalog.write(webhook_deliveries.add_all_deliveries, last, new, self._clock.now_ms())
        for each in behind:
            # One that wants none of them has come so far in memory only: after a crash they are looked at again.
            self._lanes[each.id].seen = last
        return len(found) == EVENTS

    async def _wanted(self, hooks: Sequence[Webhook], found: Sequence[Event]) -> dict[int, list[NewDelivery]]:
        """The deliveries of some events by the catalog keys of the webhooks."""
        wanted: dict[int, list[NewDelivery]] = {each.id: [] for each in hooks}
        for event in found:
            announcement = announce(event, self._registry.find_id(event.repository_id), self._source)
            if announcement is None:
                continue
            bodies: dict[str, str] = {}
            for hook in hooks:
                if event.seq > self._cursor(hook) and await self._wants(hook, event, announcement):
                    wanted[hook.id].append(_delivery(hook, announcement, bodies))
        return wanted

    def _cursor(self, hook: Webhook) -> int:
        return max(hook.cursor, self._lanes[hook.id].seen)

    async def _wants(self, hook: Webhook, event: Event, announcement: Announcement) -> bool:
        if not matches(announcement.type, hook.events):
            return False
        if hook.repository_id is None and hook.project_id is None:
            return True
        repository = self._registry.find_id(event.repository_id)
        if hook.repository_id is not None:
            own = event.repository_id if repository is None else repository.authority.id
            return own == hook.repository_id
        if repository is None or not event.package_key:
            return False
        project = await self._authorizer.owning_project(repository, event.package_key)
        return project is not None and project.id == hook.project_id

    # From deliveries to requests

    async def _begin(self, hooks: Sequence[Webhook]) -> None:
        """Begin to send what is due, and note when the next delivery is."""
        busy = {each.id: frozenset(self._lanes[each.id].busy) for each in hooks}
        due: _Due = await self._catalog.scan(_read_due, busy, from_ms(self._clock.now_ms()))
        self._due_ms = due.next_ms
        by_id = {each.id: each for each in hooks}
        for delivery in due.deliveries:
            if not self.running:
                return
            hook, lane = by_id[delivery.webhook_id], self._lanes[delivery.webhook_id]
            lane.busy.add(delivery.thread)
            sending = Deferred.fromCoroutine(self._send(hook, lane, delivery)).addErrback(self._report)
            self._sending.add(sending)
            sending.addCallback(self._sent, sending, lane, delivery)

    def _sent(self, _: None, sending: Deferred[None], lane: _Lane, delivery: Delivery) -> None:
        self._sending.discard(sending)
        lane.busy.discard(delivery.thread)
        if self.running:
            self._again = True
            self._look()

    async def _send(self, hook: Webhook, lane: _Lane, delivery: Delivery) -> None:
        outcome = await self._poster.post(hook, delivery.message, delivery.body)
        attempt = self._judge(delivery, outcome)
        self.attempts[_RESULTS[attempt.state]] += 1
        await self._record(delivery, attempt)
        if not outcome.ok:
            await self._check_patience(hook, outcome)
        lane.delivered += 1
        if lane.delivered % PRUNE_EVERY == 0:
            await self._catalog.write(webhook_deliveries.prune_webhook, hook.id, 2 * PRUNE_EVERY)

    async def _record(self, delivery: Delivery, attempt: Attempt) -> None:
        """Note what came of an attempt; those of ``TOGETHER_S`` are noted in one transaction."""
        if self._noting is None:
            self._noting = Deferred.fromCoroutine(self._note())
        noting: Deferred[None] = Deferred()
        self._attempts.append((delivery, attempt, noting))
        await noting

    async def _note(self) -> None:
        await deferLater(self._reactor, TOGETHER_S)
        some, self._attempts, self._noting = self._attempts, [], None
        try:
            await self._catalog.write(webhook_deliveries.record_attempts, [each[:2] for each in some])
        except Exception as error:  # noqa: BLE001 - those that wait are sent again, whatever it was
            for *_, noting in some:
                noting.errback(error)
        else:
            for *_, noting in some:
                noting.callback(None)

    def _judge(self, delivery: Delivery, outcome: Outcome) -> Attempt:
        return attempt_of(outcome, delivery.attempts, self._clock.now_ms(), self._jitter)

    async def _check_patience(self, hook: Webhook, outcome: Outcome) -> None:
        now = from_ms(self._clock.now_ms())
        reason = ""
        if outcome.gone:
            reason = "its receiver answered 410: it wants no events any more"
        elif hook.failing_since is not None and now - hook.failing_since >= LONGEST_FAILING:
            reason = f"every attempt has failed for {LONGEST_FAILING.days} days; the last time {outcome.error}"
        if not reason:
            return
        switched: bool = await self._catalog.write(webhooks.disable_webhook, hook.id, reason, self._clock.now_ms())
        if switched:
            log.warn("webhook {name} was switched off: {reason}", name=hook.name, reason=reason)


def attempt_of(outcome: Outcome, attempts: int, now_ms: int, jitter: Callable[[], float] = random.random) -> Attempt:
    """
    What is noted of an attempt to send a delivery that had ``attempts`` before it.

    ``jitter`` returns a number from 0 to 1.
    """
    state, pause_s = webhook_deliveries.PENDING, 0.0
    if outcome.ok:
        state = webhook_deliveries.DELIVERED
    elif outcome.gone or attempts >= len(PAUSES_S) or (outcome.hopeless and attempts + 1 >= MOST_REFUSED):
        state = webhook_deliveries.FAILED
    else:
        pause_s = PAUSES_S[attempts] * (0.9 + 0.2 * jitter())
        if outcome.retry_after_s is not None:
            pause_s = max(pause_s, min(outcome.retry_after_s, LONGEST_WAIT_S))
    return Attempt(
        state=state,
        status=outcome.status,
        took_ms=outcome.took_ms,
        error=outcome.error,
        response=outcome.response,
        at_ms=now_ms,
        due_ms=now_ms + int(pause_s * 1000),
    )


def _delivery(hook: Webhook, announcement: Announcement, bodies: dict[str, str]) -> NewDelivery:
    """The delivery of an event; ``bodies`` are those of the event that were made already, by format."""
    body = bodies.get(hook.format)
    if body is None:
        body = bodies[hook.format] = announcement.body("plain" if hook.format == "plain" else "cloudevents")
    return NewDelivery(announcement.id, announcement.type, announcement.subject, announcement.thread, body)
