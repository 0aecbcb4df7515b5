"""Runs a whole server in the test process, and checks that it leaves nothing in the reactor."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import deferLater
from twisted.logger import LogEvent, globalLogPublisher

from pkgrepo.config import Config, read_config
from tests.support.quick_starts import quicken

reactor: Any = _reactor
PASSWORD = "correct horse battery"
EAGER, PAUSE_S = 50, 0.002
TURNS = 100  # reactor iterations in which closed sockets disappear; far too few for a delayed call to run


def server_config(folder: Path, **overrides: object) -> Config:
    """Return a configuration with a free port and its data below ``folder``; ``a__b`` overrides the key ``a.b``."""
    values: dict[str, object] = {
        "data.dir": str(folder / "data"),
        "server.listen": ["tcp:0:interface=127.0.0.1"],
        "server.shutdown_grace": 5,
        "bootstrap.admin.password": PASSWORD,
        "log.access": False,
        "proxy.store_delay": 0,
    }
    values |= {name.replace("__", "."): value for name, value in overrides.items()}
    return read_config(overrides=values, origin="the test")


class RunningServer:
    """A server: ``url`` is its address without the last slash, ``admin`` has the first admin's credentials."""

    def __init__(self, config: Config) -> None:
        from pkgrepo.service import make_service  # imports the whole program, which collecting tests does not need

        quicken()
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
    """Wait for one reactor iteration."""
    fired: Deferred[None] = Deferred()
    reactor.callLater(0, fired.callback, None)
    await fired


class Turns:
    """
    Waits for one reactor iteration, and when it was often called for a moment.

    Most conditions hold after a few iterations. Others wait for threads or for a time, which get the processor then.
    """

    def __init__(self) -> None:
        self._left = EAGER

    async def __call__(self) -> None:
        self._left -= 1
        await (turn() if self._left > 0 else deferLater(reactor, PAUSE_S))


async def until(true: Callable[[], Any]) -> None:
    """Wait, some reactor iterations and then moments, until a condition holds; the test's time limit ends the wait."""
    turns = Turns()
    while not true():
        await turns()


async def value_of(catalog: Any, sql: str, *parameters: Any) -> Any:
    """Return the first value of a row of the catalog, which there has to be."""
    return (await catalog.look(lambda reader: reader.one(sql, parameters)))[0]


async def until_value(expected: Any, catalog: Any, sql: str, *parameters: Any) -> None:
    """Wait until a row of the catalog has this as its first value; the test's time limit ends the wait."""
    turns = Turns()
    while await value_of(catalog, sql, *parameters) != expected:
        await turns()


class Provoked(Exception):
    """An unexpected fault that a test causes, and that may be logged."""


@contextmanager
def no_failures() -> Iterator[None]:
    """Fail if a failure is logged that was not L{Provoked}, including unhandled errors in Deferreds."""
    failures: list[str] = []

    def observe(event: LogEvent) -> None:
        if "log_failure" in event and not event["log_failure"].check(Provoked):
            failures.append(event["log_failure"].getTraceback())

    gc.collect()  # logs unhandled errors of earlier tests before observing
    globalLogPublisher.addObserver(observe)
    try:
        yield
        gc.collect()
    finally:
        globalLogPublisher.removeObserver(observe)
    assert not failures, "logged failures:\n" + "\n".join(failures)


async def assert_reactor_rests(before: set[object]) -> None:
    """Check that the reactor has no delayed call, reader or writer that is not in ``before``."""
    for _ in range(TURNS):
        if not watched() - before:
            break
        await turn()
    left = [str(each) for each in watched() - before]
    assert not left, "left in the reactor: " + ", ".join(left)


def watched() -> set[object]:
    """Return the reactor's delayed calls, readers and writers."""
    return {*reactor.getDelayedCalls(), *reactor.getReaders(), *reactor.getWriters()}
