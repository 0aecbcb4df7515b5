"""
Tables of routes: the dispatcher serves them, and the OpenAPI document is made from them.

A module has a ``Table`` for the routes of one subject; its coroutine functions with a decorator such as ``@table.get``
handle them. What a handler returns becomes the answer as follows.

==============  ======================================================================
returned        answered
==============  ======================================================================
a value         JSON with the route's status and, unless it is a page, an ETag
``Created``     201 with ``Location``; a plain value from a route with status 201 is
                answered with 200: it existed before
``Value``       like a value, but may be None, which is JSON null
``Lines``       one JSON object on each line (NDJSON)
``None``        204
an ``Response``   as it is
==============  ======================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from attrs import Factory, evolve, field, frozen

from pkgrepo.http.responses import Response

from .access_rules import AccessRule
from .command import Command
from .pages import Page
from .schema import BODY_LIMIT

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[object]])
NDJSON = b"application/x-ndjson"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@frozen
class Parameter:
    """A query parameter; ``kind`` is its JSON type, and ``choices`` are its values, if only some can be given."""

    name: str
    explanation: str
    kind: Literal["string", "integer", "boolean"] = "string"
    choices: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The type and the choices, as JSON Schema has them."""
        return {"type": self.kind} | ({"enum": list(self.choices)} if self.choices else {})


@frozen
class Created(Generic[T]):
    """A new value, and its path on the server."""

    value: T
    location: str


@frozen
class Value(Generic[T]):
    """A value that may be null."""

    value: T


@frozen
class Lines:
    """A page to be sent as NDJSON: its items, one on each line."""

    page: Page[Any]


DRY_RUN = Parameter("dry_run", "Check the request and return what it would do; nothing is changed.", "boolean")
PAGING = (
    Parameter("limit", "Maximum number of items on the page, 1 to 1000; 50 by default.", "integer"),
    Parameter("cursor", "The value of next of the previous page; absent for the first page."),
    Parameter("count", "Whether to return the length of the whole list as total.", "boolean"),
)


def sorting(orders: Iterable[str], default: str) -> Parameter:
    """The parameter that selects the order of a list."""
    return Parameter("sort", f"The order: {', '.join(orders)}; {default} by default. A dash means descending.")


@frozen
class Route:
    """
    One operation.

    ``path`` is below ``/api``, in Klein's form. ``body`` is the type of the request's body, ``answer`` that of the
    answer's, or with ``paged`` that of an item. ``audit`` is the action in the audit log; every route that changes
    something has one. ``conditional``: the handler checks If-Match. ``blank``: Basic credentials with an empty name and
    password are treated as none. ``aliases`` are further methods and paths, which clients of other servers use.
    ``further`` are other success statuses than ``status``, with their descriptions, and ``refused`` are statuses of
    errors that only this operation has. ``refusal`` is the type of a 400 in the words of a protocol that others define.
    ``form``: the body is a form with a file (multipart/form-data), whose parts the handler reads while they arrive.
    ``asks``: a POST changes nothing. ``commands`` are those that make this call, and do no more. ``largest`` is the
    size in bytes of the largest body. ``every_format``: the handler asks all formats, which are loaded before it is
    called.
    """

    method: Method
    path: str
    handler: Callable[..., Awaitable[object]]
    access: AccessRule
    summary: str
    body: Any = None
    answer: Any = None
    status: int = 200
    query: tuple[Parameter, ...] = field(default=(), converter=tuple)
    paged: bool = False
    audit: str = ""
    media_type: str = "application/json"
    conditional: bool = False
    blank: bool = False
    aliases: tuple[tuple[str, str], ...] = field(default=(), converter=tuple)
    further: tuple[tuple[int, str], ...] = ()
    refused: tuple[tuple[int, str], ...] = ()
    refusal: Any = None
    form: bool = False
    asks: bool = False
    commands: tuple[Command, ...] = ()
    largest: int = BODY_LIMIT
    every_format: bool = False

    def __attrs_post_init__(self) -> None:
        assert not self.changes or self.audit, f"{self.method} {self.path} has no name in the audit log"

    @property
    def addresses(self) -> Iterator[tuple[str, str]]:
        """Method and path of the operation and its aliases, the operation's own first."""
        yield self.method, self.path
        yield from self.aliases

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every query parameter that the operation reads."""
        return (*self.query, *PAGING) if self.paged else self.query

    @property
    def changes(self) -> bool:
        """Whether the operation may change something on the server."""
        return self.method != "GET" and not self.asks


@frozen
class Table:
    """The routes of one subject, in the order of definition; ``name`` is their tag in the OpenAPI document."""

    name: str
    routes: list[Route] = field(default=Factory(list))

    def get(self, path: str, access: AccessRule, summary: str, **rest: Any) -> Callable[[Handler], Handler]:
        """
        Add a route with the handler ``async def handler(call[, body][, parts][, path parameters])``.

        ``rest`` are further fields of L{Route}. The types of the body and of the answer are those in the handler's
        annotations, unless it returns an ``Response``.
        """
        return self._add("GET", path, access, summary, rest)

    def post(self, path: str, access: AccessRule, summary: str, **rest: Any) -> Callable[[Handler], Handler]:
        """Like ``get``, for POST."""
        return self._add("POST", path, access, summary, rest)

    def put(self, path: str, access: AccessRule, summary: str, **rest: Any) -> Callable[[Handler], Handler]:
        """Like ``get``, for PUT."""
        return self._add("PUT", path, access, summary, rest)

    def patch(self, path: str, access: AccessRule, summary: str, **rest: Any) -> Callable[[Handler], Handler]:
        """Like ``get``, for PATCH."""
        return self._add("PATCH", path, access, summary, rest)

    def delete(self, path: str, access: AccessRule, summary: str, **rest: Any) -> Callable[[Handler], Handler]:
        """Like ``get``, for DELETE."""
        return self._add("DELETE", path, access, summary, rest)

    def command(self, usage: str, done: str = "", **rest: Any) -> Callable[[Handler], Handler]:
        """Name a command of the route that was added last. ``rest`` are further fields of L{Command}."""

        def decorate(handler: Handler) -> Handler:
            route = self.routes[-1]
            self.routes[-1] = evolve(route, commands=(Command(usage, done, **rest), *route.commands))
            return handler

        return decorate

    def _add(
        self, method: Method, path: str, access: AccessRule, summary: str, rest: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self.routes.append(Route(method, path, handler, access, summary, **(_declared(handler) | rest)))
            return handler

        return decorate


def _declared(handler: Callable[..., Awaitable[object]]) -> dict[str, Any]:
    """The fields of a route that the annotations of its handler tell."""
    hints = get_type_hints(handler)
    returned = hints["return"]
    found: dict[str, Any] = {"body": hints.get("body"), "form": "parts" in hints}
    for each in get_args(returned) if get_origin(returned) in (Union, UnionType) else (returned,):
        kind = get_origin(each)
        if each is NoneType:
            found["status"] = 204
        elif kind is Created:
            found |= {"answer": get_args(each)[0], "status": 201}
        elif kind in (Page, Value):
            found |= {"answer": get_args(each)[0], "paged": kind is Page}
        elif each not in (Response, Lines):
            found.setdefault("answer", each)
    return found
