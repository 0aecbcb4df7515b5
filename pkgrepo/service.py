"""
The server as a Twisted service, for twistd or inside another daemon.

Start order: threads, catalog, objects of the first start, HTTP resources, and last the ports begin to accept. The stop
is in reverse order. So no request is answered before all parts are ready, and no part is closed while requests run.
"""

from __future__ import annotations

import os
from typing import Any

from twisted.application.service import IService
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import serverFromString
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.services import MultiService
from pkgrepo.config import Config
from pkgrepo.process.sd_notify import Notifier
from pkgrepo.process.workers.membership import Membership
from pkgrepo.startup.announcements import (
    announce_addresses,
    announce_failure,
    announce_password,
    describe_address,
    find_console,
    is_expected,
    reason_of,
)
from pkgrepo.startup.endpoints import with_backlog

from .assembly import Assembly

log = Logger()


class Server(MultiService):
    """
    The whole server, started by twistd or as part of another daemon.

    ``addresses`` are the URLs of the listening ports, once the server is ready. With a ``membership`` it is one of
    several workers: its ports are at the sockets of the master, which also tells people about the start.
    """

    def __init__(self, config: Config, reactor: Any, membership: Membership | None = None) -> None:
        super().__init__()
        self.setName("pkgrepo")
        self._waiting: list[Deferred[list[str]]] = []
        self.addresses: list[str] = []
        self._membership = membership
        self.assembly = Assembly(config, reactor, None if membership is None else membership.peers)
        self._config = config
        self._reactor = reactor
        self._listening: list[Deferred[Any]] = []
        self._ports: list[Any] = []
        self._notifier = Notifier(os.environ, clock=reactor)
        self._starting: Deferred[None] | None = None

    def when_ready(self) -> Deferred[list[str]]:
        """
        Fires with the addresses when the server is ready; fails with the error that prevented the start.

        Call it before the start. Without any caller, a failed start stops the reactor: a daemon that does not answer
        must not keep running.
        """
        waiter: Deferred[list[str]] = Deferred()
        self._waiting.append(waiter)
        return waiter

    def privilegedStartService(self) -> None:
        """Bind the ports while twistd has its privileges; connections queue in the kernel until the server is ready."""
        super().privilegedStartService()
        self._bind()

    def startService(self) -> None:
        """Start the server in the background; see ``when_ready``."""
        super().startService()
        self._bind()
        self._starting = Deferred.fromCoroutine(self._start()).addErrback(self._failed)

    def stopService(self) -> Deferred[None]:
        """Stop listening, let transfers end, and close everything."""
        super().stopService()
        return Deferred.fromCoroutine(self._stop())

    def reload(self) -> None:
        """Reload what may change while the server runs, without interrupting connections."""
        log.info("reloading")
        self.assembly.reload()

    def _bind(self) -> None:
        if self._listening:
            return
        if self._membership is not None:
            self._listening = [
                succeed(_pause_accepting(port)) for port in self._membership.listen(self.assembly.factory)
            ]
            return
        for description in self._config.server.listen:
            endpoint = serverFromString(self._reactor, with_backlog(description))
            listening = endpoint.listen(self.assembly.factory)
            self._listening.append(listening.addCallback(_pause_accepting))

    async def _start(self) -> None:
        password = await self.assembly.start()
        config, console = self._config, find_console()
        admin = config.bootstrap.admin.user
        if password is not None and self._membership is None:  # before anything says that the server is ready
            announce_password(admin, password, console=console, folder=config.data.dir)
        ports = [await listening for listening in self._listening]
        for port in ports:
            port.startReading()
        self._ports = ports
        self.addresses = [describe_address(port.getHost(), tls=config.tls.cert is not None) for port in ports]
        if self._membership is not None:
            self._membership.report_ready(self.addresses, password)
        else:
            log.info("serving at {addresses}", addresses=" ".join(self.addresses))
            announce_addresses(self.addresses, admin=admin, console=console)
        self._notifier.ready("serving at " + " ".join(self.addresses))
        for waiter in self._waiting:
            waiter.callback(self.addresses)

    def _failed(self, failure: Failure) -> None:
        if is_expected(failure):
            log.error("the server could not start: {reason}", reason=reason_of(failure))
        else:
            log.failure("the server could not start", failure=failure)
        if self._membership is not None:
            self._membership.report_failure(reason_of(failure))
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
        if self._membership is not None:
            await self._membership.stop_covering()
        await self.assembly.stop(None if self._membership is None else self._membership.stop_receiving)
        if self._membership is not None:
            await self._membership.leave(self.assembly.counted)
        self._notifier.stopped()


def _pause_accepting(port: Any) -> Any:
    # A port accepts as soon as it is bound; until the server is ready, connections shall wait in the backlog.
    port.stopReading()
    return port


async def _maybe(result: Any) -> None:
    if isinstance(result, Deferred):
        await result


def make_service(config: Config, reactor: Any) -> IService:
    """The server for a configuration; add it to another daemon with ``setServiceParent``."""
    service: IService = Server(config, reactor)
    return service
