"""Pagination of lists: limit, opaque cursor, and the link to the next page."""

from __future__ import annotations

import base64
import binascii
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import quote

import msgspec
from attrs import frozen
from msgspec import UNSET, UnsetType

from pkgrepo.errors import Invalid
from pkgrepo.management.api.fields import NextCursor
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.orders import Order

from .schema import LARGEST

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", str, int)
Position = tuple[str | int | bytes | float | None, ...]  # the values of the columns by which a list is sorted


Behind = Annotated[
    bool,
    meaning(
        "Whether the latest changes are not in it yet: there are too many to follow within a second, or the catalog"
        " cannot be written."
    ),
]


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """One page of a list."""

    items: Annotated[list[T], meaning("The items of the page.")]
    next: NextCursor = None
    total: Annotated[int | UnsetType, meaning("How many there are in all.")] = UNSET
    behind: Behind | UnsetType = UNSET


@frozen
class PageRequest:
    """The page of a list that a request asks for; with ``count`` also the length of the whole list."""

    limit: int
    cursor: str | None
    count: bool

    def after(self, start: K) -> K:
        """
        The key after which the page begins; ``start`` for the first page.

        :raises Invalid: the cursor is malformed
        """
        if self.cursor is None:
            return start
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            key = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=type(start))
            if isinstance(key, int) and not 0 <= key <= LARGEST:
                raise ValueError
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            raise Invalid("the cursor is none that this list has given out", "cursor") from None
        return key

    def after_position(self, order: Order[Any]) -> Position:
        """
        The position after which the page of a list in this order begins; empty for the first page.

        :raises Invalid: the cursor is malformed, or that of another order
        """
        if self.cursor is None:
            return ()
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            shape: Any = types.GenericAlias(tuple, (str, *order.kinds))
            given = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=shape)
            position: Position = given[1:]
            if given[0] != order.name or any(isinstance(each, int) and not 0 <= each <= LARGEST for each in position):
                raise ValueError
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            raise Invalid("the cursor is none that this list has given out in this order", "cursor") from None
        return position

    def page(
        self,
        found: Sequence[T],
        key: Callable[[T], str | int | Position],
        show: Callable[[T], R],
        total: int | None = None,
    ) -> Page[R]:
        """Make a page of ``found``, which has one item more than the limit if there is a next page."""
        shown = found[: self.limit]
        more = len(found) > self.limit
        return Page(
            items=[show(each) for each in shown],
            next=cursor_of(key(shown[-1])) if more else None,
            total=UNSET if total is None or not self.count else total,
        )

    def page_of_all(self, every: Sequence[T], key: Callable[[T], str], show: Callable[[T], R]) -> Page[R]:
        """Make a page of a complete list in memory that is sorted by ``key``."""
        after = self.after("")
        rest = [each for each in every if key(each) > after]
        return self.page(rest[: self.limit + 1], key, show, len(every))

    def page_of_sorted(self, every: Sequence[T], order: Order[T], show: Callable[[T], R]) -> Page[R]:
        """Make a page of a complete list in memory, in an order."""
        after, falling = self.after_position(order), order.name.startswith("-")
        rest = []
        for each in sorted(every, key=order.position, reverse=falling):
            at = order.position(each)
            if not after or (at < after if falling else at > after):
                rest.append(each)
        return self.page(rest[: self.limit + 1], order.place, show, len(every))


def cursor_of(key: str | int | Position) -> str:
    """The cursor of the page that follows a key, or the name of an order and a position."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).rstrip(b"=").decode("ascii")


def next_link(address: str, query: Sequence[tuple[str, str]], cursor: str) -> bytes:
    """The Link field to the next page (RFC 8288): the same address and query, with another cursor."""
    pairs = [(name, value) for name, value in query if name != "cursor"] + [("cursor", cursor)]
    text = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    return f'<{address}?{text}>; rel="next"'.encode("latin-1")
