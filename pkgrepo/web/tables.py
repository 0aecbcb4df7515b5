"""Tables of pages, and tables on pages: lists in memory, sorted by a column, a page at a time, as the query says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

from attrs import Factory, field, frozen

from pkgrepo.http.responses import Response
from pkgrepo.web.visits import Visit

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Response]])
T = TypeVar("T")
Columns = Mapping[str, Callable[[T], Any]]  # what a column is sorted by, by its name


@frozen
class PageRoute:
    """
    A page or the target of a form; ``path`` is below ``/ui``, in Klein's form.

    With ``open`` a form is taken without the CSRF value of a session, since its sender has none yet.
    With ``file`` the form has a file, whose parts the handler is given while they arrive.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[..., Awaitable[Response]]
    open: bool = False
    file: bool = False


@frozen
class PageTable:
    """The pages of one room: its coroutine functions with the decorators ``@pages.get`` and ``@pages.post``."""

    routes: list[PageRoute] = field(default=Factory(list))

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Add a page: ``async def handler(visit[, path parameters]) -> Response``."""
        return self._add("GET", path)

    def post(self, path: str, *, open: bool = False, file: bool = False) -> Callable[[Handler], Handler]:
        """Add the target of a form: ``async def handler(visit, form[, path parameters]) -> Response``."""
        return self._add("POST", path, open=open, file=file)

    def _add(self, method: Literal["GET", "POST"], path: str, **rest: Any) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self.routes.append(PageRoute(method, path, handler, **rest))
            return handler

        return decorate


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
