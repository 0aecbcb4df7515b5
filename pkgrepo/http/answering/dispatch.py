"""
From a complete head to the response: prepared responses, the resource tree, and 500 for errors that neither handles.

Handlers of Klein routes return responses, or raise errors that a table of each format turns into responses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache, wraps
from typing import Any, TypeVar
from urllib.parse import quote_from_bytes, urlsplit

from attrs import evolve
from klein import Klein
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, PathConverter, RequestRedirect, Rule
from werkzeug.routing.rules import RuleFactory
from zope.interface import implementer

from pkgrepo.concurrency import proxy_loop
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.http.answering.send import respond, send
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response, error_response
from pkgrepo.sentences import TOO_MANY_OPEN_FILES
from pkgrepo.untrusted.text import decode_parts

Render = Callable[[Request, Refusal], Response]

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])
_log = Logger()
_SAFE = "@:+~!$&'()*,;="  # not percent-encoded in a path segment (RFC 3986 section 3.3)


def too_many_files() -> Refusal:
    """The refusal while the process has no file descriptor left; formats render it in their own shape."""
    return Refusal(503, TOO_MANY_OPEN_FILES, "unavailable", headers=((b"Retry-After", b"5"),))


class ErrorTable:
    """
    Statuses and codes by type of exception, and how a format renders refusals.

    The most specific type wins, along the exception's ancestors. ``str(exception)`` becomes the sentence, and must hold
    nothing that the client may not know. Its ``retry_after_s``, if it has one, becomes Retry-After of a 429 or 503 (RFC
    9110 section 10.2.3), its ``header_reason`` ``X-Pkgrepo-Reason``, and its ``challenge`` WWW-Authenticate.
    """

    def __init__(self, statuses: Mapping[type[Exception], tuple[int, str]], render: Render) -> None:
        self._statuses = dict(statuses)
        self._render = render

    def answer(self, request: Request, error: BaseException) -> Response:
        """
        The response to ``request`` after ``error``.

        An exception that is neither a L{Refusal} nor in the table is logged with its traceback; the client gets 500
        and the request's id, nothing else. Being out of file descriptors is 503.
        """
        return self._render(request, self.refusal(request, error))

    def refusal(self, request: Request, error: BaseException) -> Refusal:
        """What ``error`` is for the client: see ``answer``."""
        if isinstance(error, Refusal):
            return error
        for ancestor in type(error).__mro__:
            known = self._statuses.get(ancestor)
            if known is not None:
                status, code = known
                return Refusal(
                    status,
                    str(error),
                    code,
                    headers=(*_retry_after(error, status), *_reason(error), *_challenge(error)),
                )
        if is_out_of_descriptors(error):
            return too_many_files()
        _log.failure("request {request_id} failed", failure=Failure(error), request_id=request.request_id)
        return Refusal(500, f"internal error, request id {request.request_id}", "INTERNAL_ERROR")


def _retry_after(error: BaseException, status: int) -> Fields:
    seconds: int | None = getattr(error, "retry_after_s", None)
    return ((b"Retry-After", b"%d" % seconds),) if seconds is not None and status in (429, 503) else ()


def _challenge(error: BaseException) -> Fields:
    challenge: bytes | None = getattr(error, "challenge", None)
    return () if challenge is None else ((b"WWW-Authenticate", challenge),)


def _reason(error: BaseException) -> Fields:
    reason: str | None = getattr(error, "header_reason", None)
    if reason is None:
        return ()
    printable = "".join(each if each.isprintable() else "?" for each in reason)
    return ((b"X-Pkgrepo-Reason", printable.encode("ascii", "backslashreplace")),)


def answering(errors: ErrorTable) -> Callable[[Handler], Callable[..., Awaitable[None]]]:
    """
    Make a route of ``async def handler(self?, request, ...) -> Response``.

    What it raises is answered as ``errors`` says. When the client leaves, the handler is cancelled. An error after the
    head was written aborts the connection.
    """

    def decorate(handler: Handler) -> Callable[..., Awaitable[None]]:
        @wraps(handler)
        async def answered(*args: Any, **kwargs: Any) -> None:
            request = args[0] if isinstance(args[0], Request) else args[1]
            await answer_with(request, errors, lambda: handler(*args, **kwargs))

        return answered

    return decorate


async def answer_with(request: Request, errors: ErrorTable, handle: Callable[[], Awaitable[Response]]) -> None:
    """Run ``handle`` and send what it returns, or what ``errors`` makes of what it raises."""
    passed = request.header(proxy_loop.FIELD.lower())
    if passed is not None:
        proxy_loop.receive(passed)
    try:
        answer = await handle()
        if request.notes:
            answer = evolve(answer, headers=(*answer.headers, *map(_warning, request.notes)))
        await send(request, answer)
    except CancelledError:
        if not request.gone:
            raise
    except Exception as error:  # noqa: BLE001 - the outermost place
        if request.startedWriting:
            if not request.gone:
                _log.failure("request {request_id} failed after its head", request_id=request.request_id)
            if not request.finished:
                request.abort()
            return
        await _send_error(request, errors, error)


def _warning(note: str) -> tuple[bytes, bytes]:
    """A sentence as a header field (RFC 7234 section 5.5)."""
    text = note.translate({ord('"'): "'", ord("\\"): "/"})
    return b"Warning", b'299 - "%s"' % text.encode("ascii", "replace")


async def _send_error(request: Request, errors: ErrorTable, error: Exception) -> None:
    try:
        await send(request, errors.answer(request, error))
    except Exception:  # noqa: BLE001 - the response to an error is broken itself
        untyped: Any = request
        untyped.processingFailed(Failure())


def refuse_unrouted(app: Klein, errors: ErrorTable) -> None:
    """Answer what ``app``'s routing refuses (unknown paths, methods, redirects) as ``errors`` says, too."""

    async def unrouted(*args: Any) -> None:
        request, failure = args[-2:]  # handlers of a bound application get that before them
        await _send_error(request, errors, refusal_of(failure.value, request))

    handle: Any = app.handle_errors(HTTPException)
    handle(unrouted)


