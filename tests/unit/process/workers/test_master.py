"""What the master of several workers does with them, by a clock that tests advance and workers without processes."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from pkgrepo.process.sd_notify import Notifier
from pkgrepo.process.workers import master as module
from pkgrepo.process.workers.child import Child, Outputs, WorkerFailed
from pkgrepo.process.workers.master import (
    ANSWER_S,
    HANG_S,
    KILL_S,
    LONGEST_PAUSE_S,
    METRICS,
    PAUSE_S,
    SILENT_S,
    STEADY_S,
    Master,
)
from pkgrepo.process.workers.messages import (
    ALIVE_S,
    Alive,
    Answered,
    Asked,
    Begin,
    Counted,
    Cover,
    Failed,
    Gathered,
    Message,
    Published,
    Ready,
    Uncover,
)

GRACE_S = 10.0
Make = Callable[..., "Place"]


class Recorder:
    """The master's end of a worker's socket pair."""

    transport = None

    def __init__(self) -> None:
        self.sent: list[Message] = []

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        assert not descriptors
        self.sent.append(message)


class Worker(Child):
    """A child whose process is played by the test."""

    def __init__(self, slot: int, outputs: Outputs, seconds: Callable[[], float]) -> None:
        super().__init__(slot, outputs, seconds)
        self.recorder: Any = Recorder()
        self._channel = self.recorder
        self.signals: list[str] = []
        self.receive = self._receive

    def start(self, reactor: Any, run: Callable[[int], int], descriptors: Sequence[int]) -> None:
        """Start no process."""

    def _signal(self, name: str) -> None:
        self.signals.append(name)

    @property
    def sent(self) -> list[Message]:
        found: list[Message] = self.recorder.sent
        return found

    def serve(self) -> None:
        self.receive(Ready([f"http://at/{self.slot}"]))

    def end(self, *, orderly: bool = False) -> None:
        self.processEnded(Failure(ProcessDone(0) if orderly else ProcessTerminated(signal=9)))


class Place:
    """A master; ``workers`` are all that it has made, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.clock = Clock()
        self.workers: list[Worker] = []
        self.announced: list[Ready] = []
        self.refused = 0  # workers that the system cannot start
        monkeypatch.setattr(module, "Child", self._make)
        self.master = Master(
            self.clock,
            count=count,
            addresses=[],
            run=lambda _: 0,
            outputs=Outputs(printed=io.BytesIO(), logged=None),
            announce=self.announced.append,
            notifier=Notifier({}, clock=self.clock),
            grace_s=GRACE_S,
        )
        self.outcome: list[Any] = []
        self.master.when_ready().addBoth(self.outcome.append)
        self.master.privilegedStartService()
        self.master.startService()

    def _make(self, *arguments: Any) -> Worker:
        if self.refused:
            self.refused -= 1
            raise OSError("no process left")
        self.workers.append(Worker(*arguments))
        return self.workers[-1]

    def pass_time(self, seconds: float, *alive: Worker) -> None:
        """Advance the clock; the workers that are named report meanwhile."""
        passed = 0.0
        while passed < seconds:
            for each in alive:
                each.receive(Alive())
            step = min(ALIVE_S, seconds - passed)
            self.clock.advance(step)
            passed += step

    def stop(self) -> Deferred[None]:
        return self.master.stopService()


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a master whose workers serve."""

    def made(count: int = 2, *, serving: bool = True) -> Place:
        place = Place(monkeypatch, count)
        if serving:
            for each in place.workers:
                each.serve()
        return place

    return made


def test_the_first_worker_begins_before_the_others(make: Make) -> None:
    place = make(3, serving=False)
    first, *others = place.workers
    assert [each.sent for each in place.workers] == [[Begin()], [], []]
    first.serve()
    assert [each.sent for each in others] == [[Begin()], [Begin()]]
    assert place.outcome == []
    others[1].serve()
    others[0].serve()
    assert place.outcome == [None]
    assert place.announced == [Ready(["http://at/0"])]


@pytest.mark.parametrize("number", [0, 1])
def test_a_worker_that_cannot_start_fails_the_start(make: Make, number: int) -> None:
    place = make(serving=False)
    for each in place.workers[:number]:
        each.serve()
    place.workers[number].receive(Failed("there is no database"))
    [failure] = place.outcome
    assert failure.type is WorkerFailed
    assert failure.getErrorMessage() == "there is no database"
    place.workers[number].end()
    place.clock.advance(LONGEST_PAUSE_S)
    assert len(place.workers) == 2


def test_news_of_one_worker_reach_all_others(make: Make) -> None:
    place = make(3)
    before = [len(each.sent) for each in place.workers]
    news = Published("topic", b"data")
    place.workers[1].receive(news)
    new = [each.sent[count:] for each, count in zip(place.workers, before, strict=True)]
    assert new == [[news], [], [news]]


def test_a_worker_that_hangs_is_killed_and_replaced(make: Make) -> None:
    place = make()
    good, hanging = place.workers
    place.pass_time(HANG_S, good)
    assert hanging.signals == []
    place.pass_time(ALIVE_S, good)
    assert (good.signals, hanging.signals) == ([], ["KILL"])
    hanging.end()
    place.clock.advance(PAUSE_S)
    assert [each.slot for each in place.workers] == [0, 1, 1]
    assert place.workers[2].sent == [Begin()]


def test_workers_that_end_are_started_again_after_growing_pauses(make: Make) -> None:
    place = make()
    for pause in (PAUSE_S, 0.4, 0.8, 1.6, 3.2, LONGEST_PAUSE_S, LONGEST_PAUSE_S):
        count = len(place.workers)
        place.workers[-1].end()
        place.clock.advance(pause - 0.01)
        assert len(place.workers) == count
        place.clock.advance(0.01)
        assert len(place.workers) == count + 1
    place.workers[-1].serve()
    place.pass_time(STEADY_S, place.workers[0], place.workers[-1])
    count = len(place.workers)
    place.workers[-1].end()
    place.clock.advance(PAUSE_S)
    assert len(place.workers) == count + 1


def test_a_worker_that_the_system_cannot_start_is_tried_again(make: Make) -> None:
    place = make()
    place.refused = 1
    place.workers[1].end()
    place.clock.advance(PAUSE_S)
    assert len(place.workers) == 2
    place.clock.advance(2 * PAUSE_S)
    assert [each.slot for each in place.workers] == [0, 1, 1]


def test_another_worker_accepts_for_one_that_has_ended_until_it_is_back(make: Make) -> None:
    place = make(3)
    first, second, third = place.workers
    second.end()
    assert [first.sent[-1], third.sent[-1]] == [Begin(), Cover(1, 0)]
    third.end()  # which accepted for the second
    assert first.sent[1:] == [Cover(1, 0), Cover(2, 0)]
    place.clock.advance(PAUSE_S)
    new = place.workers[3:]
    assert [each.slot for each in new] == [1, 2]
    for each in new:
        each.serve()
    assert first.sent[3:] == [Uncover(1), Uncover(2)]
    assert [each.sent for each in new] == [[Begin()], [Begin()]]


def test_another_worker_accepts_for_one_that_is_silent(make: Make) -> None:
    place = make()
    good, silent = place.workers
    place.pass_time(SILENT_S + ALIVE_S, good)
    assert good.sent[1:] == [Cover(1, 0)]
    place.pass_time(ALIVE_S, good, silent)
    assert good.sent[1:] == [Cover(1, 0), Uncover(1)]


def test_a_silent_worker_stops_to_accept_for_another_one(make: Make) -> None:
    place = make(3)
    first, second, third = place.workers
    second.end()
    place.clock.advance(PAUSE_S)  # its successor takes long to start
    assert third.sent[1:] == [Cover(1, 0)]
    place.pass_time(SILENT_S + ALIVE_S, first)
    assert third.sent[1:] == [Cover(1, 0), Uncover(1)]
    assert first.sent[1:] == [Cover(1, 0), Cover(2, 0)]


def test_workers_are_replaced_one_after_the_other(make: Make) -> None:
    place = make()
    old = place.workers[:]
    place.master.reload()
    assert [each.slot for each in place.workers] == [0, 1, 0]
    assert [each.signals for each in old] == [[], []]
    place.workers[2].serve()
    assert [each.signals for each in old] == [["TERM"], []]
    place.workers[3].serve()
    assert [each.signals for each in old] == [["TERM"], ["TERM"]]
    for each in old:
        each.end(orderly=True)
    place.clock.advance(LONGEST_PAUSE_S)
    assert [each.slot for each in place.workers] == [0, 1, 0, 1]
    assert not any(isinstance(sent, Cover) for each in place.workers for sent in each.sent)


def test_a_reload_during_a_replacement_follows_it(make: Make) -> None:
    place = make(1)
    place.master.reload()
    place.master.reload()
    assert len(place.workers) == 2
    place.workers[1].serve()
    assert len(place.workers) == 3
    place.workers[2].serve()
    assert len(place.workers) == 3


def test_a_new_worker_that_cannot_start_leaves_the_old_ones(make: Make) -> None:
    place = make()
    place.master.reload()
    place.workers[2].receive(Failed("wrong settings"))
    place.workers[2].end()
    place.clock.advance(LONGEST_PAUSE_S)
    assert len(place.workers) == 3
    assert [each.signals for each in place.workers[:2]] == [[], []]
    place.workers[0].end()  # the slot is watched again
    place.clock.advance(PAUSE_S)
    assert [each.slot for each in place.workers] == [0, 1, 0, 0]


def test_an_old_worker_that_ends_while_it_is_replaced_is_not_started_twice(make: Make) -> None:
    place = make()
    place.master.reload()
    place.workers[0].end()
    assert place.workers[1].sent[-1] == Cover(0, 0)
    place.workers[2].serve()
    place.clock.advance(LONGEST_PAUSE_S)
    assert [each.slot for each in place.workers] == [0, 1, 0, 1]  # the last one replaces the second


def test_a_replaced_worker_that_does_not_end_is_killed(make: Make) -> None:
    place = make(1)
    place.master.reload()
    old, new = place.workers
    new.serve()
    place.pass_time(GRACE_S + KILL_S, new)
    assert old.signals == ["TERM"]
    place.pass_time(ALIVE_S, new)
    assert old.signals == ["TERM", "KILL"]
    assert new.signals == []


def test_a_stop_waits_for_all_workers(make: Make) -> None:
    place = make()
    stopped: list[None] = []
    place.stop().addCallback(stopped.append)
    assert [each.signals for each in place.workers] == [["TERM"], ["TERM"]]
    place.workers[0].end(orderly=True)
    assert stopped == []
    place.workers[1].end(orderly=True)
    assert stopped == [None]
    assert place.clock.getDelayedCalls() == []
    assert len(place.workers) == 2


def test_a_stop_kills_workers_that_outlive_it(make: Make) -> None:
    place = make()
    place.stop()
    place.workers[0].end(orderly=True)
    place.clock.advance(GRACE_S + KILL_S)
    assert [each.signals for each in place.workers] == [["TERM"], ["TERM", "KILL"]]


def test_a_stop_ends_the_new_worker_of_a_replacement(make: Make) -> None:
    place = make()
    place.master.reload()
    stopped: list[None] = []
    place.stop().addCallback(stopped.append)
    assert [each.signals for each in place.workers] == [["TERM"], ["TERM"], ["TERM"]]
    place.workers[2].serve()  # the signal came after that
    for each in place.workers:
        each.end(orderly=True)
    assert stopped == [None]
    assert len(place.workers) == 3


def test_a_stop_cancels_the_start_of_the_next_worker(make: Make) -> None:
    place = make()
    place.workers[1].end()
    place.stop()
    place.workers[0].end(orderly=True)
    place.clock.advance(LONGEST_PAUSE_S)
    assert len(place.workers) == 2


def test_a_stop_during_the_start_ends_it(make: Make) -> None:
    place = make(serving=False)
    stopped: list[None] = []
    place.stop().addCallback(stopped.append)
    place.workers[0].serve()
    for each in place.workers:
        assert each.signals == ["TERM"]
        each.end(orderly=True)
    assert stopped == [None]
    assert place.announced == []


def test_answers_of_all_others_are_gathered(make: Make) -> None:
    place = make(3)
    asker, one, other = place.workers
    asker.receive(Asked(7, "topic"))
    [to_one, to_other] = [each.sent[-1] for each in (one, other)]
    assert isinstance(to_one, Asked)
    assert isinstance(to_other, Asked)
    other.receive(Answered(to_other.number, b"other"))
    assert not isinstance(asker.sent[-1], Gathered)
    one.receive(Answered(to_one.number, b"one"))
    gathered = asker.sent[-1]
    assert isinstance(gathered, Gathered)
    assert (gathered.number, sorted(gathered.answers)) == (7, [b"one", b"other"])


def test_a_worker_that_is_late_or_ends_has_no_answer(make: Make) -> None:
    place = make(3)
    asker, ending, _ = place.workers
    asker.receive(Asked(7, "topic"))
    ending.end()
    place.clock.advance(ANSWER_S)
    assert asker.sent[-1] == Gathered(7, [])


def test_metrics_of_ended_workers_are_kept(make: Make) -> None:
    place = make()
    asker, ended = place.workers
    text = b"# TYPE requests_total counter\nrequests_total 5.0\n"
    ended.receive(Counted(text))
    ended.end()
    asker.receive(Asked(7, METRICS, own=b""))
    gathered = asker.sent[-1]
    assert isinstance(gathered, Gathered)
    assert [b"requests_total 5.0" in each for each in gathered.answers] == [True]
