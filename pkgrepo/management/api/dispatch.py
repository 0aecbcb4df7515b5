"""Dispatches requests to the routes: identity, permission, origin, body, answer and audit of every call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cached_property, partial
from itertools import accumulate
from typing import Any
from urllib.parse import unquote

import msgspec
from attrs import evolve
from twisted.web.resource import IResource

from pkgrepo.errors import (
    AuthenticationFailed,
    AuthenticationRequired,
    Conflict,
    Forbidden,
    Invalid,
    PkgrepoError,
    TooManyAttempts,
)
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.publishing.uploads import LIMITS
from pkgrepo.http.answering.dispatch import App, SegmentResource, answer_with, refuse_unrouted
from pkgrepo.http.reading.multipart import Part, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, NO_STORE, Refusal, Response
from pkgrepo.management.api.schema import parse_fields, parse_json, tag_of
from pkgrepo.model import ANONYMOUS, Identity, Repository
from pkgrepo.repositories.format import load_formats

from .access_rules import Decided
from .audit_log import FAILED, REFUSED
from .call import Arguments, Call, ConcurrentChange
from .pages import Page, next_link
from .problems import ERRORS
from .route import NDJSON, Created, Lines, Route, Table, Value
from .services import ManagementServices

REFUSALS = (AuthenticationFailed, AuthenticationRequired, Forbidden, TooManyAttempts)
READ_AT_ONCE = 64 * 1024  # bytes of a body; a larger one is parsed in a thread, as 1 MiB can take 90 ms
ATTEMPTS = 5  # runs of the handler of a conditional change, while other changes are committed in between


class Dispatcher:
    """
    Serves the routes of all handlers in one Klein application.

    The pages for people call the same operations by ``call``, so that both have the same permissions and audit log.
    """

    def __init__(self, services: ManagementServices) -> None:
        self.routes: list[tuple[Table, Route]] = []
        self._services = services
        self._operations: dict[tuple[str, str], tuple[Route, Callable[..., Awaitable[object]]]] = {}
        self._handlers: dict[tuple[str, str], Callable[..., Coroutine[Any, Any, None]]] = {}

    def mount(self, table: Table, owner: object | None = None) -> None:
        """Serve the routes of a table, whose handlers are functions, or methods of ``owner``."""
        for route in table.routes:
            self.routes.append((table, route))
            handler = route.handler if owner is None else partial(route.handler, owner)
            self._operations[route.method, route.path] = route, handler
            handle = self._handle(route, handler)
            self._handlers |= dict.fromkeys(route.addresses, handle)

    def resource(self) -> IResource:
        """The resource of the application."""
        return SegmentResource(self.application())

    def application(self) -> App:
        """The application of all routes that are mounted."""
        app = App()
        refuse_unrouted(app, ERRORS)
        app.serve(self._handlers)
        return app

    def _handle(
        self, route: Route, handler: Callable[..., Awaitable[object]]
    ) -> Callable[..., Coroutine[Any, Any, None]]:
        async def handle(request: Request, **raw: str) -> None:
            parameters = {name: unquote(value) for name, value in raw.items()}
            await answer_with(request, ERRORS, lambda: self._answer(request, route, handler, parameters))

        return handle

    async def call(
        self,
        request: Request,
        decided: Decided,
        operation: tuple[str, str],
        parameters: Mapping[str, str],
        *,
        query: Mapping[str, str | int | bool] | None = None,
        fields: Mapping[str, Any] | None = None,
        parts: AsyncIterator[Part] | None = None,
        if_match: bytes | None = None,
    ) -> Any:
        """
        Run an operation, a pair of method and path as in its table, for the page that ``request`` asks for.

        ``parameters`` are those of the path, ``fields`` the object that a client would send as body, ``parts`` what is
        left of a form, ``if_match`` the ETag that what is changed still has to have. The result is what the handler
        returns, a new value without its address. Errors are those of the API. What was ``decided`` for the caller holds
        for operations that read, until one changes something.
        """
        route, handler = self._operations[operation]
        arguments = {name.encode(): [_argument(value)] for name, value in (query or {}).items()}
        reads = route.method == "GET"
        asked = decided if reads else self.decided(decided.identity)
        call = self._call(request, arguments, route, parameters, asked, if_match)

        async def read_body() -> Any:
            return parse_fields(fields or {}, route.body)

        try:
            value = await self._perform(call, handler, dict(parameters), read_body, parts=parts)
        finally:
            if not reads:
                decided.forget()
        return value.value if isinstance(value, Created | Value) else value

    def is_change(self, method: str, path: str) -> bool:
        """Whether an operation changes something, which the audit log names."""
        return bool(self._operations[method, path][0].audit)

    @cached_property
    def guards(self) -> Mapping[tuple[str, str], str]:
        """
        What conditional operations look at: the path, as in its table, of the value whose ETag If-Match has, by methods
        and paths of operations. It is that of the operation, or, where nothing is shown there, the closest above it.
        """
        found = {}
        for (method, path), (route, _) in self._operations.items():
            if route.conditional:
                above = accumulate(path.split("/"), "{}/{}".format)
                found[method, path] = [each for each in above if ("GET", each) in self._operations][-1]
        return found

    def decided(self, identity: Identity, *, kept: bool = False) -> Decided:
        """What is decided for a caller; nothing yet. See L{Decided} for ``kept``."""
        return Decided(identity, self._services.shared.registry, self._services.callers.authorizer, kept=kept)

    async def _answer(
        self, request: Request, route: Route, handler: Callable[..., Awaitable[object]], parameters: dict[str, str]
    ) -> Response:
        if_match = request.header(b"if-match")
        call = self._call(request, request.args, route, parameters, self.decided(ANONYMOUS), if_match)

        async def identify() -> None:
            self._services.shared.access.check_origin(request)
            call.identity = await self._services.shared.access.identify(request, blank=route.blank)

        async def read_body() -> Any:
            data = await request.body.read_all(route.largest)
            if len(data) <= READ_AT_ONCE:
                return parse_json(data, route.body)
            return await self._services.shared.pools.cpu(parse_json, data, route.body)

        return render(call, await self._perform(call, handler, parameters, read_body, identify))

    def _call(
        self,
        request: Request,
        arguments: Arguments,
        route: Route,
        parameters: Mapping[str, str],
        decided: Decided,
        if_match: bytes | None,
    ) -> Call:
        return Call(
            request=request,
            arguments=arguments,
            route=route,
            services=self._services,
            object="/".join(parameters.values()),
            decided=decided,
            if_match=if_match,
        )

    async def _perform(
        self,
        call: Call,
        handler: Callable[..., Awaitable[object]],
        parameters: dict[str, str],
        read_body: Callable[[], Awaitable[Any]],
        identify: Callable[[], Awaitable[None]] | None = None,
        parts: AsyncIterator[Part] | None = None,
    ) -> object:
        """Identify the caller, check the permission, read the body, run the handler, and write the audit row."""
        route = call.route
        try:
            if identify is not None:
                await identify()
            await self._authorize(call, parameters)
            if route.every_format:
                await load_formats(self._services.formats.values(), self._services.shared.pools.cpu)
            arguments: dict[str, Any] = dict(parameters)
            if route.body is not None:
                body = await read_body()
                if route.method == "PATCH" and not msgspec.to_builtins(body):
                    raise Invalid("the body names nothing to change")
                arguments["body"] = body
            if route.form:
                arguments["parts"] = parts or read_form(call.request.body, call.request.header(b"content-type"), LIMITS)
            value = await _run(call, handler, arguments)
            if route.audit and not call.audited and not call.only_asks:
                self._services.callers.audit_log.enqueue(call.entry())
        except (PkgrepoError, Refusal) as error:
            self._audit_failure(call, error)
            raise
        return value

    async def _authorize(self, call: Call, parameters: dict[str, str]) -> None:
        """Check the permission; only the head of the request is read."""
        request, services = call.request, self._services
        call.identity = await call.route.access.effective_identity(call.identity, services.shared.catalog)
        await call.decided.refresh()
        asked = parameters.pop("repository", None)
        repository = None if asked is None else call.decided.find(asked)
        if repository is not None:  # which another process may have added right now
            in_thread = services.shared.pools.cpu
            await load_formats(filter(None, [services.formats.get(repository.format)]), in_thread)
        if repository is not None and "package" in parameters:
            call.package = self._package_key(repository, parameters["package"])
        parameters.pop("package", None)
        await call.route.access.check(
            call.identity,
            call.route.method,
            services.callers.authorizer,
            repository=repository,
            package=call.package,
            asked=asked or "",
            may=call.may,
        )
        if repository is not None:
            call.repository = repository
            request.repository = call.object
        elif asked is not None:
            raise unknown(call.identity, asked)

    def _package_key(self, repository: Repository, name: str) -> str:
        try:
            key: str = self._services.formats[repository.format].package_key(name)
        except (Invalid, KeyError):
            return name  # no package has such a name: the handler finds none
        return key

    def _audit_failure(self, call: Call, error: Exception) -> None:
        """Audit refusals of requests with credentials, and failures of requests that change something."""
        if isinstance(error, REFUSALS):
            if call.request.header(b"authorization") is None and call.identity.anonymous:
                return
            outcome = REFUSED
        elif call.route.audit and not call.identity.anonymous:
            outcome = FAILED
        else:
            return
        entry = call.entry(outcome=outcome, detail={"reason": str(error)})
        if isinstance(error, AuthenticationFailed | TooManyAttempts):
            entry = evolve(entry, action="login")
        elif not entry.action:
            entry = evolve(entry, action=f"{call.route.method} {call.route.path}")
        self._services.callers.audit_log.enqueue(entry)


async def _run(call: Call, handler: Callable[..., Awaitable[object]], arguments: Mapping[str, Any]) -> object:
    """
    Run the handler and return its result.

    The handler checks If-Match before it writes (RFC 9110 section 13.1.1). If another change was committed between the
    check and the write, the handler runs again.

    :raises Conflict: another change was committed during each of ``ATTEMPTS`` runs
    """
    for _ in range(ATTEMPTS):
        if call.route.method != "GET":  # its body took time, while other changes may have been committed
            await call.remember_serials()
        with suppress(ConcurrentChange):
            return await handler(call, **arguments)
    raise Conflict("other changes came in between again and again; nothing was changed, try again")


def render(call: Call, value: object) -> Response:
    """Convert the value that a handler returned to an answer (see the table in L{route})."""
    headers = NO_STORE
    status = 200 if call.route.status == 201 else call.route.status
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(204, headers=headers)
    if isinstance(value, Created):
        status = 201
        headers = (*headers, (b"Location", value.location.encode("latin-1")))
        value = value.value
    elif isinstance(value, Value):
        value = value.value
    etag = None
    if isinstance(value, Lines):
        if value.page.next is not None:
            headers = (*headers, (b"Link", _next_link(call, value.page.next)))
        body = b"".join(msgspec.json.encode(item) + b"\n" for item in value.page.items)
        return Response(body=body, content_type=NDJSON, headers=headers)
    if isinstance(value, Page):
        if value.next is not None:
            headers = (*headers, (b"Link", _next_link(call, value.next)))
    elif status in (200, 201):
        etag = tag_of(value)
    return Response(status, msgspec.json.encode(value), content_type=JSON, headers=headers, etag=etag)


def _argument(value: str | int | bool) -> bytes:
    return str(value).lower().encode() if isinstance(value, bool) else str(value).encode()


def _next_link(call: Call, cursor: str) -> bytes:
    query = [
        (name.decode("utf-8", "replace"), value.decode("utf-8", "replace"))
        for name, values in call.arguments.items()
        for value in values
    ]
    path = call.request.raw_path.decode("latin-1")
    return next_link(call.base_url + path, query, cursor)
