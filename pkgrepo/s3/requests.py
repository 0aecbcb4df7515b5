"""
Signed requests to a bucket: sent over kept connections, and repeated after failures that pass.

Every operation of a store may be repeated. A request is sent up to ``TRIES`` times within ``REPEATED_S``; before each
repetition is a random pause of up to twice the one before (full jitter), so that several workers do not come back
together.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from attrs import frozen
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed, DNSLookupError
from twisted.internet.interfaces import IConsumer, IPushProducer
from twisted.internet.task import deferLater
from twisted.web.iweb import IBodyProducer, IPolicyForHTTPS
from zope.interface import implementer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.concurrency.time_limits import Patience, TimedOut, within
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.outbound.addresses import ANYWHERE
from pkgrepo.outbound.agent import Ways
from pkgrepo.outbound.client import BodyLost, OutboundClient, ReceivedBody
from pkgrepo.outbound.connection import Response
from pkgrepo.outbound.head import HeadTooLarge, NotHttp
from pkgrepo.outbound.http_proxies import ProxyChoice
from pkgrepo.s3.places import BucketPlace
from pkgrepo.tls_policy import make_policy

from .documents import DocumentBroken, read_error_code
from .signing import CredentialsMissing, Signer, make_signer

Query = Sequence[tuple[str, str]]

TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.2
CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0  # seconds until the head of a response, from when the connection took the last of the body
REPEATED_S: Final = 60.0  # seconds from the first try, after which no other is made
IDLE_S: Final = 30.0  # seconds without a byte of a response's body
KEPT_CONNECTIONS: Final = 32  # idle ones
KEPT_S: Final = 20.0  # seconds; some servers close idle connections after 30
LARGEST: Final = 16 * 1024 * 1024  # bytes of a document
PIECE: Final = 256 * 1024  # bytes given to the connection at once

PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})  # statuses after which the same request may succeed
EMPTY: Final = hashlib.sha256(b"").hexdigest()

_BROKEN = (
    BodyLost,
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    DNSLookupError,
    HeadTooLarge,
    NotHttp,
    SSL.Error,
    TimedOut,
    VerificationError,
)
_REASONS = (
    ((ConnectError, DNSLookupError), "no connection could be made"),
    (
        (SSL.Error, VerificationError),
        "TLS fails, or its certificate is not trusted (ca_file names an authority)",
    ),
    ((HeadTooLarge, NotHttp), "it does not answer in HTTP"),
)


@frozen
class Body:
    """The bytes that a request sends, and their sha256 in hex."""

    data: bytes
    sha256: str


def digest_body(data: bytes) -> Body:
    """A body with its digest, which is computed in the calling thread."""
    return Body(data, hashlib.sha256(data).hexdigest())


@frozen
class WholeResponse:
    """A response with its whole body."""

    status: int
    fields: Mapping[bytes, bytes]
    body: bytes

    @property
    def code(self) -> str:
        """The code of an error document, or the status."""
        return read_error_code(self.body) or str(self.status)


class Unanswered(Exception):  # noqa: N818 - named for what happened
    """No response that helps came, however often the request was sent; the text says why."""


class Incoming:
    """
    A response whose body is read piece by piece; ``close`` it unless it was read to its end.

    ``fields`` of its head are by lower-case name, and ``length`` is that of its body in bytes, if it is known.
    """

    def __init__(self, response: Response, reactor: Any) -> None:
        self.status = response.head.status
        self.fields = response.head.fields
        self.length = response.head.length
        self._reactor = reactor
        self._body = ReceivedBody()
        response.deliverBody(self._body)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body. :raises Unanswered: the connection ended before it, or it stalled"""
        try:
            while chunk := await self._body.read(self._wait):
                yield chunk
        except (BodyLost, TimedOut) as error:
            raise Unanswered(reason_of(error)) from None
        finally:
            self.close()
        if not self._body.framed:
            raise Unanswered("a body came without its length")

    async def read(self) -> bytes:
        """The whole body, for documents. :raises Unanswered: it did not come, or is too large"""
        pieces: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            pieces.append(chunk)
            size += len(chunk)
            if size > LARGEST:
                self.close()
                raise Unanswered("a document is too large")
        return b"".join(pieces)

    def close(self) -> None:
        """Need no more of it."""
        self._body.abort()

    async def _wait(self, work: Deferred[None]) -> None:
        await within(IDLE_S, work, self._reactor, f"nothing came for {IDLE_S:g} s")


