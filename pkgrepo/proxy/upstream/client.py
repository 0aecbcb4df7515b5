"""The client of one route: requests with redirects, retries, permits and health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from pkgrepo import __version__
from pkgrepo.concurrency import proxy_loop
from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.concurrency.lru import Lru
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
from pkgrepo.model import ReadLimits, UpstreamHealth, UpstreamState
from pkgrepo.outbound.addresses import ConnectingTimedOut
from pkgrepo.outbound.agent import Ways
from pkgrepo.outbound.client import OutboundClient
from pkgrepo.outbound.urls import Origin, Target, join_path, parse_url, resolve_reference
from pkgrepo.proxy.upstream.failures import DECISIONS, LOOP, read_refusal
from pkgrepo.proxy.upstream.limits import MOST_TRIES, Deadline, HostPermits, pause_before_retry
from pkgrepo.proxy.upstream.routes import Route, UpstreamSettings, refuse_proxy_loop

from .failures import ABOUT_ANSWER, ERRORS, explain, judge
from .health import Health
from .response import Reading, UpstreamResponse

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
NOT_OF_HEAD = frozenset({401, 429, LOOP})  # failures that a GET would meet as well; all others may be of HEAD alone
MOST_TRYING_S = 2.0  # seconds; a person waits for what was configured
MOST_FAULTS = 100  # of the configuration, which are logged once
MOST_HOSTS = 32  # whose health is remembered, beside the route's own

log = Logger()

_PASSED = proxy_loop.FIELD.decode("ascii")
# Fields for the host that a request is sent to first; redirects to others have none of them.
_FIRST_HOST = frozenset({"authorization", "cookie", "proxy-authorization", "traceparent", "tracestate"})


@frozen(kw_only=True)
class Shared:
    """What the upstreams of one process share; ``jitter`` returns a number from 0 to 1."""

    reactor: Any
    settings: UpstreamSettings
    permits: HostPermits
    jitter: Callable[[], float]


@frozen(kw_only=True)
class _Request:
    """
    A request as the caller wants it; ``credentials`` are further fields for the host it is sent to first.

    With ``only_head`` no body is wanted, whatever the method is. For ``kind`` and ``subject`` see L{Upstream.open}.
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


