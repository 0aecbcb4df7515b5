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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

from twisted.internet.interfaces import IDelayedCall

from pkgrepo.concurrency.services import spawn
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import IGrowingFiles
from pkgrepo.proxy.leases import Leases
from pkgrepo.proxy.transfers.following import Following
from pkgrepo.proxy.transfers.notices import (
    Alive,
    Ended,
    Growing,
    Left,
    Notice,
    Notices,
    Place,
    Verified,
    Wanted,
    decode,
    encode,
    encode_error,
)

PAUSE_S: Final = 0.01  # seconds between two notices of one transfer


class Led(Protocol):
    """The transfer."""

    def join(self) -> None:
        """Count a process with readers."""

    def leave(self) -> None:
        """Count a process less."""

    def notice(self) -> Growing | Verified | None:
        """What may be read of it; None: nothing yet."""

    def expose(self) -> Awaitable[bool]:
        """Let other processes open its file. Returns whether they can; called once something is readable."""


class Leading:
    """
    Sends notices about a transfer for as long as it has followers. ``close`` at its end.

    ``exposes``: other processes can read what grows.
    """

    def __init__(self, place: Place, led: Led, send: Callable[[Notice], None], reactor: Any, *, exposes: bool) -> None:
        self._place = place
        self._led = led
        self._send = send
        self._reactor = reactor
        self._followers: set[str] = set()
        self._pause: IDelayedCall | None = None
        self._exposed = None if exposes else False  # None: not yet
        self._exposing = False
        self._closed = False

    @property
    def followed(self) -> bool:
        """Whether other processes have readers of it."""
        return bool(self._followers)

    def add(self, follower: str) -> None:
        """A process has readers; it is told what there is."""
        if follower not in self._followers:
            self._followers.add(follower)
            self._led.join()
        self.progress()

    def remove(self, follower: str) -> None:
        """A process has no readers any more."""
        if follower in self._followers:
            self._followers.remove(follower)
            self._led.leave()

    def progress(self) -> None:
        """Tell the followers soon that the transfer has got further."""
        if self._followers and self._pause is None and not self._closed:
            self._pause = self._reactor.callLater(PAUSE_S, self._tell)

    def close(self, error: BaseException | None) -> None:
        """Tell the followers of its end."""
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._followers:
            notice = self._led.notice() if error is None else None
            verified = notice if isinstance(notice, Verified) else None
            self._send(Ended(self._place, verified, None if error is None else encode_error(error)))

    def _tell(self) -> None:
        self._pause = None
        notice = self._led.notice()
        if notice is None:
            return
        if self._exposed is None and isinstance(notice, Growing):
            if not self._exposing:
                self._exposing = True
                spawn(self._expose(), "the file of a transfer could not be shown to other processes")
        elif self._exposed or isinstance(notice, Verified):
            self._send(notice)

    async def _expose(self) -> None:
        try:
            self._exposed = await self._led.expose()
        except PkgrepoError:
            self._exposed = False  # the upload has failed, too
        finally:
            self._exposing = False
        self.progress()


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
