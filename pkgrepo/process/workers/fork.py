"""
A worker as a fork of its master, which has imported the server.

Forks share the memory of the program as long as nobody writes to it, and need no second of processor time to import it.
What of the master a fork has to leave behind:

===============  =====================================================================================================
of the master    in the fork
===============  =====================================================================================================
descriptors      Twisted closes all but those of the worker. The objects that own them stay referenced to the end, which
                 is ``os._exit``: they would close descriptors of the worker that have the same numbers
signal handlers  the default ones until the worker sets its own; a signal that arrives before them waits. What Python
                 ignores stays ignored: a client that closes its connection early sends SIGPIPE
reactor          the same object, which modules hold, initialised again: it has a poll object of its own
log              no observers; standard output is that of the process
other workers    they are not waited for
===============  =====================================================================================================

The master runs no threads, which a fork would not have.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

from twisted.internet import process
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import globalLogPublisher

_OF_MASTER: Final = ("NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")  # beginnings of variables
_SIGNALS: Final = (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_NAME: Final = Path("/proc/self/comm")
_kept: list[object] = []


class Fork(process.Process):
    """
    A process of Twisted that calls a function instead of another program; its result is the exit status.

    ``descriptors`` are as C{childFDs} of C{spawnProcess}.
    """

    def __init__(
        self,
        reactor: Any,
        protocol: ProcessProtocol,
        run: Callable[[], int],
        descriptors: Mapping[int, int | str],
    ) -> None:
        self._run = run
        self._reactor_of_master = reactor
        _flush(sys.__stdout__, sys.__stderr__)  # what is left in a buffer would be written twice
        untyped: Any = super()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the master's handlers would lose a stop of the fork
        try:
            untyped.__init__(reactor, "worker", [], {}, None, protocol, childFDs=dict(descriptors))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _trySpawnInsteadOfFork(self, *_: object) -> bool:
        return False

    def _resetSignalDisposition(self) -> None:
        """Leave ignored what Python ignores: no other program begins, and SIGPIPE would end the process."""

    def _execChild(self, *_: object) -> NoReturn:
        status = 1
        try:
            _leave_master(self._reactor_of_master)
            status = self._run()
        except BaseException:  # noqa: BLE001 - nothing may return to the master's stack
            traceback.print_exc()
        finally:
            _flush(sys.stdout, sys.stderr)
            os._exit(status)


def _leave_master(reactor: Any) -> None:
    signal.set_wakeup_fd(-1)
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for name in [each for each in os.environ if each.startswith(_OF_MASTER)]:
        del os.environ[name]
    with suppress(OSError):  # which ps and top show; a system may have none
        _NAME.write_text("pkgrepo-worker")
    process.reapProcessHandlers.clear()
    for observer in list(globalLogPublisher._observers):  # noqa: SLF001 - Twisted has no way to begin anew
        globalLogPublisher.removeObserver(observer)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # twistd has them logged
    _kept.append(dict(vars(reactor)))
    if hasattr(reactor, "_asyncioEventloop"):
        asyncio.set_event_loop(asyncio.new_event_loop())
    vars(reactor).clear()
    reactor.__init__()
    gc.enable()  # Twisted disables it before a fork


def _flush(*streams: TextIO | None) -> None:
    for each in streams:
        with suppress(OSError, ValueError):  # the disk is full, nobody reads the pipe, or it was closed
            if each is not None:
                each.flush()
