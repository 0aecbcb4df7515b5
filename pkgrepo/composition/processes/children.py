"""Commands of this program in processes of their own, with a low priority."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError

MOST_OUTPUT: Final = 1024 * 1024  # bytes of what a command prints, and of its messages
PROGRAM: Final = "import os; os.nice(5); from pkgrepo.cli import main; main()"


class Child(ProcessProtocol):
    """One run of the command line; cancelling it kills the process."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.messages = bytearray()
        self.ended: Deferred[None] = Deferred(self._cancel)

    @classmethod
    async def run(
        cls, reactor: Any, arguments: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, str]:
        """
        Run a command. ``variables`` are of its environment, beside those of this process that are no settings.

        Returns the exit code (or minus the signal), what it printed, and the last line of its messages.

        :raises PkgrepoError: it cannot run
        """
        child = cls()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PKGREPO_")}
        command = [sys.executable, "-P", "-c", PROGRAM, *arguments]
        try:
            reactor.spawnProcess(child, sys.executable, command, env={**environ, **(variables or {})})
        except OSError as error:
            raise PkgrepoError(f"a process cannot be started: {error.strerror}") from error
        await child.ended
        lines = child.messages.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1].removeprefix("pkgrepo: ") if lines else f"its process ended with {child.code}"
        return child.code, bytes(child.output), reason

    def outReceived(self, data: bytes) -> None:
        """Keep what it prints."""
        self.output += data[: MOST_OUTPUT - len(self.output)]

    def errReceived(self, data: bytes) -> None:
        """Keep the last of its messages."""
        self.messages = (self.messages + data)[-MOST_OUTPUT:]

    def processEnded(self, reason: Failure) -> None:
        """Note how it ended."""
        status: Any = reason.value
        self.code = -status.signal if status.signal else status.exitCode or 0
        if not self.ended.called:
            self.ended.callback(None)

    def _cancel(self, ended: Deferred[None]) -> None:
        transport: IProcessTransport | None = self.transport
        if transport is not None:
            transport.signalProcess("KILL")
        ended.errback(CancelledError())
