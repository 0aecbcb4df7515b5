"""
Connections to the servers of one directory, each lent to one caller at a time.

======================  ==========================================================================================
event                   effect
======================  ==========================================================================================
a caller comes          an idle connection is lent, or a new one is made; at most ``connections`` are lent, and the
                        other callers wait in a bounded queue
no server can be used   for ``REST_S`` all callers are refused at once; then one of them tries, while the others are
                        still refused; each further failure doubles the time, up to ``LONGEST_REST_S``
a caller fails          the connection is aborted: what comes over it later would be taken for another answer
a connection was idle   if it ends before its first answer, the caller gets a new one
======================  ==========================================================================================

TLS is verified at the end of its handshake, before anything but the wish for StartTLS is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from attrs import frozen
from OpenSSL import SSL
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectionClosed, ConnectionLost
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.time_limits import within
from pkgrepo.errors import DirectoryUnavailable
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.failures import ERRORS, explain

from . import messages
from .messages import Entry, Response, Result, Unusable

log = Logger()

T = TypeVar("T")

PORTS: Final = {"ldap": 389, "ldaps": 636}
MOST_WAITING: Final = 256
REST_S: Final = 5.0
LONGEST_REST_S: Final = 60.0
WHOLE: Final = 3  # times the time for one answer: that for all of a caller
IDLE_S: Final = 60.0  # a connection that was idle for longer may be forgotten by a firewall
MOST_REFERENCES: Final = 100  # to other servers in the results of a search; Active Directory sends three or four
UNTRUSTED: Final = "its certificate is not trusted; ca_file can name a private authority"
_START_TLS_REFUSED: Final = "it does not take StartTLS"


@frozen
class Address:
    """Where a server listens; with ``is_tls`` TLS begins at once (ldaps)."""

    host: str
    port: int
    is_tls: bool


def parse_address(url: str) -> Address:
    """
    The address in a URL such as ldaps://dc1.corp.example.

    :raises ValueError: the URL is no address of a directory, as a clause about "it"
    """
    scheme, _, rest = url.partition("://")
    if scheme not in PORTS or set(rest.removesuffix("/")) & set("/?#"):
        raise ValueError("it is not ldap:// or ldaps:// with a host and perhaps a port")
    target = parse_url(f"http://{rest}")
    return Address(target.host, urlsplit(url).port or PORTS[scheme], scheme == "ldaps")


@frozen(kw_only=True)
class Way:
    """How connections are made: within ``connect_s`` seconds each, and an answer comes within ``answer_s``."""

    addresses: Sequence[Address]
    start_tls: bool
    policy: IPolicyForHTTPS
    connect_s: float
    answer_s: float


@implementer(IHandshakeListener)
class Connection(Protocol):
    """A connection with one operation at a time. ``is_ours`` is for the caller: whether it is bound as this server."""

    is_ours = False
    idle_since = 0.0

    def __init__(self, reactor: Any, answer_s: float) -> None:
        self._reactor = reactor
        self._answer_s = answer_s
        self._received = b""
        self._number = 0
        self._most = 0
        self._entries: list[Entry] = []
        self._references = 0
        self._waiting: Deferred[Result] | None = None
        self._ready: Deferred[None] | None = None
        self._ended: BaseException | None = None
        self._is_lost = False
        self.has_answered = False

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self._ended is None

    async def begin(self, *, is_tls: bool, start_tls: Any) -> None:
        """Wait for the handshake of TLS; with ``start_tls``, what makes TLS connections, ask for it before."""
        if start_tls is not None:
            result = await self.ask(messages.start_tls())
            if result.code != 0:
                raise Unusable(f"{_START_TLS_REFUSED} ({result.code})")
            if self._received:  # it was sent in clear, by anybody
                raise Unusable("it sends more than the answer to StartTLS before TLS begins")
            self._ready = Deferred()
            self.transport.startTLS(start_tls)  # type: ignore[union-attr]
        elif is_tls:
            self._ready = self._ready or Deferred()
        if self._ready is not None:
            await self._ready
        self.has_answered = False

    async def ask(self, operation: Any, most: int = 0) -> Result:
        """
        The result of an operation. The entries that a search finds, ``most`` of them, are in ``take_entries``.

        A server that sends more, as Samba does whatever the limit of a search is, has its connection ended then.

        :raises Unusable, TimedOut: no usable answer came; :raises ConnectionClosed, SSL.Error: the connection ended
        """
        if self._ended is not None:
            raise self._ended
        assert self._waiting is None, "one operation at a time"
        self._number, self._most, self._entries, self._references = self._number + 1, most, [], 0
        waiting = self._waiting = Deferred()
        self.transport.write(messages.request(self._number, operation))  # type: ignore[union-attr]
        return await within(self._answer_s, waiting, self._reactor, f"it did not answer within {self._answer_s:g} s")

    def take_entries(self) -> list[Entry]:
        """What the last search has found."""
        found, self._entries = self._entries, []
        return found

    def abort(self) -> None:
        """End it at once."""
        if self.transport is not None and not self._is_lost:
            self.transport.abortConnection()  # type: ignore[attr-defined]

    def handshakeCompleted(self) -> None:
        """The certificate is verified."""
        ready = self._ready = self._ready or Deferred()
        if not ready.called:
            ready.callback(None)

    def dataReceived(self, data: bytes) -> None:
        """Read responses. What is none ends the connection."""
        if self._ended is not None:
            return
        self._received += data
        try:
            while (size := messages.next_size(self._received)) is not None:
                message, self._received = self._received[:size], self._received[size:]
                self._take(*messages.read(message))
        except Unusable as error:
            self._end(error)
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The request that waits fails with the reason."""
        self._is_lost = True
        self._end(reason.value or ConnectionLost())

    def _take(self, number: int, response: Response) -> None:
        if number != self._number or self._waiting is None:
            # RFC 4511 section 4.4.1: number 0 is a notice of disconnection
            raise Unusable("it ends the connection" if number == 0 else "it answers what was not asked")
        if isinstance(response, Result):
            waiting, self._waiting, self.has_answered = self._waiting, None, True
            waiting.callback(response)
            return
        if response is None:
            self._references += 1
        else:
            self._entries.append(response)
        if len(self._entries) <= self._most and self._references <= MOST_REFERENCES:
            return
        excess = Unusable("it finds more than it was asked for")
        if not self._most or self._references > MOST_REFERENCES:
            raise excess
        self._entries.pop()
        waiting, self._waiting, self.has_answered = self._waiting, None, True
        self._end(excess)
        waiting.callback(Result(messages.SIZE_LIMIT, ""))
        raise excess

    def _end(self, error: BaseException) -> None:
        reason = self._ended = self._ended or error
        self._received = b""
        for each in (self._waiting, self._ready):
            if each is not None and not each.called:
                each.errback(reason)
        self._waiting = None