def refusal_of(error: HTTPException, request: Request) -> Refusal:
    """The router's ``error`` as a refusal of ``request``."""
    code = error.code or 500
    if isinstance(error, RequestRedirect):
        # The router knows neither the address that the client used nor the query.
        query = f"?{request.raw_query.decode('ascii')}" if request.raw_query else ""
        location = request.base_url + urlsplit(error.new_url).path + query
        return Refusal(code, "this is at another address", headers=((b"Location", location.encode("ascii")),))
    allowed = getattr(error, "valid_methods", None)
    headers = ((b"Allow", ", ".join(sorted(allowed)).encode("ascii")),) if allowed else ()
    sentence = {404: "there is nothing at this address", 405: "this address does not take this method"}.get(code)
    return Refusal(code, sentence or error.name, headers=headers)


class ProcessedRequest(Request):
    """A request with the methods that response it; handlers use it as a L{Request}."""

    def process(self) -> None:
        """Answer with what ``site.find_prepared`` returns, else through the resource tree."""
        site = self.site
        try:
            with site.request_context():
                if self.method in (b"GET", b"HEAD") and site.find_prepared is not None and self.body_is_empty:
                    try:
                        prepared = site.find_prepared(self)
                        if prepared is not None:
                            under_way = prepared.serve(self)
                            if under_way is not None:
                                under_way.addErrback(self._render_instead)
                            return
                    except Exception as error:
                        if self.startedWriting or not isinstance(error.__cause__ or error, OSError):
                            raise
                        # A file that cannot be opened: the resource tree answers in the client's format.
                self._render()
        except Exception:  # noqa: BLE001 - the outermost place
            self.processingFailed(Failure())

    def _render_instead(self, failure: Failure) -> None:
        """Nothing of a prepared response was sent, since its bytes are not there: the resource tree says so."""
        if self.startedWriting:
            _log.failure("a prepared response failed, request {request_id}", failure, request_id=self.request_id)
            return
        try:
            with self.site.request_context():
                self._render()
        except Exception:  # noqa: BLE001 - the outermost place
            self.processingFailed(Failure())

    def _render(self) -> None:
        if self.path == b"*":
            respond(self, Response())
            return
        self.prepath = []
        self.postpath = decode_parts(self.path[1:])
        if not _is_utf8(self.postpath):  # Klein would log this as an error of ours
            respond(self, error_response("the address is not UTF-8", 400))
            return
        untyped: Any = self
        untyped.render(self.site.getResourceFor(self))

    def processingFailed(self, reason: Failure) -> Failure:
        """Answer 500 with the request's id, under which the error is logged."""
        refusal = Refusal(500, f"internal error, request id {self.request_id}")
        if is_out_of_descriptors(reason.value):
            refusal = too_many_files()
        else:
            _log.failure("request {request_id} failed", failure=reason, request_id=self.request_id)
        if self.startedWriting and not self.finished:
            self.abort()
        elif not self.startedWriting:
            respond(self, error_response(refusal.sentence, refusal.status, refusal.headers))
        return reason


