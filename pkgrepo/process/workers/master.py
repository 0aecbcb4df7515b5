"""
The master of several workers: binds their sockets, starts them, and replaces those that end.

======================  ================================================================================================
event                   what the master does
======================  ================================================================================================
start                   starts the workers. The first one upgrades the catalog and makes what is missing, before others
                        open it. If one cannot start, the start has failed
a worker ends           has another one accept connections at its sockets, too, and starts a new one, after a pause that
                        grows while they keep ending
a worker is silent      has another one accept its connections after ``SILENT_S``, and kills it after ``HANG_S``: its
                        reactor hangs
reload (SIGHUP)         replaces the workers, one after the other: the new one accepts before the old one stops to. It
                        reads the configuration again, except for the addresses. If it cannot start, the old ones stay
stop (SIGTERM)          stops all workers, and waits for their transfers
the master is killed    each worker finds its socket pair closed, and stops
======================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred, DeferredList, FirstError, gatherResults
from twisted.internet.defer import TimeoutError as LateError
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.services import Service, spawn
from pkgrepo.management.metrics.sums import growing
from pkgrepo.process.sd_notify import Notifier

from .child import Child, Outputs, WorkerFailed
from .messages import ALIVE_S, Answered, Asked, Gathered, Message, Published, Ready
from .sockets import ListeningSockets

PAUSE_S: Final = 0.2  # seconds before a worker is started again; doubled each time, up to LONGEST_PAUSE_S
LONGEST_PAUSE_S: Final = 5.0
STEADY_S: Final = 60.0  # seconds after which an end counts as the first one
SILENT_S: Final = 2.5 * ALIVE_S  # seconds without a message
HANG_S: Final = 60.0  # seconds without a message
ANSWER_S: Final = 2.0  # seconds for the answers to a question
METRICS: Final = "metrics"  # the topic whose answers are summed up over workers that have ended
KILL_S: Final = 15.0  # seconds beyond the grace of a stop, in which workers write what is only in memory

log = Logger()


class Master(Service):
    """
    Runs ``count`` workers. ``run`` is called in each of their processes, with the number of its sockets.

    ``announce`` is told the first worker's addresses and password. A stop waits ``grace_s`` for transfers.
    """

    def __init__(
        self,
        reactor: Any,
        *,
        count: int,
        addresses: Sequence[str],
        run: Callable[[int], int],
        outputs: Outputs,
        announce: Callable[[Ready], None],
        notifier: Notifier,
        grace_s: float,
    ) -> None:
        self._reactor = reactor
        self._addresses = addresses
        self._run = run
        self._outputs = outputs
        self._announce = announce
        self._notifier = notifier
        self._grace_s = grace_s
        self._sockets = ListeningSockets(reactor, count)
        self._slots = [_Slot(number) for number in range(count)]
        self._children: set[Child] = set()
        self._ready: Deferred[None] = Deferred()
        self._started = False
        self._stopping = False
        self._replacing: Deferred[None] | None = None
        self._again = False
        self._left = b""  # metrics of workers that have ended
        self._questions: dict[tuple[Child, int], Deferred[bytes]] = {}
        self._number = 0
        self._binding: Deferred[None] | None = None
        self._watch = LoopingCall(self._check_silence)
        self._watch.clock = reactor

    def when_ready(self) -> Deferred[None]:
        """Fires when all workers serve; fails with the error that prevented the start. To be called once."""
        return self._ready

    def privilegedStartService(self) -> None:
        """Bind the sockets while twistd has its privileges."""
        super().privilegedStartService()
        self._bind()

    def startService(self) -> None:
        """Start the workers; see ``when_ready``."""
        super().startService()
        self._bind()
        Deferred.fromCoroutine(self._start()).addCallbacks(self._ready.callback, self._ready.errback)

    def stopService(self) -> Deferred[None]:
        """Stop the workers, and wait for them."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    def reload(self) -> None:
        """Replace all workers, one after the other; during the start or a replacement, once more after it."""
        if self._stopping:
            return
        if not self._started or self._replacing is not None:
            self._again = True
            return
        log.info("reloading: the workers are replaced, one after the other")
        replacing = self._replacing = Deferred.fromCoroutine(self._replace_all())
        replacing.addErrback(_report, "the workers could not be replaced")
        replacing.addCallback(self._replaced)

    # Start and stop

    def _bind(self) -> None:
        if self._binding is None:
            self._binding = Deferred.fromCoroutine(self._sockets.bind(self._addresses))

    async def _start(self) -> None:
        assert self._binding is not None, "privilegedStartService was called"
        await self._binding
        first, *others = [self._spawn(each) for each in self._slots]
        ready = Deferred.fromCoroutine(self._begin(first, others))
        failed = [each.ready for each in others]
        outcome = await gatherResults([ready, *failed], consumeErrors=True).addErrback(_first_error)
        if self._stopping:
            return
        self._watch.start(ALIVE_S, now=False)
        self._started = True
        self._cover()
        status = f"{len(self._slots)} workers serve at " + " ".join(outcome[0].addresses)
        self._announce(outcome[0])  # first, so that the admin's password is known before the log says that all is ready
        log.info("{status}", status=status)
        for each in self._slots:  # one may have ended while others started
            if each.child is None and each.respawning is None:
                self._respawn(each)
        self._notifier.ready(status)
        self._reload_again()

    async def _begin(self, first: Child, others: Sequence[Child]) -> Ready:
        first.begin()
        ready = await first.ready
        for each in others:
            each.begin()
        return ready

    async def _stop(self) -> None:
        self._stopping = True
        self._notifier.stopping()
        if self._watch.running:
            self._watch.stop()
        for slot in self._slots:
            slot.cancel()
        for child in self._children:
            child.stop()
        if self._binding is not None:
            self._binding.addErrback(lambda _: None)
            await self._binding
        await self._sockets.close()
        late = self._reactor.callLater(self._grace_s + KILL_S, self._kill_all)
        while self._children:
            await DeferredList([_copy(child.ended) for child in self._children])
        if late.active():
            late.cancel()
        if self._replacing is not None:
            await self._replacing
        self._notifier.stopped()

    def _kill_all(self) -> None:
        log.warn("killing {count} workers that outlived the stop", count=len(self._children))
        for child in self._children:
            child.kill()

    # Workers

    def _spawn(self, slot: _Slot) -> Child:
        child = slot.child = self._make(slot)
        return child

    def _make(self, slot: _Slot) -> Child:
        child = Child(slot.number, self._outputs, self._reactor.seconds)
        child.on_message = self._handle
        child.start(self._reactor, self._run, self._sockets.of(slot.number))
        self._children.add(child)
        child.ended.addCallback(self._ended, child, slot)
        return child

    def _ended(self, reason: str, child: Child, slot: _Slot) -> str:
        self._children.discard(child)
        if child.counted:
            self._left = growing([self._left, child.counted])
        for (asked, number), waiting in list(self._questions.items()):
            if asked is child:
                del self._questions[asked, number]
                waiting.callback(b"")
        if slot.child is child:
            slot.child = None
            if self._started and not self._stopping and not slot.replacing:
                log.error("worker {slot} ended: {reason}", slot=slot.number, reason=reason)
                self._respawn(slot, lived_s=self._reactor.seconds() - child.started_at)
        self._cover()
        return reason

    def _cover(self) -> None:
        """Have workers that serve accept the connections of slots without such a worker."""
        if not self._started or self._stopping:
            return
        serving = [slot.child for slot in self._slots if slot.child is not None and self._serves(slot.child)]
        for slot in self._slots:
            is_served = slot.child in serving
            if slot.cover is not None and (is_served or slot.cover not in serving):
                slot.cover.uncover(slot.number)  # also one that is silent, and may go on later
                slot.cover = None
            if not is_served and serving and slot.cover is None:
                slot.cover = serving[slot.number % len(serving)]
                slot.cover.cover(slot.number, self._sockets.own(slot.number))

    def _serves(self, child: Child) -> bool:
        return child.serving and self._reactor.seconds() - child.heard_at < SILENT_S

    def _respawn(self, slot: _Slot, lived_s: float = 0.0) -> None:
        slot.pause_s = PAUSE_S if lived_s >= STEADY_S else min(LONGEST_PAUSE_S, max(PAUSE_S, 2 * slot.pause_s))
        slot.respawning = self._reactor.callLater(slot.pause_s, self._spawn_again, slot)

    def _spawn_again(self, slot: _Slot) -> None:
        slot.respawning = None
        if self._stopping or slot.replacing:
            return
        try:
            child = self._spawn(slot)
        except OSError as error:  # no process or descriptor left
            log.warn("a worker cannot be started: {error}", error=str(error))
            self._respawn(slot)
            return
        child.begin()
        child.ready.addCallbacks(
            lambda _: self._serves_again(slot),
            lambda failure: log.error("{reason}", reason=failure.getErrorMessage()),
        )

    def _serves_again(self, slot: _Slot) -> None:
        log.info("worker {slot} serves again", slot=slot.number)
        self._cover()

    async def _replace_all(self) -> None:
        for slot in self._slots:
            if self._stopping:
                return
            slot.replacing = True
            slot.cancel()
            try:
                await self._replace(slot)
            except (WorkerFailed, OSError) as error:
                if not self._stopping:
                    log.warn("a new worker could not start, and the others stay: {reason}", reason=str(error))
                return
            finally:
                slot.replacing = False
                if slot.child is None and not self._stopping:
                    self._respawn(slot)
        log.info("all workers are new")

    async def _replace(self, slot: _Slot) -> None:
        new = self._make(slot)
        new.begin()
        await new.ready
        old, slot.child = slot.child, new
        self._cover()
        if old is not None:
            old.stop()

    def _replaced(self, _: object) -> None:
        self._replacing = None
        self._reload_again()

    def _reload_again(self) -> None:
        again, self._again = self._again, False
        if again:
            self.reload()

    def _check_silence(self) -> None:
        now = self._reactor.seconds()
        for child in self._children:
            if child.serving and now - child.heard_at > HANG_S:
                log.error("worker {slot} is killed: its reactor hangs", slot=child.slot)
                child.kill()
            elif child.stopped_at is not None and now - child.stopped_at > self._grace_s + KILL_S:
                log.error("worker {slot} is killed: it does not stop", slot=child.slot)
                child.kill()
        self._cover()

    # Messages

    def _handle(self, child: Child, message: Message) -> None:
        match message:
            case Published():
                for each in self._children:
                    if each is not child:
                        each.send(message)
            case Answered(number, data):
                waiting = self._questions.pop((child, number), None)
                if waiting is not None:
                    waiting.callback(data)
            case Asked():
                spawn(self._gather(child, message), "a question of a worker could not be passed on")

    async def _gather(self, asker: Child, question: Asked) -> None:
        others = [each for each in self._children if each is not asker and each.serving]
        answers = [await each for each in [self._ask(each, question.topic) for each in others]]
        if question.topic == METRICS:
            asker.counted = question.own
            for each, text in zip(others, answers, strict=True):
                each.counted = text or each.counted
            # What Prometheus has seen must not become less, also when a worker is late or draining.
            answers = [each.counted for each in self._children if each is not asker and each.serving]
            draining = [each.counted for each in self._children if each is not asker and not each.serving]
            answers.append(growing([self._left, *draining]))
        asker.send(Gathered(question.number, [each for each in answers if each]))

    def _ask(self, child: Child, topic: str) -> Deferred[bytes]:
        self._number += 1
        key = (child, self._number)
        waiting = self._questions[key] = Deferred[bytes]()
        child.send(Asked(self._number, topic))

        def late(failure: Failure) -> bytes:
            failure.trap(LateError)
            self._questions.pop(key, None)
            return b""

        return waiting.addTimeout(ANSWER_S, self._reactor).addErrback(late)


class _Slot:
    """
    The place of a worker: its sockets, the present worker, and when the next one is started.

    ``cover`` is the worker of another slot that accepts its connections meanwhile.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.child: Child | None = None
        self.cover: Child | None = None
        self.replacing = False
        self.pause_s = 0.0
        self.respawning: IDelayedCall | None = None

    def cancel(self) -> None:
        """Cancel the start of the next worker."""
        respawning, self.respawning = self.respawning, None
        if respawning is not None and respawning.active():
            respawning.cancel()


def _first_error(failure: Failure) -> Failure:
    """The failure of the first of several that failed."""
    error = failure.value
    return error.subFailure if isinstance(error, FirstError) else failure


def _copy(ended: Deferred[str]) -> Deferred[None]:
    """A Deferred that fires with another one, whose result stays."""
    mine: Deferred[None] = Deferred()

    def fire(result: str) -> str:
        mine.callback(None)
        return result

    ended.addCallback(fire)
    return mine


def _report(failure: Failure, what: str) -> None:
    log.failure(what, failure=failure)
