"""What a process tells others of its transfer, and when."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import NotFound, StorageFailed
from pkgrepo.proxy.transfers.notices import Ended, Growing, Notice, Verified
from pkgrepo.proxy.transfers.sharing import PAUSE_S, Leading
from tests.support.led_transfers import PLACE, growing, verified


class Transfer:
    """A transfer that the test moves. ``exposing`` fires when others can open its file."""

    def __init__(self) -> None:
        self.readers = 0
        self.told: Growing | Verified | None = None
        self.exposing: Deferred[bool] = Deferred()
        self.exposed = 0

    def join(self) -> None:
        self.readers += 1

    def leave(self) -> None:
        self.readers -= 1

    def notice(self) -> Growing | Verified | None:
        return self.told

    def expose(self) -> Deferred[bool]:
        self.exposed += 1
        return self.exposing


class Scene:
    def __init__(self, *, exposes: bool = True) -> None:
        self.clock = Clock()
        self.transfer = Transfer()
        self.sent: list[Notice] = []
        self.leading = Leading(PLACE, self.transfer, self.sent.append, self.clock, exposes=exposes)

    def grow(self, told: Growing | Verified) -> None:
        self.transfer.told = told
        self.leading.progress()
        self.clock.advance(PAUSE_S)


def test_without_followers_nothing_is_sent() -> None:
    scene = Scene()
    scene.grow(growing(3))
    scene.leading.close(None)
    assert (scene.sent, scene.leading.followed, scene.transfer.exposed) == ([], False, 0)
    assert scene.clock.getDelayedCalls() == []


def test_a_follower_counts_as_one_reader_however_often_it_asks() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.leading.add("a")
    scene.leading.add("b")
    assert (scene.transfer.readers, scene.leading.followed) == (2, True)
    for name in ("a", "a", "c", "b"):
        scene.leading.remove(name)
    assert (scene.transfer.readers, scene.leading.followed) == (0, False)


def test_the_file_is_exposed_once_before_its_bytes_are_told() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.grow(growing(2))
    scene.grow(growing(3))
    assert (scene.transfer.exposed, scene.sent) == (1, [])
    scene.transfer.exposing.callback(True)
    scene.clock.advance(PAUSE_S)
    assert scene.sent == [growing(3)]
    scene.grow(growing(4))
    assert (scene.transfer.exposed, scene.sent) == (1, [growing(3), growing(4)])


def test_much_progress_is_one_notice() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.grow(growing(1))
    scene.transfer.exposing.callback(True)
    for readable in range(2, 5):
        scene.transfer.told = growing(readable)
        scene.leading.progress()
    scene.clock.advance(PAUSE_S)
    assert scene.sent == [growing(4)]


@pytest.mark.parametrize("outcome", [False, StorageFailed("main")], ids=["ends", "fails"])
def test_of_a_file_that_cannot_be_exposed_only_the_verified_whole_is_told(outcome: bool | Exception) -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.grow(growing(2))
    if isinstance(outcome, Exception):
        scene.transfer.exposing.errback(outcome)
    else:
        scene.transfer.exposing.callback(outcome)
    scene.grow(growing(4))
    assert scene.sent == []
    scene.grow(verified())
    assert scene.sent == [verified()]


def test_a_storage_without_files_of_others_exposes_nothing() -> None:
    scene = Scene(exposes=False)
    scene.leading.add("a")
    scene.grow(growing(2))
    scene.grow(verified())
    assert (scene.transfer.exposed, scene.sent) == (0, [verified()])


def test_the_end_says_what_was_verified() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.transfer.told = verified()
    scene.leading.close(None)
    assert scene.sent == [Ended(PLACE, verified(), None)]
    assert scene.clock.getDelayedCalls() == []
    scene.leading.progress()
    assert scene.clock.getDelayedCalls() == []


def test_a_failure_is_told_in_place_of_what_there_is() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.transfer.told = verified()
    scene.leading.close(NotFound("file", "x"))
    assert scene.sent == [Ended(PLACE, None, ("NotFound", ["file", "x"]))]


def test_a_transfer_that_was_given_up_ends_without_an_error() -> None:
    scene = Scene()
    scene.leading.add("a")
    scene.leading.close(KeyboardInterrupt())
    assert scene.sent == [Ended(PLACE, None, None)]