class Requests:
    """Sends the requests of one store; ``policy`` verifies certificates."""

    def __init__(self, place: BucketPlace, signer: Signer, policy: IPolicyForHTTPS, disk: Pool) -> None:
        self._base = place.base_url
        self._signer = signer
        self._disk = disk
        reactor: Any = disk.reactor
        self._reactor = reactor
        ways = Ways(
            reactor=reactor,
            guard=ANYWHERE,
            proxies=ProxyChoice({}),
            policy=policy,
            connect_s=CONNECT_S,
        )
        self._client = OutboundClient(ways, KEPT_CONNECTIONS, KEPT_S)

    async def stop(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(
        self,
        method: str,
        key: str = "",
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
    ) -> WholeResponse:
        """
        Send a request, and return its response, which is an error only if repeating it does not help.

        :raises Unresponseed: no such answer came
        """
        reason = ""
        async for _ in self._tries():
            try:
                incoming = await self._send(method, key, query, headers or {}, body)
                response = WholeResponse(incoming.status, incoming.fields, await incoming.read())
            except (*_BROKEN, Unanswered) as error:
                reason = reason_of(error)
                continue
            except CredentialsMissing as error:
                raise Unanswered(str(error)) from None
            # CompleteMultipartUpload may answer 200 before it has failed.
            late = read_error_code(response.body) if method == "POST" and response.status == 200 else ""
            if response.status not in PASSING and not late:
                return response
            reason = f"it answered {response.status} {late or response.code}"
        raise Unanswered(reason)

    async def open(self, key: str, headers: Mapping[str, str]) -> Incoming:
        """
        Begin to read an object: a response that is an error only if repeating the request does not help.

        :raises Unresponseed: no such answer came
        """
        reason = ""
        async for _ in self._tries():
            try:
                incoming = await self._send("GET", key, (), headers, None)
            except _BROKEN as error:
                reason = reason_of(error)
                continue
            except CredentialsMissing as error:
                raise Unanswered(str(error)) from None
            if incoming.status not in PASSING:
                return incoming
            incoming.close()
            reason = f"it answered {incoming.status}"
        raise Unanswered(reason)

    async def signed_url(self, key: str, life_s: int) -> str:
        """
        Return an address where anyone can read an object for ``life_s`` seconds.

        :raises Unanswered: there are no credentials
        """
        try:
            await self._renew()
        except CredentialsMissing as error:
            raise Unanswered(str(error)) from None
        return self._signer.sign_url(self._url(key), life_s)

    async def _tries(self) -> AsyncGenerator[None, None]:
        """Yield when a try is due."""
        until, longest = self._reactor.seconds() + REPEATED_S, FIRST_PAUSE_S
        yield
        for _ in range(TRIES - 1):
            await deferLater(self._reactor, random.uniform(0, longest))  # noqa: S311 - no secret
            if self._reactor.seconds() >= until:
                return
            yield
            longest *= 2

    def _url(self, key: str) -> str:
        return f"{self._base}/{quote(key, safe='/~')}"

    async def _renew(self) -> None:
        if self._signer.is_stale:
            await self._disk(self._signer.renew)

    async def _send(
        self, method: str, key: str, query: Query, headers: Mapping[str, str], body: Body | None
    ) -> Incoming:
        await self._renew()
        url = self._url(key)
        if query:
            url += "?" + "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in query)
        signed = self._signer.sign(method, url, headers, EMPTY if body is None else body.sha256)
        patience = Patience(ANSWER_S, self._reactor, f"no answer came within {ANSWER_S:g} s")
        data = b"" if body is None else body.data
        producer = Producer(data, patience.heard) if body is not None or method in ("POST", "PUT") else None
        return Incoming(await patience.wait(self._client.request(method, url, signed, producer)), self._reactor)


async def make_requests(place: BucketPlace, disk: Pool) -> Requests:
    """
    What sends requests to a bucket; ``disk`` runs what blocks.

    :raises Conflict: there are no credentials, or the certificates are damaged
    """
    try:
        signer = await disk(make_signer, place.region, place.key)
        policy = await disk(make_policy, [Path(each) for each in (place.ca_file,) if each])
    except (CredentialsMissing, Invalid) as error:
        raise Conflict(f"bucket {place.bucket!r} cannot be used: {error}") from error
    return Requests(place, signer, policy, disk)


def reason_of(error: Exception) -> str:
    """A clause for the log: what broke a request."""
    if isinstance(error, (TimedOut, Unanswered)):
        return str(error)
    if isinstance(error, DocumentBroken):
        return f"a document is not of the protocol: {error}"
    return next((reason for kinds, reason in _REASONS if isinstance(error, kinds)), "the connection ended early")


@implementer(IBodyProducer, IPushProducer)
class Producer:
    """
    Writes bytes as fast as the connection takes them, so that it does not hold a copy of all.

    ``taken`` is called with each piece that it takes.
    """

    def __init__(self, data: bytes, taken: Callable[[], None] = lambda: None) -> None:
        self.length = len(data)
        self._rest = memoryview(data)
        self._taken = taken
        self._paused = False
        self._running = False
        self._stopped = False
        self._consumer: Any = None
        self._done: Deferred[None] = Deferred()

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write the body to the consumer; the result fires when all of it is written."""
        if not self._rest:
            return succeed(None)
        self._consumer = consumer
        self._run()
        return self._done

    def pauseProducing(self) -> None:
        """Write nothing until ``resumeProducing``."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Go on writing."""
        self._paused = False
        self._run()

    def stopProducing(self) -> None:
        """Write nothing more."""
        self._stopped = True
        self._forget()

    def _run(self) -> None:
        if self._running:
            return
        self._running = True
        while self._rest and not self._paused:
            piece, self._rest = self._rest[:PIECE], self._rest[PIECE:]
            self._consumer.write(bytes(piece))
            self._taken()
        self._running = False
        if not self._rest and not self._stopped and not self._done.called:
            self._forget()
            self._done.callback(None)

    def _forget(self) -> None:
        # The consumer refers to this object, and an empty view to all the bytes: they would stay until a collection.
        self._rest = memoryview(b"")
        self._consumer = None
