"""The management API put together: what the front door serves beside repositories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from klein import Klein
from twisted.web.resource import IResource

from pkgrepo.gateway.klein import new_app
from pkgrepo.http.answers import Answer
from pkgrepo.http.dispatch import answer_with, refuse_unrouted
from pkgrepo.http.request import Request

from .account import Account
from .audit import Audit
from .configuration import Configuration
from .configuration_keys import ConfigurationKeys
from .dispatch import Dispatcher, SegmentResource
from .gc import GarbageCollection
from .health import HealthChecks
from .jobs import BackgroundJobs
from .metrics import Figures, Metrics
from .openapi import Description
from .packages import Packages
from .problems import ERRORS, problem_page
from .project_members import ProjectMembers
from .projects import Projects
from .removal import Removal
from .repositories import Repositories
from .search import Search
from .services import ManagementServices
from .setup import Setup
from .stats import Statistics
from .storages import Storages
from .token_service import TokenService
from .tokens import Tokens
from .tree import Tree
from .user_permissions import UserPermissions
from .users import Users

Handler = Callable[[Request], Awaitable[Answer]]

FAMILIES = (
    Setup,
    Storages,
    Repositories,
    ConfigurationKeys,
    Configuration,
    GarbageCollection,
    Statistics,
    BackgroundJobs,
    Packages,
    Removal,
    Search,
    Tree,
    Users,
    UserPermissions,
    Account,
    Tokens,
    TokenService,
    Projects,
    ProjectMembers,
    Audit,
)


class ManagementApp:
    """
    Everything below ``/api``, and the small addresses around it.

    ``figures`` are further sources for ``/metrics``; without any, there is no such address.
    """

    def __init__(self, services: ManagementServices, figures: Iterable[Figures] | None = None) -> None:
        self._services = services
        self._figures = figures
        self.dispatcher = Dispatcher(services)
        for family in FAMILIES:
            self.dispatcher.mount(family.table, family(services))
        self.description = Description(self.dispatcher.routes, services.settings.version)
        self.dispatcher.mount(Description.table, self.description)

    def branches(self) -> dict[str, IResource]:
        """Resources by the first segment of the path, for the front door."""
        health = HealthChecks(self._services)
        branches = {
            "api": self.dispatcher.resource(),
            "token": self.token_resource(),
            "healthz": _single(health.live),
            "health": _single(health.live),
            "readyz": _single(health.ready),
            "problems": _problems(),
        }
        if self._figures is not None:
            branches["metrics"] = _single(Metrics(self._services, self._figures).answer)
        return branches

    def token_resource(self) -> IResource:
        """The token service alone, for the further addresses under which container clients look for it."""
        dispatcher = Dispatcher(self._services)
        dispatcher.mount(TokenService.elsewhere, TokenService(self._services))
        return dispatcher.resource()


def _single(handler: Handler) -> IResource:
    """A resource with one address."""
    app = _app()

    @app.route("/", methods=["GET"])
    async def handle(request: Request) -> None:
        await answer_with(request, ERRORS, lambda: handler(request))

    return SegmentResource(app)


def _problems() -> IResource:
    app = _app()

    async def explain(code: str) -> Answer:
        return problem_page(code)

    @app.route("/<code>", methods=["GET"])
    async def handle(request: Request, code: str) -> None:
        await answer_with(request, ERRORS, lambda: explain(code))

    return SegmentResource(app)


def _app() -> Klein:
    app = new_app()
    refuse_unrouted(app, ERRORS)
    return app
