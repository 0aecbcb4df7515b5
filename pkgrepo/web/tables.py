"""Tables of pages: the addresses and the functions that answer them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal, TypeVar

from attrs import Factory, field, frozen

from pkgrepo.http.answers import Answer

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Answer]])


@frozen
class PageRoute:
    """
    A page or the target of a form; ``path`` is below ``/ui``, in Klein's form.

    With ``open`` a form is taken without the CSRF value of a session, since its sender has none yet.
    """

    method: Literal["GET", "POST"]
    path: str
    handler: Callable[..., Awaitable[Answer]]
    open: bool = False


@frozen
class PageTable:
    """The pages of one class: its coroutine methods with the decorators ``@pages.get`` and ``@pages.post``."""

    routes: list[PageRoute] = field(default=Factory(list))

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Add a page: ``async def handler(self, visit[, path parameters]) -> Answer``."""
        return self._add("GET", path)

    def post(self, path: str, *, open: bool = False) -> Callable[[Handler], Handler]:
        """Add the target of a form: ``async def handler(self, visit, form[, path parameters]) -> Answer``."""
        return self._add("POST", path, open=open)

    def _add(self, method: Literal["GET", "POST"], path: str, **rest: Any) -> Callable[[Handler], Handler]:
        def decorate(handler: Handler) -> Handler:
            self.routes.append(PageRoute(method, path, handler, **rest))
            return handler

        return decorate


class Pages:
    """The base of the classes whose methods make pages."""

    pages: ClassVar[PageTable]
