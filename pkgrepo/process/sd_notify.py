"""
Notifications to systemd (sd_notify(3)): datagrams to the socket in ``NOTIFY_SOCKET``.

``READY=1`` once the sockets are bound and the first check passed, ``STOPPING=1`` when a stop begins, and
``WATCHDOG=1`` at half the interval that the unit sets. The reactor sends it, so systemd restarts a hanging reactor.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from twisted.internet.task import LoopingCall
from twisted.logger import Logger


class Notifier:
    """
    Sends notifications to the service manager in ``environ``; without one the methods do nothing.

    ``clock`` times the watchdog.
    """

    log = Logger()

    def __init__(self, environ: Mapping[str, str], *, clock: Any) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._watchdog_s = _watchdog_s(environ)
        self._alive = LoopingCall(self.send, "WATCHDOG=1")
        self._alive.clock = clock

    def ready(self, status: str = "") -> None:
        """Report that the server answers; ``status`` is a line for ``systemctl status``. Starts the watchdog."""
        self.send("READY=1", *([f"STATUS={status}"] if status else []))
        if self._address is not None and self._watchdog_s and not self._alive.running:
            self._alive.start(self._watchdog_s / 2, now=False)

    def stopping(self) -> None:
        """Report that a stop has begun. The watchdog goes on, since transfers may take long."""
        self.send("STOPPING=1")

    def stopped(self) -> None:
        """Stop the watchdog."""
        if self._alive.running:
            self._alive.stop()

    def send(self, *assignments: str) -> None:
        """Send one datagram with these assignments; a failure is logged and otherwise ignored."""
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK) as line:
                line.sendto("\n".join(assignments).encode(), self._address)
        except OSError as error:
            self.log.warn("cannot notify the service manager: {error}", error=str(error))


def _address(name: str) -> bytes | None:
    """The address of the socket; ``@`` begins one in Linux's abstract name space."""
    if name.startswith("@"):
        return b"\0" + os.fsencode(name[1:])
    return os.fsencode(name) if name.startswith("/") else None


def _watchdog_s(environ: Mapping[str, str]) -> float:
    """The watchdog's interval in seconds; 0 if there is none for this process."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    pid = environ.get("WATCHDOG_PID", "")
    if not microseconds.isdigit() or (pid and pid != str(os.getpid())):
        return 0
    return int(microseconds) / 1_000_000
