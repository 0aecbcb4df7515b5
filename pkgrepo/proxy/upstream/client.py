"""The client of one route: requests with redirects, retries, permits and health."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from http.cookiejar import CookieJar
from typing import Any, cast

from attrs import evolve, frozen
from hyperlink import EncodedURL
from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from zope.interface import implementer

from pkgrepo import __version__
from pkgrepo.concurrency import proxy_loop
from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import (
    Invalid,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamLimited,
    UpstreamLoop,
    UpstreamMisconfigured,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.interfaces import IUpstream
from pkgrepo.model import ReadLimits, UpstreamHealth, UpstreamState
from pkgrepo.outbound.addresses import ConnectingTimedOut
from pkgrepo.outbound.agent import OutboundAgent, RequestFields, Ways
from pkgrepo.outbound.connection import Answer
from pkgrepo.outbound.pool import Connections
from pkgrepo.outbound.urls import Origin, Target, join_path, parse_url, resolve_reference
from pkgrepo.proxy.circles import refuse_circle
from pkgrepo.proxy.routes import Route

from .deadlines import Deadline
from .failures import ABOUT_ANSWER, ERRORS, explain
from .health import Health
from .permits import HostPermits
from .refusals import DECISIONS, read_refusal
from .response import Reading, UpstreamResponse
from .retries import MOST_TRIES, UNKNOWN_LIMIT_S, pause_before_retry, read_retry_after
from .settings import UpstreamSettings

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
RETRIED = frozenset({502, 503, 504})
NO_HEAD = frozenset({403, 405, 451, 501})  # the answer to a GET may be another one, or have the sentence of this one
LOOP = 508  # what proxies like this one answer to themselves
MOST_TRYING_S = 2.0  # seconds; a person waits for what was configured
MOST_FAULTS = 100  # of the configuration, which are logged once
MOST_HOSTS = 32  # whose health is remembered, beside the route's own

TrafficListener = Callable[[int, float], None]

log = Logger()

_PASSED = proxy_loop.FIELD.decode("ascii")
_CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})


@frozen(kw_only=True)
class Shared:
    """What the upstreams of one process share; ``jitter`` returns a number from 0 to 1."""

    reactor: Any
    settings: UpstreamSettings
    permits: HostPermits
    jitter: Callable[[], float]


@frozen
class _Request:
    """
    A request as the caller wants it; ``credentials`` are further fields for the host it is sent to first.

    With ``only_head`` no body is wanted, whatever the method is. For ``kind`` and ``subject`` see L{IUpstream.open}.
    """

    method: str
    only_head: bool
    kind: str
    subject: str
    fields: Mapping[str, str]
    credentials: Mapping[str, str]
    body: bytes | None
    tries: int
    limits: ReadLimits
    deadline: Deadline


@implementer(IUpstream)
class Upstream:
    """
    See L{IUpstream}. It has its own connections. ``authorization`` is the Authorization field of the route.

    ``on_traffic`` is called after each request with the bytes of the body that were read, and with the seconds until
    its end.
    """

    def __init__(
        self,
        repository_id: int,
        route: Route,
        authorization: str | None,
        shared: Shared,
        ways: Ways,
        on_traffic: TrafficListener,
    ) -> None:
        self.route = route
        self._repository_id = repository_id
        self._on_traffic = on_traffic
        self._authorization = authorization
        self._shared = shared
        self._reactor = shared.reactor
        self._connections = Connections(shared.reactor, shared.settings.max_connections_per_host)
        self._ways = ways
        self._agent = OutboundAgent(ways, self._connections)
        self._client = HTTPClient(self._agent, _NO_COOKIES)
        self._own_health = Health(self.name, route.target.host, self._reactor, shared.jitter)
        self._other_health: OrderedDict[tuple[Origin, str], Health] = OrderedDict()
        self._faults: set[tuple[str, str]] = set()
        self.fault: str | None = None  # of the configuration, the last time; a clause about "it"
        self._open_count = 0
        self._retired = False
        self._closed = False

    @property
    def name(self) -> str:
        """See L{IUpstream.name}."""
        return self.route.name

    @property
    def url(self) -> str:
        """See L{IUpstream.url}."""
        return self.route.url

    def health(self) -> UpstreamHealth:
        """See L{IUpstream.health}."""
        return self._own_health.report()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        limits: ReadLimits | None = None,
        decode: bool = False,
        entrust: bool = False,
        accept: Collection[int] = (),
        kind: str = "",
        subject: str = "",
        tries: int = MOST_TRIES,
    ) -> AsyncIterator[UpstreamResponse]:
        """See L{IUpstream.open}."""
        if method not in (("GET", "HEAD") if body is None else ("POST",)):
            raise ValueError(f"{method} is not sent to upstreams")
        refuse_circle(self._repository_id, self.name)
        target = self._find_target(url)
        known = self._authorization if entrust or target.origin == self.route.target.origin else None
        coding = "gzip" if decode else "identity"
        request = self._make_request(method, known, headers or {}, body, limits, coding, tries=tries)
        request = evolve(request, kind=kind, subject=subject or target.text)
        self._open_count += 1
        started_s, response = self._reactor.seconds(), None
        try:
            async with AsyncExitStack() as stack:
                response = await self._follow(request, target, stack)
                if method == "HEAD" and response.status in NO_HEAD:
                    await stack.aclose()
                    response = await self._follow(evolve(request, method="GET"), target, stack)
                if response.status not in accept:
                    await self._check_refusal(response, kind)
                response.prepare()
                yield response
        finally:
            self._open_count -= 1
            self._report_traffic(started_s, response)
            self._close_if_retired()

    def misconfigured(self, reason: str, detail: str = "") -> UpstreamMisconfigured:
        """See L{IUpstream.misconfigured}."""
        if (reason, detail) not in self._faults and len(self._faults) < MOST_FAULTS:
            self._faults.add((reason, detail))
            sentence = f"{reason}: {detail}" if detail else reason
            log.warn("upstream {route} cannot be used: {reason}", route=self.name, reason=sentence)
        self._own_health.note(reason)
        self.fault = reason
        return UpstreamMisconfigured(self.name, reason)

    def retire(self) -> None:
        """Close the idle connections, and the others when they become idle."""
        self._retired = True
        self._close_if_retired()

    async def close(self) -> None:
        """Abort all connections, and try nothing again. Returns when they have ended."""
        self._closed = True
        await self._connections.close()

    async def try_connection(self) -> None:
        """Connect, and set ``fault`` if the configuration has one; that it cannot be reached is none."""
        try:
            trying = Deferred.fromCoroutine(self._agent.connect(self.route.target))
            await within(MOST_TRYING_S, trying, self._reactor, "it takes long")
        except ERRORS as error:
            with suppress(OSError):  # no descriptor is left
                explained = explain(self.name, error)
                if isinstance(explained, UpstreamMisconfigured):
                    self.misconfigured(explained.reason)
        else:
            self.fault = None

    async def _check_refusal(self, response: UpstreamResponse, kind: str) -> None:
        if response.status in DECISIONS:
            raise UpstreamDenied(self.name, await read_refusal(response, self._reactor))
        if response.status == 401:
            reason = self._explain_401(response)
            # What its searches or audits want keeps nobody from its packages.
            raise UpstreamMisconfigured(self.name, reason) if kind else self.misconfigured(reason)

    def _explain_401(self, response: UpstreamResponse) -> str:
        if parse_url(response.url).origin != self.route.target.origin:
            return "the host to which it redirects wants credentials"
        if self._authorization is None:
            return "it wants credentials, and the route has none (auth of the route)"
        return "it refuses the credentials of the route (auth of the route)"

    def _report_traffic(self, started_s: float, response: UpstreamResponse | None) -> None:
        ended_s = None if response is None else response.ended_s
        seconds = (self._reactor.seconds() if ended_s is None else ended_s) - started_s
        self._on_traffic(0 if response is None else response.received, seconds)

    def _close_if_retired(self) -> None:
        if self._retired and not self._open_count:
            self._connections.keep_none()

    def _find_target(self, url: str) -> Target:
        try:
            return parse_url(url) if url.startswith(("http://", "https://")) else join_path(self.route.target, url)
        except ValueError as error:
            raise Invalid(f"upstream {self.name!r} has no such URL: {error}") from None

    def _make_request(
        self,
        method: str,
        authorization: str | None,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: ReadLimits | None,
        coding: str,
        *,
        tries: int,
    ) -> _Request:
        given = {name.lower(): value for name, value in headers.items()}
        fields = {name: value for name, value in given.items() if name not in _CREDENTIALS}
        credentials = {name: value for name, value in given.items() if name in _CREDENTIALS}
        if authorization is not None:
            credentials.setdefault("authorization", authorization)
        fields |= {"accept-encoding": coding, "user-agent": f"pkgrepo/{__version__}"}
        fields[_PASSED] = proxy_loop.names_with(self._repository_id)
        limits = limits or self._shared.settings.documents
        deadline = Deadline.start(limits.total_s, self._reactor)
        return _Request(method, method == "HEAD", "", "", fields, credentials, body, tries, limits, deadline)

    async def _follow(self, request: _Request, target: Target, stack: AsyncExitStack) -> UpstreamResponse:
        """The answer after redirects; ``stack`` closes it."""
        fields = {**request.fields, **request.credentials}
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._send(request, target, fields, stack)
            location = response.headers.get("Location") if response.status in REDIRECTS else None
            if location is None:
                return response
            await stack.aclose()
            if request.body is not None:
                raise UpstreamFailed(self.name, f"it redirects a {request.method}")
            following = self.route.locate(self._resolve(target, location))
            if following.origin != target.origin:
                fields = dict(request.fields)  # also if a later redirect leads back
            target = following
        raise UpstreamFailed(self.name, f"it redirects more than {MOST_REDIRECTS} times")

    def _resolve(self, target: Target, location: str) -> Target:
        try:
            following = resolve_reference(target, location)
        except ValueError as error:
            raise UpstreamFailed(self.name, f"it redirects to a URL that cannot be used: {error}") from None
        if target.scheme == "https" and following.scheme == "http":
            raise UpstreamFailed(self.name, "it redirects from https to http")
        return following

    async def _send(
        self, request: _Request, target: Target, fields: Mapping[str, str], stack: AsyncExitStack
    ) -> UpstreamResponse:
        """The answer of one host, after retries; ``stack`` closes it and gives its permit back."""
        health = self._health_of(target.origin, request.kind)
        tries = 0
        while True:
            tries += 1
            await self._take_permit(request, target, stack)
            with health.attempt():
                outcome = await self._try(request, target, fields, health)
            if isinstance(outcome, UpstreamResponse):
                stack.callback(outcome.close)
                if not outcome.complete:
                    # A short body is there in the next turn; a caller who does not read it leaves the connection free.
                    await deferLater(self._reactor, 0)
                return outcome
            await stack.aclose()
            # After the failures of others no second try would be sent: nobody waits for it.
            retry = tries < request.tries and health.state is not UpstreamState.OPEN
            pause_s = pause_before_retry(outcome, tries, self._shared.jitter) if retry else None
            if pause_s is None or pause_s >= request.deadline.left_s or self._closed:
                if isinstance(outcome, UpstreamLimited):
                    health.limited(outcome.retry_after_s)
                raise outcome
            await deferLater(self._reactor, pause_s)

    async def _take_permit(self, request: _Request, target: Target, stack: AsyncExitStack) -> None:
        permits = self._shared.permits
        try:
            await permits.acquire(target.origin, self, request.deadline)
        except QueueFull:
            raise UpstreamUnavailable(self.name, "too many requests wait for it") from None
        except TimedOut as error:
            raise UpstreamTimeout(self.name, error.reason) from None
        stack.callback(permits.release, target.origin)

    async def _try(
        self, request: _Request, target: Target, fields: Mapping[str, str], health: Health
    ) -> UpstreamResponse | UpstreamFailed:
        """Send the request once. An error is returned, and not raised, if it might be worth another try."""
        started = self._reactor.seconds()
        try:
            answering = self._client.request(
                request.method,
                _ExactUrl(target.text),
                headers=RequestFields(fields),
                data=request.body,
                cookies=_NO_COOKIES,
                allow_redirects=False,
                unbuffered=True,
                reactor=self._reactor,
            )
            answer = await request.deadline.wait(answering)  # connecting and the answer have time limits of their own
        except ERRORS as error:
            subject = request.subject if isinstance(error, ABOUT_ANSWER) else None
            unreachable = isinstance(error, ConnectingTimedOut)
            return self._note(explain(self.name, error), health, subject, is_unreachable=unreachable)
        reading = Reading(
            route=self.name,
            limits=request.limits,
            deadline=request.deadline,
            idle_s=self._ways.answer_s,
            idle_setting=self._ways.answer_setting,
            on_failure=partial(health.failed, subject=request.subject),
            on_silence=health.failed,
        )
        url = target.text.partition("?")[0]
        response = UpstreamResponse(cast("Answer", answer.original), url, reading, only_head=request.only_head)
        failed = None if request.method == "HEAD" and response.status in NO_HEAD else self._judge(response)
        if failed is None:
            health.succeeded(self._reactor.seconds() - started)
            self.fault = None
            return response
        response.close()
        return self._note(failed, health, request.subject)

    def _judge(self, response: UpstreamResponse) -> UpstreamFailed | None:
        """The error that a status means; None: the answer is for the caller."""
        status = response.status
        if status == LOOP:
            return UpstreamLoop(self.name)
        if status == 429:
            wait_s = read_retry_after(response.headers.get("Retry-After"), self._reactor)
            seconds = math.ceil(UNKNOWN_LIMIT_S if wait_s is None else wait_s)
            return UpstreamLimited(self.name, "it limits the rate of our requests", seconds)
        if status in RETRIED:
            wait_s = read_retry_after(response.headers.get("Retry-After"), self._reactor)
            return UpstreamUnavailable(self.name, f"it answers {status}", None if wait_s is None else math.ceil(wait_s))
        if not 200 <= status < 500:
            return UpstreamFailed(self.name, f"it answers {status}")
        return None

    def _note(
        self, error: UpstreamFailed, health: Health, subject: str | None, *, is_unreachable: bool = False
    ) -> UpstreamFailed:
        if isinstance(error, UpstreamMisconfigured):
            self.misconfigured(error.reason)
        elif not isinstance(error, UpstreamLimited | UpstreamLoop):
            health.failed(error.reason, subject, is_unreachable=is_unreachable)
        return error

    def _health_of(self, origin: Origin, kind: str) -> Health:
        if origin == self.route.target.origin and not kind:
            return self._own_health
        place = (origin, kind)
        health = self._other_health.pop(place, None)
        if health is None:
            shown = f"{origin[1]} ({kind})" if kind else origin[1]
            health = Health(self.name, shown, self._reactor, self._shared.jitter)
        self._other_health[place] = health
        if len(self._other_health) > MOST_HOSTS:
            self._other_health.popitem(last=False)
        return health


class _NoCookies(CookieJar):
    """A jar for treq that stays empty."""

    def add_cookie_header(self, request: object) -> None:
        """Add none."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Keep none."""


_NO_COOKIES: Any = _NoCookies()


class _ExactUrl(EncodedURL):
    """A URL that treq sends as it is: hyperlink's normal form drops some "?", and it refuses IPv6 addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def to_uri(self) -> _ExactUrl:
        return self

    def to_text(self, with_password: bool = False) -> str:  # noqa: ARG002 - of the base class
        return self._text
