"""
The composition root: the one place that names concrete classes and puts them together.

The service starts in this order and stops in the reverse: threads, catalog, first-start objects, what serves, and at
last the ports. Nobody is answered before everything below stands, and nothing below goes away while somebody is still
being answered.
"""

from __future__ import annotations

import os
from typing import Any

from twisted.application.service import IService, MultiService
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.config import Config
from pkgrepo.process.sd_notify import Notifier
from pkgrepo.startup.announcements import (
    announce_addresses,
    announce_failure,
    announce_password,
    describe_address,
    find_console,
    is_expected,
    reason_of,
)

from .assembly import Assembly

log = Logger()

BACKLOG = 1024  # connections; with Twisted's 50, clients that connect anew for each request saw time-outs


class Server(MultiService):
    """
    The whole server, to be started by twistd or as part of another daemon.

    ``addresses`` are those of the listening ports, as one would type them, once it answers.
    """

    def __init__(self, config: Config, reactor: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.setName("pkgrepo")  # type: ignore[no-untyped-call]
        self._waiting: list[Deferred[list[str]]] = []
        self.addresses: list[str] = []
        self.assembly = Assembly(config, reactor)
        self._config = config
        self._reactor = reactor
        self._listening: list[Deferred[Any]] = []
        self._ports: list[Any] = []
        self._notifier = Notifier(os.environ, clock=reactor)
        self._starting: Deferred[None] | None = None

    def when_ready(self) -> Deferred[list[str]]:
        """
        The addresses, when the server answers; fails with what prevented it.

        To be asked for before the start. A server whose start nobody watches stops the reactor when it fails, since
        a daemon that does not answer must not look alive.
        """
        waiter: Deferred[list[str]] = Deferred()
        self._waiting.append(waiter)
        return waiter

    def privilegedStartService(self) -> None:
        """Bind the ports, while twistd still may; connections wait in them until the server stands."""
        super().privilegedStartService()  # type: ignore[no-untyped-call]
        self._bind()

    def startService(self) -> None:
        """Begin to start; see ``when_ready``."""
        super().startService()  # type: ignore[no-untyped-call]
        self._bind()
        self._starting = Deferred.fromCoroutine(self._start()).addErrback(self._failed)

    def stopService(self) -> Deferred[None]:
        """Stop listening, let transfers end, and put everything away."""
        super().stopService()  # type: ignore[no-untyped-call]
        return Deferred.fromCoroutine(self._stop())

    def reload(self) -> None:
        """Take up what may change while the server runs; nobody is interrupted."""
        log.info("reloading")
        self.assembly.reload()

    def _bind(self) -> None:
        if self._listening:
            return
        for description in self._config.server.listen:
            endpoint = serverFromString(self._reactor, with_backlog(description))
            listening = endpoint.listen(self.assembly.factory)
            self._listening.append(listening.addCallback(_hold))

    async def _start(self) -> None:
        password = await self.assembly.start()
        config = self._config
        ports = [await listening for listening in self._listening]
        for port in ports:
            port.startReading()
        self._ports = ports
        self.addresses = [describe_address(port.getHost(), tls=config.tls.cert is not None) for port in ports]
        console = find_console()
        admin = config.bootstrap.admin.user
        if password is not None:
            announce_password(admin, password, console=console, folder=config.data.dir)
        announce_addresses(self.addresses, admin=admin, console=console)
        log.info("serving at {addresses}", addresses=" ".join(self.addresses))
        self._notifier.ready("serving at " + " ".join(self.addresses))
        for waiter in self._waiting:
            waiter.callback(self.addresses)

    def _failed(self, failure: Failure) -> None:
        if is_expected(failure):
            log.error("the server could not start: {reason}", reason=reason_of(failure))
        else:
            log.failure("the server could not start", failure=failure)
        for waiter in self._waiting:
            waiter.errback(failure)
        if not self._waiting:
            announce_failure(failure)
            self._reactor.callWhenRunning(self._reactor.stop)

    async def _stop(self) -> None:
        self._notifier.stopping()
        if self._starting is not None:
            await self._starting
        for port in self._ports:
            await _maybe(port.stopListening())
        self._ports.clear()
        await self.assembly.stop()
        self._notifier.stopped()


def with_backlog(description: str) -> str:
    """The endpoint with a queue for bursts of new connections, unless it says itself how long that is to be."""
    if description.startswith(("tcp:", "tcp6:", "unix:")) and "backlog=" not in description:
        return f"{description}:backlog={BACKLOG}"
    return description


def _hold(port: Any) -> Any:
    # A port accepts from the moment it is bound; what nobody accepts yet waits in the kernel.
    port.stopReading()
    return port


async def _maybe(result: Any) -> None:
    if isinstance(result, Deferred):
        await result


def make_service(config: Config, reactor: Any) -> IService:
    """The server for a configuration; ``setServiceParent`` puts it into another daemon."""
    service: IService = Server(config, reactor)
    return service
