"""
Spans of requests, and of the work for them, in the form of OpenTelemetry.

=========================  ========  ===============================================================================
span                       kind      lasts
=========================  ========  ===============================================================================
``GET repositories``       server    from the head of a request to the end of its response
``catalog write``, ...     client    until the result of a query or command is there
``blob commit``, ...       internal  until the blob store has done it
``upstream GET``           client    from the request to an upstream to the end of its response, with all tries
=========================  ========  ===============================================================================

Requests are traced by a class of requests and an access log, which the site gets; the rest by wrappers around methods,
which are there from the first server of this process that traces until the last one stops. They record only within a
request that is recorded and has not ended, by the tracer of its server; both are in context variables.

This module needs the extra ``traces``. Import it by L{pkgrepo.composition.tracing.setup}.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from twisted.internet.defer import Deferred

from pkgrepo.auth.tokens.text import hide_tokens
from pkgrepo.composition.databases import AnyCatalog
from pkgrepo.composition.tracing.export import Provider
from pkgrepo.config.sections.server import Traces
from pkgrepo.errors import UpstreamFailed
from pkgrepo.http.access_log import CLIENT_LEFT, LONGEST_PATH
from pkgrepo.http.answering.dispatch import ProcessedRequest
from pkgrepo.http.repeats import LogRepeat
from pkgrepo.http.request import Request
from pkgrepo.http.site import AccessLog, Site
from pkgrepo.management.metrics.durations import METHODS, area
from pkgrepo.outbound.addresses import matches_host
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.proxy.upstream.response import UpstreamResponse
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.reading import FilesystemBlob
from pkgrepo.storage.blobs.receiving import ReceivedUpload
from pkgrepo.storage.blobs.s3.reading import BucketBlob
from pkgrepo.storage.blobs.s3.store import BucketBlobStore

CATALOG: Final = ("look", "scan", "write")
STORE: Final = ("open", "resume", "commit_together", "stat", "delete")
UPLOAD: Final = ("seal", "commit", "suspend")
BLOB: Final = ("as_file", "deliver")

_STORES: Final = (FilesystemBlobStore, BucketBlobStore)
_BLOBS: Final = (FilesystemBlob, BucketBlob)
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_FIELDS: Final = ("traceparent", "tracestate")  # W3C Trace Context, sections 3.2 and 3.3
_NOWHERE: Final = Context()

Attributes = Mapping[str, str | int]
_Wrap = Callable[[Any], Any]


class Tracing:
    """Traces of one server; ``exporter`` gets them instead of the collector of the settings."""

    def __init__(self, settings: Traces, reactor: Any, exporter: SpanExporter | None = None) -> None:
        self._settings = settings
        self._reactor = reactor
        self._exporter = exporter
        self._provider: Provider | None = None
        self._patches: list[_Patch] = []

    def start(self, site: Site, catalog: AnyCatalog) -> None:
        """Trace the requests of a site from now on, and what is done for them."""
        settings = self._settings
        provider = self._provider = Provider(settings, self._reactor, self._exporter)
        hosts = frozenset(each.lower() for each in settings.propagate_to)
        site.request_class = _request_class(_Origin(provider.tracer, hosts))
        if site.access_log is not None:
            site.access_log = _SpanLog(provider.tracer, site.access_log)
        self._patches = [
            *(_Patch.of(type(catalog), name, _timed("catalog", name)) for name in CATALOG),
            *(_Patch.of(each, name, _timed("blob", name)) for each in _STORES for name in STORE),
            *(_Patch.of(ReceivedUpload, name, _timed("blob", name)) for name in UPLOAD),
            *(_Patch.of(each, name, _timed("blob", name)) for each in _BLOBS for name in BLOB),
            _Patch.of(Upstream, "open", _asked),
        ]

    async def stop(self) -> None:
        """Send the last spans, for some seconds at most, and trace nothing more."""
        patches, self._patches = self._patches, []
        for each in patches:
            each.release()
        if self._provider is not None:
            await self._provider.stop()


class _Origin:
    """What the wrappers need of the server whose request they are called for."""

    def __init__(self, tracer: Tracer, hosts: frozenset[str]) -> None:
        self.tracer = tracer
        self.hosts = hosts


_origin: ContextVar[_Origin | None] = ContextVar("origin", default=None)


class _Patch:
    """A method that is wrapped for some servers of this process; the last ``release`` brings the original back."""

    _all: dict[tuple[type, str], _Patch] = {}

    def __init__(self, owner: type, name: str) -> None:
        self._place = owner, name
        self._original = vars(owner)[name]
        self._uses = 0

    @classmethod
    def of(cls, owner: type, name: str, wrap: _Wrap) -> _Patch:
        """Wrap a method, unless it is wrapped already."""
        found = cls._all.get((owner, name))
        if found is None:
            found = cls._all[owner, name] = cls(owner, name)
            setattr(owner, name, wrap(found._original))
        found._uses += 1
        return found

    def release(self) -> None:
        """Undo one ``of``."""
        self._uses -= 1
        if not self._uses:
            setattr(*self._place, self._original)
            del self._all[self._place]


# Requests


def _request_class(origin: _Origin) -> type[ProcessedRequest]:
    """The class of requests that a server traces."""

    class TracedRequest(ProcessedRequest):
        def process(self) -> None:
            """Answer within a span, which the access log ends."""
            parent = _parent_of(self)
            span = origin.tracer.start_span(_name(self), parent, SpanKind.SERVER, _head_attributes(self))
            self.__dict__["span"] = span
            # What is begun to answer the request copies the context; the span is not that of the next one.
            with _within(set_span_in_context(span, parent), origin):
                super().process()

    return TracedRequest


@contextmanager
def _within(context: Context, origin: _Origin) -> Iterator[None]:
    known, attached = _origin.set(origin), contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(attached)
        _origin.reset(known)


class _SpanLog:
    """Ends the span of each request that the access log gets; see L{AccessLog}."""

    def __init__(self, tracer: Tracer, log: AccessLog) -> None:
        self._tracer = tracer
        self._log = log

    def request(self, request: Request) -> None:
        """Log a request, and end its span."""
        self._log.request(request)
        span: Span | None = request.__dict__.pop("span", None)
        if span is not None:
            span.set_attributes(_end_attributes(request))
            span.set_status(_status(request))
            span.end()

    def refused(self, client_address: str, status: int, sentence: str) -> None:
        """Log a malformed head, which has no span."""
        self._log.refused(client_address, status, sentence)

    def repeater(self, request: Request) -> LogRepeat:
        """A function that logs a further request with the same bytes, and records its span."""
        log, tracer, name, parent = self._log.repeater(request), self._tracer, _name(request), _parent_of(request)
        attributes, status = {**_head_attributes(request), **_end_attributes(request)}, _status(request)

        def record(client_address: str, request_id: bytes, seconds: float) -> None:
            log(client_address, request_id, seconds)
            ended = time.time_ns()
            own = {**attributes, "pkgrepo.request_id": request_id.decode("ascii")}
            span = tracer.start_span(name, parent, SpanKind.SERVER, own, start_time=ended - int(seconds * 1e9))
            span.set_status(status)
            span.end(ended)

        return record


def _parent_of(request: Request) -> Context:
    """The context that a request names in ``traceparent``; an empty one if it names none."""
    if b"traceparent" not in request.fields:
        return _NOWHERE
    carrier = {name: request.fields.get(name.encode(), b"").decode("latin-1") for name in _FIELDS}
    return _PROPAGATOR.extract({name: value for name, value in carrier.items() if value}, _NOWHERE)


def _method(request: Request) -> str:
    method = request.method.decode("latin-1")
    return method if method in METHODS else "_OTHER"


def _name(request: Request) -> str:
    return f"{_method(request)} {area(request)}"


def _head_attributes(request: Request) -> Attributes:
    """Never the query or a header field, which may have credentials."""
    return {
        "http.request.method": _method(request),
        "url.path": hide_tokens(request.raw_path.decode("latin-1"))[:LONGEST_PATH],
        "pkgrepo.request_id": request.request_id,
    }


def _end_attributes(request: Request) -> Attributes:
    found: dict[str, str | int] = {
        "http.response.status_code": request.code if request.startedWriting else CLIENT_LEFT,
        "http.response.body.size": request.sentLength,
    }
    if request.repository:
        found["pkgrepo.repository"] = request.repository
    if request.cache:
        found["pkgrepo.cache"] = request.cache
    return found


def _status(request: Request) -> Status:
    return Status(StatusCode.ERROR if request.startedWriting and request.code >= 500 else StatusCode.UNSET)


# Catalog and blobs


def _timed(room: str, name: str) -> _Wrap:
    """Wrap a method in a span; with ``catalog`` the first argument is a query or a command."""
    kind = SpanKind.CLIENT if room == "catalog" else SpanKind.INTERNAL

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            origin = _origin.get()
            if origin is None or not get_current_span().is_recording():
                return original(self, *args, **kwargs)
            attributes = {"code.function.name": _function_name(args[0])} if room == "catalog" else {}
            span = origin.tracer.start_span(f"{room} {name}", kind=kind, attributes=attributes)
            try:
                outcome = original(self, *args, **kwargs)
            except BaseException as error:
                _end(span, error)
                raise
            if isinstance(outcome, Deferred):
                return outcome.addBoth(_ended, span)
            if isinstance(outcome, Awaitable):
                return _until_end(outcome, span)
            _end(span)
            return outcome

        return call

    return wrap


def _function_name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"


def _ended(result: Any, span: Span) -> Any:
    _end(span, getattr(result, "value", None))
    return result


async def _until_end(outcome: Awaitable[Any], span: Span) -> Any:
    try:
        result = await outcome
    except BaseException as error:
        _end(span, error)
        raise
    _end(span)
    return result


def _end(span: Span, error: object = None) -> None:
    """End a span; of an error only its type is recorded, since its sentence may be for the operator alone."""
    if isinstance(error, BaseException):
        span.set_attribute("error.type", type(error).__name__)
        if not isinstance(error, GeneratorExit):
            span.set_status(Status(StatusCode.ERROR))
    span.end()


# Upstreams


def _asked(original: Callable[..., AbstractAsyncContextManager[UpstreamResponse]]) -> Callable[..., Any]:
    """Wrap ``Upstream.open`` in a span, and add ``traceparent`` where the settings say so."""

    @wraps(original)
    @asynccontextmanager
    async def call(
        self: Upstream, method: str, url: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> AsyncIterator[UpstreamResponse]:
        origin = _origin.get()
        if origin is None or not get_current_span().get_span_context().is_valid:
            async with original(self, method, url, headers, **options) as response:
                yield response
            return
        host, port = _place(self, url)
        attributes: dict[str, str | int] = {
            "http.request.method": method,
            "server.address": host,
            "server.port": port,
            "pkgrepo.upstream": self.name,
        }
        # Not current: the block of the caller is not part of it.
        span = origin.tracer.start_span(f"upstream {method}", kind=SpanKind.CLIENT, attributes=attributes)
        given = dict(headers or {})
        if matches_host(origin.hosts, host):
            _PROPAGATOR.inject(given, set_span_in_context(span))
        try:
            async with original(self, method, url, given, **options) as response:
                span.set_attribute("http.response.status_code", response.status)
                yield response
        except UpstreamFailed as error:
            _end(span, error)
            raise
        finally:
            if span.is_recording():
                span.end()

    return call


def _place(upstream: Upstream, url: str) -> tuple[str, int]:
    """The host and port that a request goes to first; none for a URL that is refused."""
    try:
        target = parse_url(url) if url.startswith(("http://", "https://")) else upstream.route.target
    except ValueError:
        return "", 0
    return target.host, target.port