class _QuietFactory(Factory):
    noisy = False


class Servers:
    """The servers of the directory ``name``; ``connections`` are lent at most."""

    def __init__(self, name: str, way: Way, *, connections: int, reactor: Any) -> None:
        self._name = name
        self._way = way
        self._reactor = reactor
        self._whole_s = WHOLE * way.answer_s
        self._permits = FairSemaphore(connections, reactor, most_waiting=MOST_WAITING)
        self._idle: list[Connection] = []
        self._lent: set[Connection] = set()
        self._first = 0  # of the addresses: the last one that answered
        self._rest_s = 0.0
        self._rests_until = 0.0
        self._reason = ""
        self._is_tried = False

    async def use(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """
        What ``work`` returns, over a connection that it has alone.

        :raises DirectoryUnavailable: no server gives a usable answer, or too many callers wait
        """
        try:
            async with self._permits.hold():
                return await self._attempt(work)
        except QueueFull:
            raise DirectoryUnavailable(self._name, "too many logins wait for it") from None

    @property
    def trouble(self) -> str:
        """Why no server can be used, as a clause about "it"; empty if one could be used last, or none was asked."""
        return self._reason if self._rest_s else ""

    def close(self) -> None:
        """Abort all connections."""
        idle, self._idle = self._idle, []
        for each in (*idle, *self._lent):
            each.abort()

    async def _attempt(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        now = self._reactor.seconds()
        if self._rest_s and (now < self._rests_until or self._is_tried):
            raise DirectoryUnavailable(self._name, self._reason)
        trying = self._is_tried = bool(self._rest_s)
        try:
            result = await self._over(work)
        except (Unusable, *ERRORS) as error:
            self._reason = _reason(self._name, error)
            self._rest_s = min(self._rest_s * 2, LONGEST_REST_S) if trying else REST_S
            self._rests_until = self._reactor.seconds() + self._rest_s
            log.warn("the directory {name} cannot be asked: {reason}", name=self._name, reason=self._reason)
            raise DirectoryUnavailable(self._name, self._reason) from None
        finally:
            if trying:
                self._is_tried = False
        self._rest_s = 0.0
        return result

    async def _over(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        while (connection := self._take_idle()) is not None:
            try:
                return await self._lend(connection, work)
            except (ConnectionClosed, SSL.Error):
                if connection.has_answered:
                    raise
        return await self._lend(await self._connect(), work)

    async def _lend(self, connection: Connection, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        connection.has_answered = False
        self._lent.add(connection)
        try:
            reason = f"it took more than {self._whole_s:g} s in all"
            result: T = await within(self._whole_s, Deferred.fromCoroutine(work(connection)), self._reactor, reason)
        except BaseException:
            connection.abort()
            raise
        finally:
            self._lent.discard(connection)
        connection.idle_since = self._reactor.seconds()
        self._idle.append(connection)
        return result

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and self._reactor.seconds() - connection.idle_since < IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> Connection:
        """A connection to the first server that takes one, beginning with the one that did so last."""
        count = len(self._way.addresses)
        for step in range(count):
            index = (self._first + step) % count
            try:
                connection = await self._connect_to(self._way.addresses[index])
            except (Unusable, *ERRORS):
                if step + 1 == count:
                    raise
            else:
                self._first = index
                return connection
        raise AssertionError("a directory has a server")

    async def _connect_to(self, address: Address) -> Connection:
        way, made = self._way, []

        def build() -> Connection:
            made.append(Connection(self._reactor, way.answer_s))
            return made[-1]

        creator = way.policy.creatorForNetloc(address.host.encode("ascii"), address.port)
        endpoint: Any = HostnameEndpoint(self._reactor, address.host, address.port, way.connect_s)
        if address.is_tls:
            endpoint = wrapClientTLS(creator, endpoint)

        async def connect() -> Connection:
            connection: Connection = await endpoint.connect(_QuietFactory.forProtocol(build))
            start_tls = creator if way.start_tls and not address.is_tls else None
            await connection.begin(is_tls=address.is_tls, start_tls=start_tls)
            return connection

        reason = f"it did not accept a connection within {way.connect_s:g} s"
        try:
            return await within(way.connect_s, Deferred.fromCoroutine(connect()), self._reactor, reason)
        except BaseException:
            for each in made:
                each.abort()
            raise


def _reason(name: str, error: Exception) -> str:
    if isinstance(error, Unusable):
        return str(error)
    if isinstance(error, SSL.Error) and "certificate verify failed" in str(error):
        return UNTRUSTED
    return explain(name, error).reason
