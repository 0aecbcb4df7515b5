"""Requests to issuers for small JSON documents: bounded in bytes, time and number."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from attrs import frozen
from twisted.internet.defer import Deferred

from pkgrepo import __version__
from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import IssuerUnavailable
from pkgrepo.outbound.addresses import AddressGuard, AddressRefused, is_loopback
from pkgrepo.outbound.agent import Ways
from pkgrepo.outbound.client import BodyLost, OutboundClient, ReceivedBody
from pkgrepo.outbound.http_proxies import ProxyChoice
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.failures import ERRORS, explain
from pkgrepo.tls_policy import make_policy

MOST_BYTES: Final = 512 * 1024  # of a document; keys of the largest issuers have 20 KiB
TIMEOUT_S: Final = 10.0  # for a whole request
AT_A_TIME: Final = 16  # requests, of all issuers
MOST_WAITING: Final = 64  # further ones are refused at once
MOST_IDLE: Final = 2  # connections that are kept open to one issuer


@frozen
class Document:
    """The status and the whole body of a response."""

    status: int
    body: bytes


class Documents:
    """
    Asks issuers over connections of its own; redirects are not followed.

    ``issuers`` are their addresses: their hosts may have private addresses, since the operator names them. Addresses
    that their documents name may lead elsewhere, and there only to public ones.
    """

    def __init__(
        self, issuers: Iterable[str], *, ca_files: Sequence[Any], proxies: Mapping[str, str], reactor: Any
    ) -> None:
        self._reactor = reactor
        self._permits = FairSemaphore(AT_A_TIME, reactor, most_waiting=MOST_WAITING)
        ways = Ways(
            reactor=reactor,
            guard=AddressGuard(filter(None, (urlsplit(each).hostname for each in issuers))),
            proxies=ProxyChoice(proxies),
            policy=make_policy(ca_files),
            connect_s=TIMEOUT_S,
            answer_s=TIMEOUT_S,
        )
        self._client = OutboundClient(ways, MOST_IDLE)

    async def get(self, name: str, url: str, fields: Mapping[str, str] | None = None) -> Document:
        """The document at an address. :raises IssuerUnavailable: naming the issuer ``name``"""
        return await self._ask(name, "GET", url, {"accept": "application/json", **(fields or {})}, None)

    async def post(self, name: str, url: str, form: Mapping[str, str], fields: Mapping[str, str]) -> Document:
        """The response to a form. :raises IssuerUnavailable: naming the issuer ``name``"""
        sent = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded", **fields}
        return await self._ask(name, "POST", url, sent, urlencode(form).encode())

    async def close(self) -> None:
        """Abort all requests."""
        await self._client.close()

    async def _ask(self, name: str, method: str, url: str, fields: Mapping[str, str], body: bytes | None) -> Document:
        check_address(name, url)
        fields = {**fields, "user-agent": f"pkgrepo/{__version__}"}
        try:
            async with self._permits.hold():
                sending = Deferred.fromCoroutine(self._send(name, method, url, fields, body))
                return await within(TIMEOUT_S, sending, self._reactor, f"it did not answer within {TIMEOUT_S:g} s")
        except QueueFull:
            raise IssuerUnavailable(name, "too many requests wait for it") from None
        except AddressRefused:
            raise IssuerUnavailable(name, "one of its addresses is not public, and not that of the issuer") from None
        except TimedOut as error:
            raise IssuerUnavailable(name, error.reason) from None
        except BodyLost:
            raise IssuerUnavailable(name, "its answer broke off") from None
        except ERRORS as error:
            raise IssuerUnavailable(name, explain(name, error).reason) from None

    async def _send(self, name: str, method: str, url: str, fields: Mapping[str, str], body: bytes | None) -> Document:
        response = await self._client.request(method, url, fields, body)
        received = ReceivedBody()
        response.deliverBody(received)
        found = bytearray()
        try:
            while data := await received.read(_wait):
                found += data
                if len(found) > MOST_BYTES:
                    raise IssuerUnavailable(name, f"its answer is longer than {MOST_BYTES} bytes")
        finally:
            received.abort()
        return Document(response.head.status, bytes(found))


def check_address(name: str, url: object) -> str:
    """An address of an issuer. :raises IssuerUnavailable: it is no address, or plain http to another machine"""
    try:
        if not isinstance(url, str):
            raise ValueError("it is no text")  # noqa: TRY004 - joined with the errors of parsing
        target = parse_url(url)
    except ValueError as error:
        raise IssuerUnavailable(name, f"its document names an address that cannot be used: {error}") from None
    if target.scheme != "https" and not is_loopback(target.host):
        raise IssuerUnavailable(name, "its document names an address without TLS")
    return url


async def _wait(more: Awaitable[None]) -> None:
    await more
