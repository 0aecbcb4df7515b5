"""The whole server inside the test's own process, and the check that nothing of it is left afterwards."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import LogEvent, globalLogPublisher

from pkgrepo.config import Config, read_config

reactor: Any = _reactor
PASSWORD = "correct horse battery"
TURNS = 100  # of the reactor in which what was closed is forgotten; a call that waits for its time waits longer


def server_config(folder: Path, **overrides: object) -> Config:
    """A configuration on a free port with its data below ``folder``; ``a__b`` overrides the key ``a.b``."""
    values: dict[str, object] = {
        "data.dir": str(folder / "data"),
        "server.listen": ["tcp:0:interface=127.0.0.1"],
        "server.shutdown_grace": 5,
        "bootstrap.admin.password": PASSWORD,
        "log.access": False,
    }
    values |= {name.replace("__", "."): value for name, value in overrides.items()}
    return read_config(overrides=values, origin="the test")


class RunningServer:
    """A started service: ``url`` is its address without the last slash, ``admin`` are the first admin's credentials."""

    def __init__(self, config: Config) -> None:
        from pkgrepo.service import make_service  # the whole program: not for those who only collect tests

        self.config = config
        self.service: Any = make_service(config, reactor)
        self.admin = (config.bootstrap.admin.user, PASSWORD)
        self.url = ""

    async def start(self) -> None:
        ready = self.service.when_ready()
        self.service.startService()
        self.url = (await ready)[0].rstrip("/")

    async def stop(self) -> None:
        await maybeDeferred(self.service.stopService)


async def turn() -> None:
    """Let the reactor go round once."""
    fired: Deferred[None] = Deferred()
    reactor.callLater(0, fired.callback, None)
    await fired


async def until(true: Callable[[], Any]) -> None:
    """Let the reactor go round until something is so; the test's own time limit ends a vain wait."""
    while not true():
        await turn()


@contextmanager
def no_failures() -> Iterator[None]:
    """Fail when anything is logged with a failure inside, a Deferred's error that nobody took included."""
    failures: list[str] = []

    def observe(event: LogEvent) -> None:
        if "log_failure" in event:
            failures.append(event["log_failure"].getTraceback())

    gc.collect()  # what earlier tests left is theirs
    globalLogPublisher.addObserver(observe)
    try:
        yield
        gc.collect()
    finally:
        globalLogPublisher.removeObserver(observe)
    assert not failures, "logged failures:\n" + "\n".join(failures)


async def assert_reactor_rests(before: set[object]) -> None:
    """No call is waiting and nothing is watched that was not there before."""
    for _ in range(TURNS):
        if not watched() - before:
            break
        await turn()
    left = [str(each) for each in watched() - before]
    assert not left, "left in the reactor: " + ", ".join(left)


def watched() -> set[object]:
    """What keeps the reactor busy."""
    return {*reactor.getDelayedCalls(), *reactor.getReaders(), *reactor.getWriters()}
