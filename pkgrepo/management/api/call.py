"""One call of the API: the object that is passed to the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple

from pkgrepo.errors import Invalid, NotFound, PkgrepoError
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Response
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.management.api.schema import check_unchanged
from pkgrepo.model import Action, Actor, Extent, Package, Repository, Version
from pkgrepo.repositories.past import view_of
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.orders import Order
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.people.users import identity_serial
from pkgrepo.storage.catalog.server.audit import OK, Entry
from pkgrepo.storage.catalog.server.repositories import config_serial, find_repository
from pkgrepo.untrusted.networks import client_network

from .access_rules import Decided
from .pages import DEFAULT_LIMIT, MAX_LIMIT, Page, PageRequest
from .route import DRY_RUN, Route
from .services import ManagementServices

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
R = TypeVar("R")
P = ParamSpec("P")

# The config serial and the identity serial: every change of an object that If-Match can guard increases one of them.
Serials = tuple[int, int]

Arguments = Mapping[bytes, list[bytes]]

_TRUE = frozenset({"", "1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class ConcurrentChange(Exception):  # noqa: N818 - named for what happened
    """Another change was committed after If-Match was checked; nothing was written."""


class Call:
    """
    The caller, the parameters, and the writing of changes with their rows of the audit log.

    ``arguments`` are those of the query. ``now_ms`` is the start time of the call; all its changes have this time.
    ``if_match`` is the precondition of a change (RFC 9110 section 13.1.1), as the field of a request has it.
    ``object`` names the changed object in the audit log. ``audited`` becomes true once the audit log has a row of this
    call.
    """

    def __init__(
        self,
        *,
        request: Request,
        arguments: Arguments,
        route: Route,
        services: ManagementServices,
        object: str,
        decided: Decided,
        if_match: bytes | None,
    ) -> None:
        self.request = request
        self.arguments = arguments
        self.route = route
        self.identity = decided.identity
        self.decided = decided
        self.object = object
        self.if_match = if_match
        self.audited = False
        self.package: str | None = None
        self.now_ms = services.shared.clock.now_ms()
        self.services = services
        self._repository: Repository | None = None
        self._seen: Serials | None = None

    @property
    def shared(self) -> Services:
        """The services that the API shares with the formats."""
        return self.services.shared

    @property
    def catalog(self) -> ICatalog:
        """The catalog of the server."""
        return self.services.shared.catalog

    @property
    def registry(self) -> Registry:
        """The storages and repositories, in memory."""
        return self.services.shared.registry

    @property
    def format(self) -> Format:
        """The format of the repository."""
        return self.services.formats[self.repository.format]

    @property
    def repository(self) -> Repository:
        """The repository that the path names; the caller's permission has been checked."""
        assert self._repository is not None, "the path of this route names no repository"
        return self._repository

    @repository.setter
    def repository(self, repository: Repository) -> None:
        self._repository = repository
        self.object = repository.path

    async def fresh_repository(self) -> Repository:
        """The repository that the path names, with its present figures. :raises NotFound: it was removed meanwhile"""
        fresh: Repository | None = await self.catalog.look(find_repository, self.repository.uid)
        if fresh is None:
            raise unknown(self.identity, self.repository.path)
        return fresh

    @property
    def actor(self) -> Actor:
        """The caller, for events and the audit log."""
        return Actor.of(self.identity, address=self.request.client_address, request_id=self.request.request_id)

    @property
    def counted_as(self) -> str:
        """The caller for limits of what one may have at a time: the id of a user, or the network of the address."""
        return str(self.identity.user_id or client_network(self.request.client_address))

    @property
    def base_url(self) -> str:
        """The address of the server as clients see it, without a slash at the end."""
        return self.shared.base_url(self.request)

    async def find_package(self) -> Package:
        """The package that the path names. :raises NotFound: it does not exist"""
        package: Package | None = await self.catalog.look(packages.find_package, self.repository.id, self.package or "")
        if package is None:
            raise NotFound("package", self.package or "")
        return package

    async def find_version(self, text: str) -> tuple[Package, Version]:
        """The version that the path names, with its package. :raises NotFound: it does not exist"""
        package = await self.find_package()
        try:
            key = self.format.version_key(text)
        except Invalid:
            raise NotFound("version", text) from None
        version: Version | None = await self.catalog.look(versions.find_version, package.id, key)
        if version is None:
            raise NotFound("version", text)
        self.object = f"{self.repository.path}/{package.key}@{version.text}"
        return package, version

    async def may(self, action: Action, repository: Repository, package: str | Extent | None = None) -> bool:
        """Whether the caller may take this action in the repository, or on a package, or some package, in it."""
        return await self.decided.may(self.identity, action, repository, package)

    async def knows(self, repository: Repository) -> bool:
        """Whether the caller may know that the repository exists."""
        return await self.shared.access.authorizer.knows(self.identity, repository)

    # The query

    def query(self, name: str) -> str:
        """The first value of a query parameter; empty when it is absent."""
        values = self.arguments.get(name.encode("ascii"))
        return values[0].decode("utf-8", "replace") if values else ""

    def flag(self, name: str) -> bool:
        """
        A boolean query parameter; false when it is absent.

        :raises Invalid: it is no boolean
        """
        if name.encode("ascii") not in self.arguments:
            return False
        text = self.query(name).lower()
        if text not in _TRUE and text not in _FALSE:
            raise Invalid(f"{name} is true or false", name)
        return text in _TRUE

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """
        A query parameter that is a whole number; ``default`` when it is absent.

        :raises Invalid: it is no number from ``least`` to ``most``
        """
        text = self.query(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not least <= int(text) <= most:
            raise Invalid(f"{name} is a number from {least} to {most}", name)
        return int(text)

    def view_of(self, repository: Repository, text: str) -> Repository:
        """
        A repository as it was at the time in a parameter ``at``.

        :raises Invalid: it is no date of the past, or the format has no views
        """
        if not self.services.formats[repository.format].dated:
            raise Invalid(f"repositories of format {repository.format} have no views of the past", "at")
        try:
            return view_of(repository, text, self.now_ms)
        except Invalid as error:
            raise Invalid(str(error), "at") from None

    @property
    def page_request(self) -> PageRequest:
        """The page of a list that the query asks for. :raises Invalid: the limit is out of bounds"""
        return PageRequest(
            limit=self.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT),
            cursor=self.query("cursor") or None,
            count=self.flag("count"),
        )

    async def page(
        self,
        query: Callable[..., Sequence[T]],
        *arguments: Any,
        by: Order[T] | Callable[[T], str],
        show: Callable[[T], R],
        count: tuple[Any, ...] = (),
        **more: Any,
    ) -> Page[R]:
        """
        The page that the request asks for of a list in the catalog.

        ``query`` takes ``arguments``, ``more``, ``after`` and ``limit``. ``by`` is the order, which the query also
        takes, or the key after which a page begins. ``count`` is the query for the length of the list, with its
        arguments. ``show`` makes the record of an item.
        """
        request = self.page_request
        if isinstance(by, Order):
            more |= {"after": request.after_position(by), "order": by.name}
        else:
            more["after"] = request.after("")
        found = await self.catalog.scan(query, *arguments, limit=request.limit + 1, **more)
        total = await self.catalog.scan(*count) if count and request.count else None
        return request.page(found, by.place if isinstance(by, Order) else by, show, total)

    @property
    def only_asks(self) -> bool:
        """Whether this would delete something, and only says what; it leaves no row in the audit log."""
        return self.route.method == "DELETE" and DRY_RUN in self.route.query and self.flag("dry_run")

    def order(self, orders: Mapping[str, Order[T]], default: str) -> Order[T]:
        """The order that the query asks for by ``sort``, one of ``orders``. :raises Invalid: it asks for another one"""
        found = orders.get(self.query("sort") or default)
        if found is None:
            raise Invalid(f"sort is one of {', '.join(orders)}", "sort")
        return found

    def text_answer(self, text: str, kind: str, headers: Fields = ()) -> Response:
        """
        A text that people wrote, of the media type ``kind``, not rendered, that no browser runs.

        It is sent as text/plain, or as text/markdown if it is Markdown and the Accept field contains text/markdown.
        """
        accepted = self.request.header(b"accept") or b""
        shown = b"text/markdown" if kind == "text/markdown" and b"text/markdown" in accepted else b"text/plain"
        return Response(
            body=text.encode("utf-8", "replace"),
            content_type=shown + b"; charset=utf-8",
            headers=(*NO_STORE, *headers, (b"Content-Security-Policy", b"sandbox; default-src 'none'")),
        )

    # Changes

    async def remember_serials(self) -> None:
        """
        Read the serials before the handler runs; L{write} refuses a conditional change if they have changed since.

        It also refreshes the registry, which is then at least as new as the serials.
        """
        if self.route.conditional and self.if_match is not None:
            self._seen = await self.catalog.look(_read_serials)
        await self.shared.registry.refresh()

    def check_unchanged(self, current: object) -> None:
        """Check If-Match against ``current``, the value to be changed. :raises PreconditionFailed: they differ"""
        check_unchanged(self.if_match, current)

    def entry(self, object: str | None = None, detail: Mapping[str, Any] | None = None, outcome: str = OK) -> Entry:
        """A row of the audit log for this call."""
        return Entry(
            actor=self.actor,
            action=self.route.audit,
            object=self.object if object is None else object,
            outcome=outcome,
            detail=detail or {},
        )

    async def write(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        Run a write command and write its row of the audit log in the same transaction.

        The row says that it was done: a command that may find nothing to do raises that, or is made to by L{must_do}.

        :raises ConcurrentChange: the request has If-Match, and another change was committed since L{remember_serials}
        """
        seen = self._seen
        if seen is not None:
            command = _unless_changed(command, seen)
        result: T = await self.services.callers.audit_log.write(entry, command, *args, **kwargs)
        self.audited = True
        return result

    async def change_content(
        self, entry: Entry, command: Callable[[Transaction, Repository, *Ts, int], T], *args: *Ts
    ) -> T:
        """Run a command that changes the repository's content (see L{ContentWriter.change}), with its audit row."""
        audit_log = self.services.callers.audit_log
        with_row = audit_log.with_row_of(entry, command)
        result: T = await self.shared.content.change(with_row, self.repository, *args)
        audit_log.copy(entry)
        self.audited = True
        return result


def must_do(
    command: Callable[Concatenate[Transaction, P], bool], error: PkgrepoError
) -> Callable[Concatenate[Transaction, P], None]:
    """The command, raising an error where it returns False: no row of the audit log says then that it was done."""

    def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not command(tx, *args, **kwargs):
            raise error

    return run


def _read_serials(reader: Reader) -> Serials:
    return config_serial(reader), identity_serial(reader)


def _unless_changed(
    command: Callable[Concatenate[Transaction, P], T], seen: Serials
) -> Callable[Concatenate[Transaction, P], T]:
    def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if _read_serials(tx) != seen:
            raise ConcurrentChange
        return command(tx, *args, **kwargs)

    return run
