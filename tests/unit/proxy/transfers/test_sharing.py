"""The transfers that several processes lead and follow."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock

from pkgrepo.errors import UpstreamTimeout
from pkgrepo.proxy.transfers.notices import Growing, Left, Verified, Wanted, encode
from pkgrepo.proxy.transfers.sharing import PAUSE_S, Leading, Sharing, lease_of
from tests.support.led_transfers import LEASE, PLACE, Bus, Files, Leases, growing, verified


class Transfer:
    def __init__(self) -> None:
        self.readers = 0
        self.told: Growing | Verified | None = growing()

    def join(self) -> None:
        self.readers += 1

    def leave(self) -> None:
        self.readers -= 1

    def notice(self) -> Growing | Verified | None:
        return self.told

    async def expose(self) -> bool:
        return True


class Scene:
    """Two processes, of which the first one leads."""

    def __init__(self, folder: Any) -> None:
        self.clock, bus = Clock(), Bus()
        taken: dict[str, Leases] = {}
        self.one, self.other = (self._process(bus, taken) for _ in range(2))
        self.taken = taken
        taken[LEASE] = self.one.leases  # type: ignore[assignment]
        self.transfer = Transfer()
        self.leading: Leading = self.one.lead(PLACE, self.transfer, exposes=True)
        files: Any = Files(folder)
        files.add("one", b"hello")
        self.changes = 0
        self.followed = self.other.follow(PLACE, route="main", growing=files, on_change=self._change)

    def _process(self, bus: Bus, taken: dict[str, Leases]) -> Sharing:
        line = bus.join()
        sharing = Sharing(Leases(taken), line, self.clock)
        bus.subscribe(line, sharing.receive)
        return sharing

    def _change(self) -> None:
        self.changes += 1

    def tell(self) -> None:
        self.other._send(Wanted(PLACE, self.other._me))
        self.clock.pump([PAUSE_S] * 2)


@pytest.fixture
def scene(tmp_path: Any) -> Scene:
    return Scene(tmp_path)


def test_a_follower_reads_what_the_leader_has(scene: Scene) -> None:
    with scene.followed as following:
        scene.tell()
        assert (scene.transfer.readers, following.readable, scene.changes) == (1, 3, 1)
        scene.transfer.told = verified()
        scene.one.end(PLACE, scene.leading, None)
        assert following.verified == verified()
    assert (scene.taken, scene.transfer.readers) == ({}, 1)


def test_a_follower_whose_readers_leave_tells_it(scene: Scene) -> None:
    scene.followed.__enter__()
    scene.tell()
    assert scene.transfer.readers == 1
    assert not scene.followed.__exit__(CancelledError, CancelledError(), None)
    assert scene.transfer.readers == 0
    assert scene.other._followed == {}


def test_the_lease_is_free_when_the_follower_hears_of_the_end(scene: Scene) -> None:
    with scene.followed as following:
        scene.tell()
        free: list[bool] = []
        receive = following.receive
        following.receive = lambda notice: free.append(LEASE not in scene.taken) or receive(notice)  # type: ignore[method-assign, func-returns-value]
        scene.one.end(PLACE, scene.leading, UpstreamTimeout("main", "it is slow"))
        assert free == [True]
        assert isinstance(following._error, UpstreamTimeout)


def test_a_later_follower_of_the_same_file_stays(scene: Scene) -> None:
    """An earlier one of this process may end after the later one has begun."""
    with scene.followed:
        later = scene.other.follow(PLACE, route="main", growing=None, on_change=lambda: None)
        following = later.__enter__()
    assert scene.other._followed == {PLACE: following}
    later.__exit__(None, None, None)
    assert scene.other._followed == {}


def test_notices_about_other_files_are_ignored(scene: Scene) -> None:
    place = (7, "other")
    for notice in (Wanted(place, "x"), Left(place, "x"), Growing(place, "u", 1, 5, None, True, {}, {})):
        scene.one.receive(encode(notice))
    assert scene.transfer.readers == 0


def test_leases_have_the_names_of_places() -> None:
    assert lease_of(PLACE) == LEASE
