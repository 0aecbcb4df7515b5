"""A fair semaphore: no permit is lost or doubled, however its holder ends, and the queue is fair."""

import random

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.fair_semaphore import BURST, FairSemaphore, QueueFull


class Scene:
    """Holders that keep their permit until ``end``, and the order in which they got it."""

    def __init__(self, count=1, most_waiting=None):
        self.clock = Clock()
        self.semaphore = FairSemaphore(count, self.clock, most_waiting=most_waiting)
        self.held = {}
        self.order = []

    def hold(self, name, *path):
        outcome = Deferred.fromCoroutine(self._hold(name, path or ("all",)))
        outcome.addErrback(lambda failure: failure.trap(CancelledError, QueueFull, ValueError))
        return outcome

    async def _hold(self, name, path):
        async with self.semaphore.hold(path):
            self.order.append(name)
            self.held[name] = Deferred()
            try:
                await self.held[name]
            finally:
                del self.held[name]

    def refuse(self, name, *path):
        """A holder that releases its permit at once, with an error."""

        async def refuse():
            async with self.semaphore.hold(path or ("all",)):
                self.order.append(name)
                raise ValueError(name)

        return Deferred.fromCoroutine(refuse()).addErrback(lambda failure: failure.trap(ValueError, QueueFull))

    def end(self, name):
        self.held[name].callback(None)

    def run(self):
        """End all holders, one after the other."""
        while self.held or self.clock.getDelayedCalls():
            self.clock.advance(0)
            for name in list(self.held):
                self.end(name)


def test_no_more_holders_than_permits():
    scene = Scene(count=2)
    for name in range(5):
        scene.hold(name)
    assert sorted(scene.held) == [0, 1]
    scene.end(1)
    assert sorted(scene.held) == [0, 2]
    scene.run()
    assert scene.order == [0, 1, 2, 3, 4]


def test_ten_thousand_immediate_releases_lose_no_permit_and_do_not_recurse():
    scene = Scene(count=2)
    scene.hold("first")
    scene.hold("second")
    refused = [scene.refuse(number) for number in range(10_000)]
    scene.end("first")
    scene.end("second")
    scene.run()
    assert all(each.called for each in refused)
    assert scene.semaphore.waiting == 0
    scene.order.clear()
    for name in "abc":
        scene.hold(name)
    assert scene.order == ["a", "b"]


def test_a_reactor_turn_resumes_a_bounded_number_of_waiters():
    scene = Scene()
    scene.hold("first")
    for number in range(3 * BURST):
        scene.refuse(number)
    scene.end("first")
    assert len(scene.order) == 1 + BURST
    scene.run()
    assert len(scene.order) == 1 + 3 * BURST


def test_a_newcomer_between_two_turns_waits_behind_the_others():
    scene = Scene()
    scene.hold("first")
    for number in range(BURST + 1):
        scene.refuse(number)
    scene.end("first")
    scene.hold("late")
    assert "late" not in scene.order
    scene.run()
    assert scene.order[-2:] == [BURST, "late"]


def test_a_cancelled_waiter_leaves_the_queue_only():
    scene = Scene()
    scene.hold("first")
    leaving = scene.hold("leaving", "x", "y")
    scene.hold("last", "x", "z")
    leaving.cancel()
    assert scene.semaphore.waiting == 1
    scene.run()
    assert scene.order == ["first", "last"]


def test_a_cancelled_holder_releases_its_permit():
    scene = Scene()
    holder = scene.hold("first")
    scene.hold("second")
    holder.cancel()
    assert list(scene.held) == ["second"]


def test_branches_are_served_round_robin_at_every_level():
    scene = Scene()
    scene.hold("first")
    for number in range(4):
        scene.hold(f"crowd{number}", "strangers", f"net{number % 2}", number)
    for number in range(3):
        scene.hold(f"one{number}", "strangers", "net9", "one")
    scene.hold("friend", "known", "home")
    scene.run()
    assert scene.order == ["first", "crowd0", "friend", "crowd1", "one0", "crowd2", "crowd3", "one1", "one2"]


def test_a_new_branch_is_served_before_the_branch_that_was_just_served():
    scene = Scene()
    scene.hold("first", "crowd")
    for number in range(3):
        scene.hold(f"crowd{number}", "crowd", number)
    scene.end("first")
    scene.hold("friend0", "friend")
    scene.end("crowd0")
    assert list(scene.held) == ["friend0"]
    scene.hold("friend1", "friend")
    scene.run()
    assert scene.order[-3:] == ["crowd1", "friend1", "crowd2"]


def test_a_full_queue_refuses_the_newest_of_the_longest_branch():
    scene = Scene(most_waiting=3)
    scene.hold("first")
    crowd = [scene.hold(f"crowd{number}", "crowd") for number in range(3)]
    friend = scene.hold("friend", "friend")
    assert [each.called for each in (*crowd, friend)] == [False, False, True, False]
    late = scene.hold("late", "crowd")
    assert late.called
    scene.run()
    assert scene.order == ["first", "crowd0", "friend", "crowd1"]


@pytest.mark.parametrize("seed", range(20))
def test_no_permit_is_lost_in_random_sequences(seed):
    chance = random.Random(seed)
    scene = Scene(count=3, most_waiting=12)
    asked = []
    for number in range(400):
        match chance.randrange(5):
            case 0 | 1:
                asked.append(scene.hold(number, chance.randrange(3), chance.randrange(3)))
            case 2:
                scene.refuse(number, chance.randrange(3), chance.randrange(3))
            case 3 if scene.held:
                scene.end(chance.choice(list(scene.held)))
            case _ if asked:
                chance.choice(asked).cancel()
        assert len(scene.held) <= 3
        if chance.random() < 0.3:
            scene.clock.advance(0)
    scene.run()
    assert scene.semaphore.waiting == 0
    for name in "abcd":
        scene.hold(name)
    assert sorted(scene.held) == ["a", "b", "c"]


def test_a_permit_is_taken_at_once_if_nobody_waits_for_it():
    scene = Scene(count=2)
    scene.hold("first")
    assert scene.semaphore.acquire_now()
    assert not scene.semaphore.acquire_now(), "there are two"
    scene.hold("second")
    scene.semaphore.release()
    assert scene.order == ["first", "second"]
    assert not scene.semaphore.acquire_now()
    scene.run()
    assert scene.semaphore.acquire_now()
