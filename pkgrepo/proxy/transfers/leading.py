"""A transfer of this process, as it is told to the processes that follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from pkgrepo.errors import PkgrepoError

from .notices import Ended, Growing, Notice, Place, Verified, encode_error

PAUSE_S: Final = 0.01  # seconds between two notices of one transfer

log = Logger()


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
                Deferred.fromCoroutine(self._expose()).addErrback(_report)
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


def _report(failure: Any) -> None:
    log.failure("the file of a transfer could not be shown to other processes", failure)
