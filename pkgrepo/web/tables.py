"""Tables of pages, and tables on pages: lists in memory, sorted by a column, a page at a time, as the query says."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Literal, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from attrs import Factory, field, frozen

from pkgrepo.errors import AlreadyExists, AuthenticationFailed, Conflict, Forbidden, Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.visits import Form, Visit, parameters_of

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response | None]])
Page = Callable[[Visit], Awaitable[Response]]
Sent = Sequence[str] | Callable[[Form], Mapping[str, Any]]  # names of text fields, or what is made of a form
Errors = tuple[type[Exception], ...]
T = TypeVar("T")
Columns = Mapping[str, Callable[[T], Any]]  # what a column is sorted by, by its name

REFUSED: Final[Errors] = (AlreadyExists, AuthenticationFailed, Conflict, Forbidden, Invalid, NotFound)
_MADE: Final = re.compile(r"<made\.(\w+)>")


@frozen
class PageRoute:
    """
    A page or the target of a form; ``path`` is below ``/ui``, in Klein's form.

    With ``open`` a form is taken without the CSRF value of a session, since its sender has none yet.
    With ``file`` the form has a file, whose parts the handler is given while they arrive.

    ``page`` is shown again with the sentence of an error that is one of ``refused``; without it, the sentence has a
    page of its own. After a form whose handler returns None the browser is sent to ``then``.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[..., Awaitable[Response | None]]
    open: bool = False
    file: bool = False
    page: Page | None = None
    refused: Errors = ()
    then: str = ""


class Options(TypedDict, total=False):
    """Fields of a L{PageRoute}; ``then`` is the address of ``page`` unless it is given."""

    page: Page
    then: str
    refused: Errors
    open: bool
    file: bool


@frozen
class PageTable:
    """
    The pages of one room: its coroutine functions with the decorators ``@pages.get`` and ``@pages.post``, and what its
    forms do as ``pages.operation``; ``refused`` are the errors that its pages show.
    """

    refused: Errors = REFUSED
    routes: list[PageRoute] = field(default=Factory(list))

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Add a page: ``async def handler(visit) -> Response``."""
        return self._add(partial(PageRoute, "GET", path))

    def post(self, path: str, **options: Unpack[Options]) -> Callable[[Handler], Handler]:
        """Add the target of a form: ``async def handler(visit, form) -> Response | None``."""
        if "page" in options:
            options = {"then": self.path_of(options["page"]), "refused": self.refused, **options}
        return self._add(partial(PageRoute, "POST", path, **options))

    def operation(
        self,
        path: str,
        method: str,
        operation: str,
        fields: Sent = (),
        *,
        query: Sent = (),
        **options: Unpack[Options],
    ) -> None:
        """
        Add the target of a form that is one operation of the API.

        Its parameters are those of the page; one that the page does not have is a field of the form. In ``then``
        ``<made.id>`` stands for the field ``id`` of what it returns.
        """
        then = options.get("then", "")

        async def run(visit: Visit, form: Form) -> Response | None:
            place = form.texts(*(each for each in parameters_of(operation) if each not in visit.at))
            made = await visit.api(method, operation, place, query=_read(query, form), fields=_read(fields, form))
            if not _MADE.search(then):
                return None
            return visit.redirect(_MADE.sub(lambda found: quote(str(getattr(made, found[1])), safe=""), then))

        self.post(path, **options)(run)

    def path_of(self, page: Page) -> str:
        """The address of a page, the one that was added last."""
        return next(each.path for each in reversed(self.routes) if each.handler is page)

    def _add(self, route: Callable[[Handler], PageRoute]) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self.routes.append(route(handler))
            return handler

        return decorate


def _read(sent: Sent, form: Form) -> Mapping[str, Any]:
    return sent(form) if callable(sent) else form.texts(*sent)


@frozen
class Rows(Generic[T]):
    """The rows of one page of a list, in an order: the name of a column, with a dash before it if descending."""

    items: list[T]
    order: str
    page: int
    pages: int


def sorted_rows(visit: Visit, every: Iterable[T], columns: Columns[T], default: str) -> list[T]:
    """All rows in the order that the query asks for by ``sort``; in ``default`` if it names no column."""
    order = order_of(visit, columns, default)
    return sorted(every, key=columns[order.removeprefix("-")], reverse=order.startswith("-"))


def order_of(visit: Visit, columns: Columns[T], default: str) -> str:
    """The order that the query asks for."""
    return visit.query("sort") if visit.query("sort").removeprefix("-") in columns else default


def page_of_rows(visit: Visit, every: Iterable[T], columns: Columns[T], default: str, size: int) -> Rows[T]:
    """The page of the sorted rows that the query asks for by ``page``, the last one if there are fewer."""
    rows = sorted_rows(visit, every, columns, default)
    pages = max(1, -(-len(rows) // size))
    page = min(visit.number("page", 1), pages)
    return Rows(rows[(page - 1) * size : page * size], order_of(visit, columns, default), page, pages)
