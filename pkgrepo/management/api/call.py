"""One call of the API, as its handler sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from pkgrepo.errors import Invalid
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import ANONYMOUS, Action, Actor, Identity, Repository
from pkgrepo.storage.catalog.people.identity import identity_serial
from pkgrepo.storage.catalog.server.audit import OK, Entry
from pkgrepo.storage.catalog.server.repositories import config_serial

from .etags import check_unchanged
from .pages import DEFAULT_LIMIT, MAX_LIMIT, Wanted
from .route import Route
from .services import ManagementServices

T = TypeVar("T")
P = ParamSpec("P")

# The config serial, and the identity serial: one of them grows with everything that the API changes conditionally.
Serials = tuple[int, int]

_TRUE = frozenset({"", "1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Overtaken(Exception):  # noqa: N818 - named for what happened
    """Something was changed between the check of If-Match and the change itself; nothing was written."""


class Call:
    """
    Who calls, with which parameters, and how what they change is written down.

    ``now_ms`` is when it began, the same for everything that it changes. ``audited`` turns true once a line for this
    call is in the audit log.
    """

    def __init__(self, *, request: Request, route: Route, services: ManagementServices, object: str) -> None:
        self.request = request
        self.route = route
        self.identity: Identity = ANONYMOUS
        self.object = object
        self.audited = False
        self.package: str | None = None
        self.now_ms = services.shared.clock.now_ms()
        self._services = services
        self._repository: Repository | None = None
        self._seen: Serials | None = None

    @property
    def repository(self) -> Repository:
        """The repository that the path names; the caller has been let in."""
        assert self._repository is not None, "the path of this route names no repository"
        return self._repository

    @repository.setter
    def repository(self, repository: Repository) -> None:
        self._repository = repository
        self.object = repository.path

    @property
    def named_repository(self) -> Repository | None:
        """The same, or None when the path names none."""
        return self._repository

    @property
    def actor(self) -> Actor:
        """Who did it, for events and the audit."""
        return Actor.of(self.identity, address=self.request.client_address, request_id=self.request.request_id)

    @property
    def base_url(self) -> str:
        """The address of the server as clients see it, without a slash at the end."""
        return self._services.shared.base_url(self.request)

    async def may(self, action: Action, repository: Repository, package: str | None = None) -> bool:
        """Whether the caller may do this."""
        return await self._services.shared.access.may(self.identity, action, repository, package)

    async def knows(self, repository: Repository) -> bool:
        """Whether the caller may know of the repository."""
        return await self._services.shared.access.knows(self.identity, repository)

    # The query

    def query(self, name: str) -> str:
        """The first value of a query parameter; empty when it is absent."""
        values: Any = self.request.args.get(name.encode("ascii"))
        return values[0].decode("utf-8", "replace") if values else ""

    def flag(self, name: str) -> bool:
        """
        A yes or no of the query; no when it is absent.

        :raises Invalid: it is neither
        """
        if name.encode("ascii") not in self.request.args:
            return False
        text = self.query(name).lower()
        if text not in _TRUE and text not in _FALSE:
            raise Invalid(f"{name} is true or false", name)
        return text in _TRUE

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        """
        A number of the query.

        :raises Invalid: it is none, or out of bounds
        """
        text = self.query(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18 or not least <= int(text) <= most:
            raise Invalid(f"{name} is a number from {least} to {most}", name)
        return int(text)

    @property
    def wanted(self) -> Wanted:
        """Which part of a list is asked for. :raises Invalid: the limit is out of bounds"""
        return Wanted(
            limit=self.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT),
            cursor=self.query("cursor") or None,
            count=self.flag("count"),
        )

    # Changes

    async def begin(self) -> None:
        """
        Note, before anything is looked up, how far changes have come; ``write`` holds a conditional change to it.

        The registry is not older afterwards than what was noted.
        """
        if self.route.conditional and self.request.header(b"if-match") is not None:
            self._seen = await self._services.shared.catalog.look(_read_serials)
        await self._services.shared.registry.refresh()

    def check_unchanged(self, current: object) -> None:
        """Let the change pass when the caller has seen ``current``. :raises Stale: If-Match says otherwise"""
        check_unchanged(self.request.header(b"if-match"), current)

    def entry(self, object: str | None = None, detail: Mapping[str, Any] | None = None, outcome: str = OK) -> Entry:
        """The audit line of this call; ``object`` is what the call is about unless told otherwise."""
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
        Run a write command with its audit line in the same transaction.

        :raises Overtaken: the change is conditional, and since the call began something was changed
        """
        seen = self._seen
        if seen is not None:
            command = _unless_changed(command, seen)
        result: T = await self._services.audit_log.write(entry, command, *args, **kwargs)
        self.audited = True
        return result

    async def change_content(self, entry: Entry, command: Callable[..., T], *args: Any) -> T:
        """Run a command that changes the content of the repository (see L{Publisher.change}), with its audit line."""
        audit_log = self._services.audit_log
        with_row = audit_log.with_row(entry, command)
        result: T = await self._services.shared.publisher.change(with_row, self.repository, *args)
        audit_log.copy(entry)
        self.audited = True
        return result


def _read_serials(reader: Reader) -> Serials:
    return config_serial(reader), identity_serial(reader)


def _unless_changed(
    command: Callable[Concatenate[Transaction, P], T], seen: Serials
) -> Callable[Concatenate[Transaction, P], T]:
    def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if _read_serials(tx) != seen:
            raise Overtaken
        return command(tx, *args, **kwargs)

    return run
