"""One attempt to deliver a message: the signed request, and what its response means."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from twisted.internet.defer import Deferred

from pkgrepo import __version__
from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import SecretUnreadable
from pkgrepo.outbound.addresses import AddressGuard, AddressRefused
from pkgrepo.outbound.agent import Ways
from pkgrepo.outbound.client import BodyLost, OutboundClient, ReceivedBody
from pkgrepo.outbound.http_proxies import ProxyChoice
from pkgrepo.proxy.upstream.failures import ERRORS, explain
from pkgrepo.proxy.upstream.limits import read_retry_after
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.storage.catalog.server.webhooks import Webhook
from pkgrepo.storage.secret_box import SecretBox
from pkgrepo.tls_policy import make_policy

from .envelopes import headers_of
from .signing import sign

MOST_IDLE: Final = 8  # connections that are kept open to one receiver: as many as requests are sent at a time
MOST_READ: Final = 64 * 1024  # bytes of the body of a response
MOST_KEPT: Final = 4096  # characters of it that people see
FORBIDDEN: Final = "it leads to an address that is not public; webhooks.allow_private can except it"
GONE: Final = 410
_TRANSIENT: Final = frozenset({408, 425, 429})


@frozen(kw_only=True)
class Settings:
    """The settings ``webhooks.*``, the certificates of private authorities, and the HTTP proxies by scheme."""

    allow_private: Sequence[str] = ()
    timeout_s: float = 10.0
    ca_files: Sequence[Any] = ()
    proxies: Mapping[str, str]


@frozen
class Outcome:
    """
    What came of a request.

    ``status`` is None without a response. ``retry_after_s`` is how long the receiver wants to be left alone.
    """

    status: int | None
    took_ms: int
    error: str = ""
    response: str = ""
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the receiver has taken the message."""
        return not self.error

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no messages any more."""
        return self.status == GONE

    @property
    def hopeless(self) -> bool:
        """Whether the receiver has refused the message for what it is, so that more attempts promise little."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in _TRANSIENT


def context_of(webhook_uid: str) -> str:
    """What the secrets of a webhook are sealed for."""
    return f"webhook {webhook_uid}"


class Poster:
    """Sends messages to receivers; the addresses that they resolve to are checked (see L{AddressGuard})."""

    def __init__(self, settings: Settings, secrets: SecretBox, clock: Clock, reactor: Any) -> None:
        self._reactor = reactor
        self._clock = clock
        self._secrets = secrets
        self._timeout_s = settings.timeout_s
        self._ways = Ways(
            reactor=reactor,
            guard=AddressGuard(settings.allow_private),
            proxies=ProxyChoice(settings.proxies),
            policy=make_policy(settings.ca_files),
            connect_s=settings.timeout_s,
            answer_s=settings.timeout_s,
            connect_setting="webhooks.timeout",
            answer_setting="webhooks.timeout",
        )
        self._client = OutboundClient(self._ways, MOST_IDLE)

    def permits(self, host: str) -> bool:
        """Whether requests to a host may be permitted, as far as its name tells."""
        return self._ways.guard.permits_unresolved(host)

    async def post(self, webhook: Webhook, message_id: str, body: str) -> Outcome:
        """Send a message once. Whatever goes wrong is in the outcome."""
        started = self._reactor.seconds()
        timestamp = self._clock.now_ms() // 1000
        data = body.encode()
        try:
            fields = {
                **headers_of(body, "plain" if webhook.format == "plain" else "cloudevents"),
                "user-agent": f"pkgrepo/{__version__}",
                "webhook-id": message_id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": sign(self._keys(webhook), message_id, timestamp, data),
            }
            reason = f"it did not answer within {self._timeout_s:g} s (webhooks.timeout)"
            sending = Deferred.fromCoroutine(self._send(webhook.url, fields, data))
            outcome = await within(self._timeout_s, sending, self._reactor, reason)
        except SecretUnreadable:
            outcome = Outcome(None, 0, "its secret cannot be read with the key in the data folder: rotate it")
        except AddressRefused:
            outcome = Outcome(None, 0, FORBIDDEN)
        except (*ERRORS, BodyLost) as error:
            outcome = Outcome(None, 0, _reason(error))
        return evolve(outcome, took_ms=int((self._reactor.seconds() - started) * 1000))

    async def close(self) -> None:
        """Abort all requests."""
        await self._client.close()

    def _keys(self, webhook: Webhook) -> list[str]:
        sealed = [webhook.secret]
        if webhook.old_until is not None and webhook.old_until > from_ms(self._clock.now_ms()):
            sealed.append(webhook.old_secret)
        return [self._secrets.open(each, context_of(webhook.uid)) for each in sealed]

    async def _send(self, url: str, fields: Mapping[str, str], data: bytes) -> Outcome:
        response = await self._client.request("POST", url, fields, data)
        body = ReceivedBody()
        response.deliverBody(body)
        text = (await _read(body)).decode("utf-8", "replace").replace("\0", "")[:MOST_KEPT]
        status = response.head.status
        if 200 <= status < 300:
            return Outcome(status, 0, response=text)
        error = f"it answers {status}"
        if 300 <= status < 400:
            error += ", and redirects are not followed: set the address that it redirects to"
        wait = response.head.fields.get(b"retry-after")
        wait_s = None if wait is None else read_retry_after(wait.decode("latin-1"), self._clock.now_ms() / 1000)
        return Outcome(status, 0, error, text, wait_s)


async def _read(body: ReceivedBody) -> bytes:
    """The beginning of a body; of one that is too long, or breaks off, what has come."""
    found = bytearray()
    try:
        while len(found) < MOST_READ:
            data = await body.read(_wait)
            if not data:
                break
            found += data
    except BodyLost:
        pass  # the status has come, and decides
    finally:
        body.abort()
    return bytes(found[:MOST_READ])


async def _wait(more: Awaitable[None]) -> None:
    await more


def _reason(error: Exception) -> str:
    if isinstance(error, TimedOut):
        return error.reason
    try:
        return explain("", error).reason
    except OSError:
        return "this server has no file descriptor left"
