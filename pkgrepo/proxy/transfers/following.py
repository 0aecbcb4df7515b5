"""A transfer of another process, as readers in this one see it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import BlobMissing, StorageFailed, UpstreamMismatch
from pkgrepo.interfaces import IGrowingFiles
from pkgrepo.proxy.leases import Leases

from .notices import Alive, Ended, Growing, Left, Notice, Place, Verified, Wanted, decode_error

FIRST_PAUSE_S: Final = 0.01  # before the second attempt to get the lease: most files are small
LONGEST_PAUSE_S: Final = 0.25  # before later ones; a leader that was killed is replaced within this time
SILENT_S: Final = 5.0  # without a notice of a leader, after which it is taken for paused, or cut off

log = Logger()


class Following:
    """
    Reads the file of the leader of ``place`` while it grows. ``close`` at the end.

    It has the attributes of a ``Receiver`` that readers need. ``on_change`` is called when they have changed;
    ``latest`` is the last notice of how far it is.
    """

    received = 0  # by this process

    def __init__(
        self,
        place: Place,
        *,
        me: str,
        route: str,
        growing: IGrowingFiles | None,
        leases: Leases,
        send: Callable[[Notice], None],
        on_change: Callable[[], None],
        reactor: Any,
    ) -> None:
        self.is_read = False
        self.latest: Growing | None = None
        self.verified: Verified | None = None
        self._place = place
        self._me = me
        self._route = route
        self._growing = growing
        self._leases = leases
        self._send = send
        self._on_change = on_change
        self._reactor = reactor
        self._descriptor = -1
        self._error: Exception | None = None
        self._pause: Deferred[None] | None = None
        self._heard_at = reactor.seconds()

    @property
    def size(self) -> int | None:
        """The size of the file in bytes; None if it is not known yet."""
        return None if self.latest is None else self.latest.size

    @property
    def readable(self) -> int:
        """How many bytes may be read before the file is verified."""
        return 0 if self.latest is None or self._descriptor < 0 else self.latest.readable

    def descriptor(self) -> int | None:
        """A new descriptor of the readable bytes, which the caller closes, or None."""
        return None if self._descriptor < 0 else os.dup(self._descriptor)

    async def acquire(self, lease: str) -> bool:
        """
        Wait for the lease of the transfer, while the leader has it.

        Returns False if the leader is silent while it has the lease, and no reader here has bytes of it.

        :raises PkgrepoError: what readers of the leader got
        """
        pause_s = FIRST_PAUSE_S
        while not await self._leases.acquire(lease):
            if self._reactor.seconds() - self._heard_at > SILENT_S and not self.is_read:
                return False
            self._send(Wanted(self._place, self._me))
            self._pause = Deferred()
            call = self._reactor.callLater(pause_s, self._wake)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            try:
                await self._pause
            finally:
                if call.active():
                    call.cancel()
            if self._error is not None:
                raise self._error
        return True

    def receive(self, notice: Alive | Growing | Verified | Ended) -> None:
        """Handle a notice of the leader."""
        self._heard_at = self._reactor.seconds()
        match notice:
            case Growing():
                self._grow(notice)
            case Verified():
                self._verify(notice)
            case Ended(_place, verified, error):
                if verified is not None:
                    self._verify(verified)
                self._error = None if error is None else decode_error(error)
                self._wake()

    def close(self) -> None:
        """End following; also twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def leave(self) -> None:
        """Tell the leader that there are no readers any more."""
        self._send(Left(self._place, self._me))

    def _wake(self) -> None:
        pause, self._pause = self._pause, None
        if pause is not None and not pause.called:
            pause.callback(None)

    def _grow(self, notice: Growing) -> None:
        latest = self.latest
        if latest is not None and latest.upload == notice.upload and notice.readable < latest.readable:
            return  # a new leader reads again what is there
        if latest is None or latest.upload != notice.upload:
            if self.is_read:
                self._error = UpstreamMismatch(self._route, "its file was begun again while it was read")
                self._wake()
                return
            self.close()
            self._open(notice)
        self.latest = notice
        self._on_change()

    def _verify(self, notice: Verified) -> None:
        if self.latest is None or self.latest.upload == notice.upload:
            self.verified = notice
            self._on_change()

    def _open(self, notice: Growing) -> None:
        if self._growing is not None:
            try:
                self._descriptor = self._growing.open_growing(notice.upload)
            except (BlobMissing, StorageFailed) as error:  # it ended meanwhile, or is not to be had: wait for its end
                log.debug("the file of another process cannot be followed: {error}", error=str(error))
