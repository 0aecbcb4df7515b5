"""Assembles the management API: every resource that is served beside the repositories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import evolve
from klein import Klein
from twisted.web.resource import IResource

from pkgrepo.gateway.klein_app import new_app
from pkgrepo.http.answering.dispatch import answer_with, refuse_unrouted
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.management.api.dispatch import Dispatcher, SegmentResource
from pkgrepo.management.api.openapi.description import Description
from pkgrepo.management.api.problems import ERRORS, problem_page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.audit.routes import Audit
from pkgrepo.management.explanations.routes import Explanations
from pkgrepo.management.jobs.gc import GarbageCollection
from pkgrepo.management.jobs.rebuild import DocumentRebuilds
from pkgrepo.management.jobs.routes import BackgroundJobs
from pkgrepo.management.jobs.verify import Verification
from pkgrepo.management.metrics.exposition import Metrics, ProcessMetrics
from pkgrepo.management.packages.advisories import AdvisoryRoutes
from pkgrepo.management.packages.contents.archives import Contents
from pkgrepo.management.packages.contents.images import ImageDetails
from pkgrepo.management.packages.lists import Lists
from pkgrepo.management.packages.removal import Removal
from pkgrepo.management.packages.routes import Packages
from pkgrepo.management.packages.search import Search
from pkgrepo.management.packages.tree import Tree
from pkgrepo.management.packages.vouchers.routes import VoucherRoutes
from pkgrepo.management.projects.members import ProjectMembers
from pkgrepo.management.projects.routes import Projects
from pkgrepo.management.repositories.configuration.keys import ConfigurationKeys
from pkgrepo.management.repositories.configuration.routes import Configuration
from pkgrepo.management.repositories.members import RepositoryMembers
from pkgrepo.management.repositories.retired_names import RetiredNames
from pkgrepo.management.repositories.routes import Repositories
from pkgrepo.management.repositories.uploads import OpenUploads
from pkgrepo.management.server.health import HealthChecks
from pkgrepo.management.server.routes import Server
from pkgrepo.management.statistics.routes import Statistics
from pkgrepo.management.statistics.server import WholeServer
from pkgrepo.management.storages.probe import StorageProbe
from pkgrepo.management.storages.routes import Storages
from pkgrepo.management.tokens.bearer import TokenService
from pkgrepo.management.tokens.routes import Tokens
from pkgrepo.management.upstreams.purge import CachePurges
from pkgrepo.management.upstreams.routes import Upstreams
from pkgrepo.management.users.account import Account
from pkgrepo.management.users.permissions import UserPermissions
from pkgrepo.management.users.routes import Users
from pkgrepo.management.users.sessions import BrowserLogins

Handler = Callable[[Request], Awaitable[Answer]]

HANDLERS = (
    Server,
    Storages,
    StorageProbe,
    Repositories,
    RepositoryMembers,
    RetiredNames,
    OpenUploads,
    Upstreams,
    CachePurges,
    ConfigurationKeys,
    Configuration,
    GarbageCollection,
    DocumentRebuilds,
    Verification,
    Statistics,
    WholeServer,
    BackgroundJobs,
    Packages,
    Lists,
    Contents,
    ImageDetails,
    VoucherRoutes,
    AdvisoryRoutes,
    Removal,
    Search,
    Tree,
    Explanations,
    Users,
    UserPermissions,
    Account,
    BrowserLogins,
    Tokens,
    TokenService,
    Projects,
    ProjectMembers,
    Audit,
)


class ManagementApp:
    """
    The resources below ``/api``, and the health checks, metrics, problem types and token service beside it.

    ``metrics`` are those of the processes, for ``/metrics``; None means that ``/metrics`` is not served.
    """

    def __init__(self, services: ManagementServices, metrics: ProcessMetrics | None = None) -> None:
        self._services = services
        self._metrics = metrics
        self.dispatcher = Dispatcher(services)
        for handlers in HANDLERS:
            self.dispatcher.mount(handlers.table, handlers(services))
        self.description = Description(self.dispatcher.routes)
        self.dispatcher.mount(Description.table, self.description)

    def branches(self) -> dict[str, IResource]:
        """Resources by the first segment of the path."""
        health = HealthChecks(self._services)
        branches = {
            "api": self.dispatcher.resource(),
            "token": self.token_resource(),
            "healthz": _single(health.live),
            "health": _single(health.live),
            "readyz": _single(health.ready),
            "problems": _problems(),
        }
        if self._metrics is not None:
            branches["metrics"] = _single(Metrics(self._services, self._metrics).answer)
        return branches

    def token_resource(self) -> IResource:
        """The token service without a path below its resource, for the other addresses that container clients use."""
        dispatcher = Dispatcher(self._services)
        table = Table(TokenService.table.name, [evolve(route, path="/") for route in TokenService.table.routes])
        dispatcher.mount(table, TokenService(self._services))
        return dispatcher.resource()


def _single(handler: Handler) -> IResource:
    """A resource that answers GET at one path."""
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
