"""
The table of routes: what dispatches a request, and what the OpenAPI document is written from.

A family of resources is a class with a ``Table``; its handlers are coroutine methods marked with ``@table.route``.
What a handler returns is answered as follows.

==============  ======================================================================
returned        answered
==============  ======================================================================
a value         JSON with the route's status and, unless it is a page, an ETag
``Created``     201 with ``Location``; where 201 is usual, a plain value means 200,
                "it was there already"
``Value``       the same for what may be null
``Lines``       lines of JSON, for programs that take one at a time
``None``        204
an ``Answer``   as it is
==============  ======================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

from attrs import Factory, field, frozen

from .access_rules import AccessRule
from .pages import Page

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[object]])
NDJSON = b"application/x-ndjson"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@frozen
class Parameter:
    """A query parameter; ``kind`` is its JSON type."""

    name: str
    explanation: str
    kind: Literal["string", "integer", "boolean"] = "string"


@frozen
class Created:
    """Something new, and its address below the server's own."""

    value: object
    location: str


@frozen
class Value:
    """A value that may be null."""

    value: object


@frozen
class Lines:
    """A page to be sent as one JSON object on each line, without anything around them."""

    page: Page[Any]


DRY_RUN = Parameter("dry_run", "Answer what would happen, and let nothing happen.", "boolean")
PAGING = (
    Parameter("limit", "Most items on the page: 1 to 1000, 50 unless told.", "integer"),
    Parameter("cursor", "Where to go on: the value of next on the page before."),
    Parameter("count", "Whether to count the whole list into total.", "boolean"),
)


@frozen
class Route:
    """
    One operation.

    ``path`` is below ``/api``, in Klein's form. ``audit`` names the action in the audit log: every route that changes
    something has one. With ``blank`` it takes Basic credentials without name and password for none. ``aliases`` are
    further methods and paths, for callers of other servers. ``further`` are other statuses of success than ``status``,
    with what each means.
    """

    method: Method
    path: str
    handler: Callable[..., Awaitable[object]]
    access: AccessRule
    summary: str
    body: Any = None
    answer: Any = None
    status: int = 200
    query: tuple[Parameter, ...] = ()
    paged: bool = False
    audit: str = ""
    media_type: str = "application/json"
    conditional: bool = False
    blank: bool = False
    aliases: tuple[tuple[str, str], ...] = ()
    further: tuple[tuple[int, str], ...] = ()

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
        """Whether the operation may change something."""
        return self.method != "GET"


@frozen
class Table:
    """The routes of one family, in the order of definition; ``name`` groups them in the description."""

    name: str
    routes: list[Route] = field(default=Factory(list))

    def route(
        self,
        method: Method,
        path: str,
        *,
        access: AccessRule,
        summary: str,
        body: Any = None,
        answer: Any = None,
        status: int = 200,
        query: Sequence[Parameter] = (),
        paged: bool = False,
        audit: str = "",
        media_type: str = "application/json",
        conditional: bool = False,
        blank: bool = False,
        aliases: Sequence[tuple[str, str]] = (),
        further: Sequence[tuple[int, str]] = (),
    ) -> Callable[[Handler], Handler]:
        """
        Make a route of ``async def handler(self, call[, body][, path parameters])``.

        ``body`` is the type of the request's body, ``answer`` that of the answer's (of an item, when ``paged``).
        ``conditional`` says that the handler heeds If-Match.
        """
        assert method == "GET" or audit, f"{method} {path} has no name in the audit log"

        def decorate(handler: Handler) -> Handler:
            self.routes.append(
                Route(
                    method=method,
                    path=path,
                    handler=handler,
                    access=access,
                    summary=summary,
                    body=body,
                    answer=answer,
                    status=status,
                    query=tuple(query),
                    paged=paged,
                    audit=audit,
                    media_type=media_type,
                    conditional=conditional,
                    blank=blank,
                    aliases=tuple(aliases),
                    further=tuple(further),
                )
            )
            return handler

        return decorate
