"""Runs a server in a worker process, a fork of its master, from its start to its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger, globalLogPublisher
from twisted.python.failure import Failure
from twisted.python.usage import UsageError

from pkgrepo.composition.core import make_formats
from pkgrepo.composition.databases import reading
from pkgrepo.config import Config
from pkgrepo.errors import PkgrepoError
from pkgrepo.http.tls import BadCertificate
from pkgrepo.process.log_output import make_observer
from pkgrepo.process.resources import collect_no_garbage, settle
from pkgrepo.process.workers.child import LOG
from pkgrepo.process.workers.membership import Membership
from pkgrepo.service import Server
from pkgrepo.storage.catalog.server.repositories import all_repositories

log = Logger()


class _Worker:
    """One run of the reactor: starts the server, and stops it once."""

    def __init__(self, reactor: Any, sockets: int) -> None:
        self._reactor = reactor
        self._stopping = False
        self.failed = False
        self.membership = Membership(reactor, sockets=sockets, abandoned=self.stop)

    def stop(self) -> None:
        """Stop the server and the reactor; later calls do nothing."""
        if not self._stopping:
            self._stopping = True
            with suppress(ReactorNotRunning):  # a signal has stopped it before the server was started
                self._reactor.stop()

    def start(self, config: Config) -> None:
        """Start the server, in the running reactor."""
        # Twisted's handler would complain about a second signal: a service manager sends one to each process.
        signal.signal(signal.SIGTERM, lambda *_: self._reactor.callFromThread(self.stop))
        if self._stopping:
            return
        try:
            server = Server(config, self._reactor, self.membership)
        except BadCertificate as error:
            self.refuse(f"TLS cannot be set up: {error}")
            return
        except PkgrepoError as error:  # a library for the database is not installed
            self.refuse(str(error))
            return
        server.when_ready().addCallbacks(lambda _: settle(), self._fail)
        self._reactor.addSystemEventTrigger("before", "shutdown", server.stopService)
        server.startService()

    def refuse(self, reason: str) -> None:
        """Tell the master why this process cannot serve, and end."""
        self.membership.report_failure(reason)
        self._reactor.addSystemEventTrigger("before", "shutdown", self._leave)
        self._fail()

    def report(self, failure: Failure) -> None:
        """Report an error of ours."""
        log.failure("the worker could not start", failure=failure)
        self.refuse("an error, which the log has")

    def _leave(self) -> Any:
        return Deferred.fromCoroutine(self.membership.leave(b""))

    def _fail(self, _: Failure | None = None) -> None:
        self.failed = True
        self.stop()


def preload(config: Config) -> None:
    """
    Import what this configuration needs beside the server, in the master: workers share it.

    A library that is not installed is found missing by the workers, which say so, as they do of a catalog that cannot
    be read.
    """
    modules = []
    if config.database_path is None:
        modules.append("pkgrepo.storage.catalog.postgresql")
    if any(each.type == "S3" for each in config.bootstrap.storages):
        modules += ["botocore.auth", "botocore.session"]
    with suppress(ImportError):
        for each in modules:
            import_module(each)
    used = _used_formats(config)
    for format_ in make_formats(config).values():
        if not used.isdisjoint((format_.name, *format_.aliases)):
            format_.load()


def _used_formats(config: Config) -> set[str]:
    """The names, or aliases, of the formats of repositories that there are, or that the start makes."""
    used = {each.format for each in config.bootstrap.repositories}
    try:
        with reading(config) as catalog:
            if catalog is not None:
                used |= {each.format for each in all_repositories(catalog)}
    except Exception as error:  # noqa: BLE001 - also of the rows of a later release
        log.debug("the catalog cannot be read before the start of workers: {error}", error=str(error))
    return used


def run(read: Callable[[], Config], sockets: int) -> int:
    """
    Serve until the master stops this process, or ends. Returns the exit status.

    ``read`` reads the configuration, or raises UsageError with its problems. ``sockets`` is the number of the listening
    sockets; what the descriptors are is told in L{pkgrepo.process.workers.child}.
    """
    # Those of a terminal go to all processes of its group; only the master heeds them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    reactor: Any = _reactor
    os.set_inheritable(LOG, False)
    worker = _Worker(reactor, sockets)
    collect_no_garbage()
    try:
        config = read()
    except UsageError as error:
        reactor.callWhenRunning(worker.refuse, str(error))
    else:
        file = open(LOG, "w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - open to the end
        observer = make_observer(file, style=config.log.format, level=config.log.level, one_of_several=True)
        globalLogPublisher.addObserver(observer)
        worker.membership.begun.addCallback(lambda _: worker.start(config)).addErrback(worker.report)
    reactor.run()
    return int(worker.failed)