def _is_utf8(parts: list[bytes]) -> bool:
    try:
        b"/".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class RawConverter(PathConverter):
    """Matches any rest of a path, also one with empty segments or line ends: ``<raw:rest>``."""

    regex = r"[\s\S]*?"
    part_isolating = False  # it has slashes


class _MatchedRule(Rule):
    """
    A rule that only matches paths.

    Werkzeug also compiles two functions for each rule that build its URLs, which nothing here uses: for the 500 routes
    of a server they are a quarter of a second of its start, and 3 MB.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:  # noqa: ARG002 - Werkzeug's
        return _build_nothing


class _MatchedRules(Map):
    """The routes of an application, each of which becomes a rule that only matches."""

    def __init__(self) -> None:
        super().__init__(merge_slashes=False, strict_slashes=False, converters={"raw": RawConverter})

    def add(self, rulefactory: RuleFactory) -> None:
        """Add the rules of a factory, which is a rule itself."""
        for rule in rulefactory.get_rules(self):
            super().add(_MatchedRule(rule.rule, **rule.get_empty_kwargs()))


class App(Klein):
    """
    An application whose routes match with and without a trailing slash, and never merge slashes or redirect.

    It builds no URLs (``url_for``).
    """

    def __init__(self) -> None:
        super().__init__()
        self._url_map = _MatchedRules()

    def serve(self, handlers: Mapping[tuple[str, str], Callable[..., Coroutine[Any, Any, None]]]) -> None:
        """
        Serve all routes of an application that has none, by method and path, and no others after that.

        The applications of a process that have the same routes share their rules.
        """
        assert not self._endpoints, "this application has routes"
        self._url_map = _shared_rules(tuple(handlers))
        for (method, path), handle in handlers.items():
            self._endpoints[f"{method} {path}"] = self._executed(path, handle)

    def _executed(self, path: str, handle: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Deferred[None]]:
        def execute(_instance: object, request: Request, **parameters: str) -> Deferred[None]:
            return ensureDeferred(handle(request, **parameters))

        execute.segment_count = self._segments_in_url(path)  # type: ignore[attr-defined] # as Klein has it
        return execute


@implementer(IResource)
class SegmentResource(Resource):
    """
    A Klein application in whose paths %2F does not separate segments.

    Klein joins decoded segments before it matches a path. This resource passes encoded segments to Klein, and
    handlers decode the parameters.
    """

    isLeaf = True

    def __init__(self, app: Klein) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._resource = app.resource()

    def render(self, request: Any) -> Any:
        """Encode the path segments, and pass the request to Klein."""
        request.postpath = [quote_from_bytes(segment, safe=_SAFE).encode("ascii") for segment in request.postpath] or [
            b""
        ]
        return self._resource.render(request)


@cache
def _shared_rules(addresses: tuple[tuple[str, str], ...]) -> Map:
    rules = _MatchedRules()
    for method, path in addresses:
        Map.add(rules, _MatchedRule(path, methods=[method], endpoint=f"{method} {path}"))
    rules.update()
    return rules


def _build_nothing(*_: object, **__: object) -> tuple[str, str]:
    raise NotImplementedError("routes are matched only, and build no addresses")