class Upstream:
    """
    The client of one route, with its own connections. ``authorization`` is the Authorization field of the route.

    ``on_traffic`` is called after each request with the bytes of the body that were read, and with the seconds until
    its end. ``on_health`` is called when the route's own host is taken to be down, or answers again; see L{Health}.
    """

    def __init__(
        self,
        repository_id: int,
        route: Route,
        authorization: str | None,
        shared: Shared,
        ways: Ways,
        on_traffic: Callable[[int, float], None],
        on_health: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        self.route = route
        self._repository_id = repository_id
        self._on_traffic = on_traffic
        self._authorization = authorization
        self._shared = shared
        self._reactor = shared.reactor
        self._ways = ways
        self._client = OutboundClient(ways, shared.settings.max_connections_per_host)
        self._own_health = Health(self.name, route.target.host, self._reactor, shared.jitter, on_health)
        self._other_health: Lru[tuple[Origin, str], Health] = Lru(MOST_HOSTS)
        self._faults: set[tuple[str, str]] = set()
        self.fault: str | None = None  # of the configuration, the last time; a clause about "it"
        self._open_count = 0
        self._retired = False
        self._closed = False

    @property
    def name(self) -> str:
        """The name of the route."""
        return self.route.name

    @property
    def url(self) -> str:
        """The URL of the route, without a slash at its end."""
        return self.route.url

    def health(self) -> UpstreamHealth:
        """What is known about the route's own host."""
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
        """
        Send a GET or HEAD, or a POST with a ``body``; the value of the ``async with`` block is the response.

        A POST must be a question that changes nothing, since it may be sent more than once. It is not redirected.

        ``url`` is absolute, or a path as on the wire (with a query, if any) below the route's URL. The credentials of
        the route go only to its own scheme, host and port, and with ``entrust`` to those of ``url``, which the route's
        own host must have named for that; an Authorization field in ``headers`` replaces them.
        Redirects are followed. After failures that another try may mend, a request is sent again: ``tries`` times in
        all.

        ``subject`` is the package that the request is about; without one, each URL is a subject. An upstream at which
        several fail is not asked for a while. ``kind`` names requests for something other than packages, such as
        searches: only those of the same kind are not sent after failures of theirs.

        ``limits`` defaults to those of documents. With ``decode`` the response may be compressed in transfer.

        Any status below 500 is a response, except 429 and those of 401, 403 and 451 that are not in ``accept``. A HEAD
        that fails is a GET the second time, whose body is not wanted: some servers and what is before them know no
        HEAD, and a GET may have the sentence of a refusal. Leaving the block before the end of the body closes the
        connection.

        :raises Invalid: ``url`` is no http or https URL
        :raises UpstreamUnavailable: it cannot be reached, or failed so often that it is not asked at the moment
        :raises UpstreamTimeout: it was too slow; :raises UpstreamLimited: it wants no requests for a while
        :raises UpstreamForbiddenAddress: the URL, or a redirect, leads to an address that is not allowed
        :raises UpstreamDenied: it answers 403 or 451; :raises UpstreamMisconfigured: 401, or its certificate is wrong
        :raises UpstreamTooLarge: the announced length exceeds ``limits``
        :raises UpstreamFailed: it answered with another error, or not in HTTP
        """
        if method not in (("GET", "HEAD") if body is None else ("POST",)):
            raise ValueError(f"{method} is not sent to upstreams")
        refuse_proxy_loop(self._repository_id, self.name)
        target = self._find_target(url)
        limits = limits or self._shared.settings.documents
        given = {name.lower(): value for name, value in (headers or {}).items()}
        credentials = {name: given.pop(name) for name in _FIRST_HOST & given.keys()}
        if self._authorization is not None and (entrust or target.origin == self.route.target.origin):
            credentials.setdefault("authorization", self._authorization)
        request = _Request(
            method=method,
            only_head=method == "HEAD",
            kind=kind,
            subject=subject or target.text,
            fields={
                **given,
                "accept-encoding": "gzip" if decode else "identity",
                "user-agent": f"pkgrepo/{__version__}",
                _PASSED: proxy_loop.names_with(self._repository_id),
            },
            credentials=credentials,
            body=body,
            tries=tries,
            limits=limits,
            deadline=Deadline.start(limits.total_s, self._reactor),
        )
        self._open_count += 1
        started_s, response = self._reactor.seconds(), None
        try:
            async with AsyncExitStack() as stack:
                response = await self._follow(request, target, stack)
                if _may_be_of_head(method, response.status):
                    await stack.aclose()
                    response = await self._follow(evolve(request, method="GET"), target, stack)
                if response.status not in accept:
                    await self._check_refusal(response, kind)
                response.prepare()
                yield response
        finally:
            self._open_count -= 1
            ended_s = None if response is None else response.ended_s
            seconds = (self._reactor.seconds() if ended_s is None else ended_s) - started_s
            self._on_traffic(0 if response is None else response.received, seconds)
            self._close_if_retired()

    def misconfigured(self, reason: str, detail: str = "") -> UpstreamMisconfigured:
        """
        The error for a fault of the configuration, which is logged once.

        ``reason`` is that of L{UpstreamFailed}. ``detail`` is in the log only, and may be an address.
        """
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
        await self._client.close()

    async def try_connection(self) -> None:
        """Connect, and set ``fault`` if the configuration has one; it may be out of reach without one."""
        try:
            trying = Deferred.fromCoroutine(self._client.connect(self.route.target))
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
            # What its searches or audits want does not keep clients from its packages.
            raise UpstreamMisconfigured(self.name, reason) if kind else self.misconfigured(reason)

    def _explain_401(self, response: UpstreamResponse) -> str:
        if parse_url(response.url).origin != self.route.target.origin:
            return "the host to which it redirects wants credentials"
        return self.route.about_credentials(given=self._authorization is not None)

    def _close_if_retired(self) -> None:
        if self._retired and not self._open_count:
            self._client.keep_none()

    def _find_target(self, url: str) -> Target:
        try:
            return parse_url(url) if url.startswith(("http://", "https://")) else join_path(self.route.target, url)
        except ValueError as error:
            raise Invalid(f"upstream {self.name!r} has no such URL: {error}") from None

    async def _follow(self, request: _Request, target: Target, stack: AsyncExitStack) -> UpstreamResponse:
        """The response after redirects; ``stack`` closes it."""
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
        """The response of one host, after retries; ``stack`` closes it and gives its permit back."""
        health = self._health_of(target.origin, request.kind)
        for tries in count(1):
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
            # After the failures of others no second try would be sent: none is waited for.
            retry = tries < request.tries and health.state is not UpstreamState.OPEN
            pause_s = pause_before_retry(outcome, tries, self._shared.jitter) if retry else None
            if pause_s is None or pause_s >= request.deadline.left_s or self._closed:
                if isinstance(outcome, UpstreamLimited):
                    health.limited(outcome.retry_after_s)
                raise outcome
            await deferLater(self._reactor, pause_s)
        raise AssertionError("it tries until it returns or raises")

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
            answering = self._client.request(request.method, target.text, fields, request.body)
            answer = await request.deadline.wait(answering)  # connecting and the response have time limits of their own
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
        response = UpstreamResponse(answer, url, reading, only_head=request.only_head)
        failed = judge(self.name, response)
        if failed is not None and _may_be_of_head(request.method, response.status):
            return response  # the GET tells how it is
        if failed is None:
            health.succeeded(self._reactor.seconds() - started)
            self.fault = None
            return response
        response.close()
        return self._note(failed, health, request.subject)

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
        if (health := self._other_health.get(place)) is None:
            shown = f"{origin[1]} ({kind})" if kind else origin[1]
            health = Health(self.name, shown, self._reactor, self._shared.jitter)
            self._other_health.put(place, health)
        return health


def _may_be_of_head(method: str, status: int) -> bool:
    """Whether a GET may have another response than this one to a HEAD."""
    return method == "HEAD" and status >= 400 and status not in NOT_OF_HEAD
