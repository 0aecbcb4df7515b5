"""
A program that embeds a normaliser, and does not let Twisted handle signals.

``main`` normalises a document with a function of ``tests.support.normalisers``. It prints the process id of the worker
as soon as the file ``began`` exists, and at the end the number of entries in the parts file.
"""

from __future__ import annotations

import os
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred
from twisted.internet.task import LoopingCall

from pkgrepo.proxy.parts.normalising import SMALL
from tests.support.parts import NormaliserCase, packument


def main(folder: str, function: str) -> None:
    """Run until the document is normalised."""
    case = NormaliserCase(Path(folder) / "store")
    began = Path(folder) / "began"

    async def run() -> None:
        await case.start()
        outcome = await case.run(packument(3, pad=SMALL), function, name=str(began))
        os.write(1, b"%d\n" % len(case.entries(outcome)))
        await case.stop()
        reactor.stop()

    def report() -> None:
        if began.exists():
            os.write(1, b"%d\n" % case.supervisor.pids[0])
            watch.stop()

    watch = LoopingCall(report)
    watch.start(0.01)
    reactor.callWhenRunning(lambda: ensureDeferred(run()))
    reactor.run(installSignalHandlers=False)
