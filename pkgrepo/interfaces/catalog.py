"""The catalog: the database of all facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from zope.interface import Interface

T = TypeVar("T")
P = ParamSpec("P")
Value = int | str | bytes | float | None
Row = tuple[Any, ...]


class NotNow(Enum):
    """The type of ``NOT_NOW``, which is distinct from every result of a query, including None."""

    NOT_NOW = "not now"


NOT_NOW: Final = NotNow.NOT_NOW  # the answer needs waiting: use ``look``


class Reader(Protocol):
    """The argument of a query: one consistent snapshot of the catalog."""

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """The first row, or None."""

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """All rows; the SQL limits their number."""


class Transaction(Reader, Protocol):
    """The argument of a write command: it sees its own writes; others see all of them or none."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of changed rows."""

    def send(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        """
        Run one statement that has no result, at the latest before the next one that has.

        On an engine that has to be waited for it travels with that one, which may then raise its error.
        """

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT that returns the new row's integer key; that key."""


class ICatalog(Interface):
    """
    The database: packages, files, users, permissions, events.

    Queries and commands are functions over a ``Reader`` or a ``Transaction`` (see ``pkgrepo.storage.catalog``), so that
    every engine runs the same ones.
    """

    def generation() -> int:
        """
        A number that changes when a commit of any process becomes visible. It is local and costs a microsecond.

        A commit of another program may be noticed a tenth of a second later.
        """

    def pinned() -> AbstractContextManager[int]:
        """
        A ``with`` block, which must not await, in which ``generation`` is read once: several checks for changes share
        the cost. Its value is the generation. Queries in the block may see later commits.
        """

    def look(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """
        Run a query of a few indexed look-ups. It may be run more than once, and does nothing but return its result.

        An embedded engine answers at once, without a thread and without a reactor turn; another engine when its reply
        arrives. The caller must expect other events in between.
        """

    def peek(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T | NotNow:
        """
        Run such a query now, in the calling (reactor) thread; ``NOT_NOW`` from an engine that would have to wait.

        Only for callers that can then await ``look`` instead.
        """

    def scan(query: Callable[Concatenate[Reader, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Run a longer query on a reader thread."""

    def write(command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """
        Run a command in a transaction. Returns its result once it is durable.

        If the command raises, it changes nothing and the error is raised here; other commands are not affected.
        """

    def renew_statistics() -> Awaitable[bool]:
        """
        Renew the statistics of the query planner if tables have changed much. Returns whether they were renewed.

        An engine that does so by itself does nothing. Another one holds up writes meanwhile, some 0.4 s for 1,000,000
        packages, so call it rarely.
        """
