"""What a process knows of the transfer of another one, from its notices and its lease."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import NotFound, UpstreamMismatch
from pkgrepo.proxy.transfers.following import LONGEST_PAUSE_S, SILENT_S, Following
from pkgrepo.proxy.transfers.notices import Alive, Ended, Left, Notice, Wanted, encode_error
from tests.support.led_transfers import LEASE, PLACE, Files, Leases, growing, verified


class Scene:
    """A follower of a leader that the test plays. ``sent`` are its notices, ``changes`` counts the calls."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.sent: list[Notice] = []
        self.changes = 0
        self.taken: dict[str, Leases] = {}
        self.leader = Leases(self.taken)
        self.taken[LEASE] = self.leader
        self.files = Files(folder)
        self.files.add("one", b"hello")
        untyped: Any = self.files
        self.following = Following(
            PLACE,
            me="me",
            route="main",
            growing=untyped,
            leases=Leases(self.taken),
            send=self.sent.append,
            on_change=self._change,
            reactor=self.clock,
        )

    def wait(self) -> Deferred[bool]:
        return Deferred.fromCoroutine(self.following.acquire(LEASE))

    def _change(self) -> None:
        self.changes += 1


@pytest.fixture
def scene(tmp_path: Path) -> Any:
    made = Scene(tmp_path)
    yield made
    made.following.close()


def read(descriptor: int | None) -> bytes:
    assert descriptor is not None
    try:
        return os.pread(descriptor, 100, 0)
    finally:
        os.close(descriptor)


def test_it_has_nothing_before_the_first_notice(scene: Scene) -> None:
    following = scene.following
    assert (following.size, following.readable, following.descriptor()) == (None, 0, None)


def test_it_reads_the_leaders_file_as_far_as_it_was_told(scene: Scene) -> None:
    scene.following.receive(growing(2))
    assert (scene.following.size, scene.following.readable, scene.changes) == (5, 2, 1)
    scene.following.receive(growing(4))
    assert (scene.following.readable, scene.changes) == (4, 2)
    assert read(scene.following.descriptor()) == b"hello"


def test_an_older_notice_changes_nothing(scene: Scene) -> None:
    scene.following.receive(growing(4))
    scene.following.receive(growing(2))
    assert (scene.following.readable, scene.changes) == (4, 1)


def test_a_file_that_cannot_be_opened_is_not_readable(scene: Scene) -> None:
    scene.following.receive(growing(4, upload="gone"))
    assert (scene.following.size, scene.following.readable, scene.following.descriptor()) == (5, 0, None)


def test_another_upload_replaces_one_that_nobody_reads(scene: Scene) -> None:
    scene.following.receive(growing(4))
    scene.files.add("two", b"world")
    scene.following.receive(growing(1, upload="two"))
    assert scene.following.readable == 1
    assert read(scene.following.descriptor()) == b"world"


def test_another_upload_fails_the_readers_of_the_one_before(scene: Scene) -> None:
    waiting = scene.wait()
    scene.following.receive(growing(4))
    scene.following.is_read = True
    scene.files.add("two", b"world")
    scene.following.receive(growing(1, upload="two"))
    assert isinstance(waiting.result.value, UpstreamMismatch)  # type: ignore[union-attr]
    waiting.addErrback(lambda _: None)


def test_a_verified_file_is_that_of_the_upload_that_it_reads(scene: Scene) -> None:
    scene.following.receive(growing(4))
    scene.following.receive(verified("two"))
    assert (scene.following.verified, scene.changes) == (None, 1)
    scene.following.receive(verified())
    assert (scene.following.verified, scene.changes) == (verified(), 2)


def test_while_the_lease_is_taken_it_asks_ever_less_often(scene: Scene) -> None:
    waiting = scene.wait()
    assert scene.sent == [Wanted(PLACE, "me")]
    scene.clock.pump([0.01] * 100)
    first = len(scene.sent)
    assert 4 < first < 15
    scene.clock.pump([LONGEST_PAUSE_S] * 4)
    assert len(scene.sent) == first + 4
    assert not waiting.called
    scene.leader.release(LEASE)
    scene.clock.advance(LONGEST_PAUSE_S)
    assert waiting.called
    assert scene.clock.getDelayedCalls() == []


def test_the_end_of_the_leader_is_noticed_at_once(scene: Scene) -> None:
    waiting = scene.wait()
    scene.leader.release(LEASE)
    scene.following.receive(Ended(PLACE, verified(), None))
    assert waiting.called
    assert scene.following.verified == verified()
    assert scene.clock.getDelayedCalls() == []


def test_the_leaders_error_is_that_of_the_follower(scene: Scene) -> None:
    waiting = scene.wait()
    scene.leader.release(LEASE)
    scene.following.receive(Ended(PLACE, None, encode_error(NotFound("file", "a/b.tgz"))))
    assert isinstance(waiting.result.value, NotFound)  # type: ignore[union-attr]
    waiting.addErrback(lambda _: None)
    assert LEASE not in scene.taken


def test_an_error_of_a_newer_release_makes_it_fetch_the_file(scene: Scene) -> None:
    waiting = scene.wait()
    scene.leader.release(LEASE)
    scene.following.receive(Ended(PLACE, None, ("Newer", [])))
    assert waiting.called
    assert waiting.result is True
    assert LEASE in scene.taken


def test_it_does_not_wait_for_a_leader_that_is_silent(scene: Scene) -> None:
    waiting = scene.wait()
    for _ in range(2):
        scene.clock.pump([LONGEST_PAUSE_S] * int(SILENT_S / LONGEST_PAUSE_S))
        assert not waiting.called
        scene.following.receive(Alive(PLACE))
    scene.clock.pump([LONGEST_PAUSE_S] * (int(SILENT_S / LONGEST_PAUSE_S) + 4))
    assert waiting.result is False


def test_it_waits_for_a_silent_leader_whose_bytes_were_read(scene: Scene) -> None:
    waiting = scene.wait()
    scene.following.receive(growing(2))
    scene.following.is_read = True
    scene.clock.pump([LONGEST_PAUSE_S] * (2 * int(SILENT_S / LONGEST_PAUSE_S)))
    assert not waiting.called
    waiting.addErrback(lambda _: None)
    waiting.cancel()


def test_a_reader_that_leaves_ends_the_wait(scene: Scene) -> None:
    waiting = scene.wait()
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    scene.following.leave()
    assert scene.sent[-1] == Left(PLACE, "me")
    assert scene.clock.getDelayedCalls() == []
    scene.following.receive(Ended(PLACE, None, None))


def test_closing_twice_is_fine(scene: Scene) -> None:
    scene.following.receive(growing(4))
    mine = scene.following.descriptor()
    scene.following.close()
    scene.following.close()
    assert scene.following.descriptor() is None
    assert read(mine) == b"hello"
