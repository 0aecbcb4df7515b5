"""
Transfers of one file by several processes: the one that has the lease fetches it, and the others follow.

==============================  ======================================================================================
the leader                      its followers
==============================  ======================================================================================
receives a file                 send their readers what is written of it
records it                      find its row
fails                           fail with the same error
is killed, or stops             one of them gets the lease, takes over the upload with its bytes, and asks for the
                                rest; readers notice nothing if the upstream has ranges of the same file. If all was
                                verified and not recorded, it records a copy of what its readers have
hangs                           wait if their readers have bytes: it is killed by its master; else fetch the file after
                                ``SILENT_S``, each on its own
runs on another node            get no bytes before the file is recorded, and fetch it from its beginning if they must
==============================  ======================================================================================
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pkgrepo.interfaces import IGrowingFiles
from pkgrepo.proxy.leases import Leases

from .following import Following
from .leading import Leading, Led
from .notices import Alive, Ended, Growing, Left, Notice, Notices, Place, Verified, Wanted, decode, encode


class Sharing:
    """The transfers that this process leads or follows. ``receive`` gets the notices of all other processes."""

    def __init__(self, leases: Leases, notices: Notices, reactor: Any) -> None:
        self.leases = leases
        self._notices = notices
        self._reactor = reactor
        self._me = secrets.token_hex(8)
        self._led: dict[Place, Leading] = {}
        self._followed: dict[Place, Following] = {}

    @contextmanager
    def follow(
        self, place: Place, *, route: str, growing: IGrowingFiles | None, on_change: Callable[[], None]
    ) -> Iterator[Following]:
        """What another process transfers, within the block; see L{Following}."""
        following = self._followed[place] = Following(
            place,
            me=self._me,
            route=route,
            growing=growing,
            leases=self.leases,
            send=self._send,
            on_change=on_change,
            reactor=self._reactor,
        )
        try:
            yield following
        except BaseException:
            following.leave()
            raise
        finally:
            following.close()
            if self._followed.get(place) is following:
                del self._followed[place]

    def lead(self, place: Place, led: Led, *, exposes: bool) -> Leading:
        """Tell other processes about a transfer that this one has the lease of, until ``end``."""
        exposes = exposes and self._notices.has_near
        leading = self._led[place] = Leading(place, led, self._send, self._reactor, exposes=exposes)
        return leading

    def end(self, place: Place, leading: Leading, error: BaseException | None) -> None:
        """Release the lease, and tell the followers."""
        del self._led[place]
        self.leases.release(lease_of(place))
        leading.close(error)

    def receive(self, data: bytes) -> None:
        """Handle an encoded notice."""
        match notice := decode(data):
            case Wanted(place, follower):
                if place in self._led:
                    self._send(Alive(place))
                    self._led[place].add(follower)
            case Left(place, follower):
                if place in self._led:
                    self._led[place].remove(follower)
            case Alive() | Growing() | Verified() | Ended():
                following = self._followed.get(notice.place)
                if following is not None:
                    following.receive(notice)

    def _send(self, notice: Notice) -> None:
        if isinstance(notice, Growing):
            self._notices.send_near(encode(notice))
        else:
            self._notices.send(encode(notice))


def lease_of(place: Place) -> str:
    """The name of the lease of a transfer."""
    return f"file/{place[0]}/{place[1]}"
