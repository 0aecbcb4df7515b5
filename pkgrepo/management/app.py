"""Assembles the management API: every resource that is served beside the repositories."""

from __future__ import annotations

from attrs import evolve
from twisted.web.resource import IResource

from pkgrepo.http.answering.dispatch import App, SegmentResource, answer_with, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.management import audit, hosts, quotas, server, statistics, upstreams
from pkgrepo.management.api.dispatch import Dispatcher
from pkgrepo.management.api.openapi import Description
from pkgrepo.management.api.problems import ERRORS, problem_page
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.explanations import routes as explanations
from pkgrepo.management.jobs import maintenance
from pkgrepo.management.jobs import routes as jobs
from pkgrepo.management.lifecycle import pins, retention, stages, trash
from pkgrepo.management.packages import (
    attestations,
    dependents,
    image_contents,
    paths,
    promotion,
    removal,
    search,
    snapshot,
    statements,
    tags,
    vulnerabilities,
)
from pkgrepo.management.packages import routes as packages
from pkgrepo.management.packages.archives import Contents
from pkgrepo.management.policy import (
    advisories,
    drills,
    freezes,
    osv,
    quarantine,
    recall,
    recall_report,
    rehearsal,
    rules,
)
from pkgrepo.management.projects import routes as projects
from pkgrepo.management.repositories import configuration, contents, keys, starter, uploads
from pkgrepo.management.repositories import routes as repositories
from pkgrepo.management.storages import routes as storages
from pkgrepo.management.tokens import all_tokens, bearer, device_login, pipelines, publishers, service_accounts
from pkgrepo.management.tokens import routes as tokens
from pkgrepo.management.transfers import backups, imports, mirrors, replication, twins
from pkgrepo.management.users import groups, links, passkeys, permissions, rights, second_factor, sessions, sign_on
from pkgrepo.management.users import routes as users
from pkgrepo.management.webhooks import feed
from pkgrepo.management.webhooks import routes as webhooks

ROOMS = (
    server,
    storages,
    repositories,
    starter,
    configuration,
    publishers,
    keys,
    contents,
    uploads,
    upstreams,
    replication,
    imports,
    mirrors,
    maintenance,
    retention,
    statistics,
    jobs,
    packages,
    paths,
    image_contents,
    vulnerabilities,
    advisories,
    osv,
    attestations,
    statements,
    tags,
    promotion,
    removal,
    pins,
    stages,
    trash,
    search,
    dependents,
    explanations,
    snapshot,
    users,
    permissions,
    rights,
    groups,
    service_accounts,
    sessions,
    second_factor,
    passkeys,
    links,
    sign_on,
    tokens,
    all_tokens,
    bearer,
    device_login,
    pipelines,
    projects,
    webhooks,
    feed,
    quotas,
    hosts,
    rules,
    freezes,
    quarantine,
    audit,
    recall,
    recall_report,
    backups,
    rehearsal,
    drills,
    twins,
)
TABLES = (*(room.table for room in ROOMS), statistics.server_table, retention.server_table, twins.server_table)
# With those of handlers that are methods.
EVERY_TABLE = (*TABLES, Contents.table, Description.table)


class ManagementApp:
    """The resources below ``/api``, and the problem types and the token services beside it."""

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self.dispatcher = Dispatcher(services)
        for table in TABLES:
            self.dispatcher.mount(table)
        self.dispatcher.mount(Contents.table, Contents(services))
        self.description = Description(self.dispatcher.routes)
        self.dispatcher.mount(Description.table, self.description)

    def branches(self) -> dict[str, IResource]:
        """Resources by the first segment of the path."""
        return {
            "api": self.dispatcher.resource(),
            "token": self.token_resource(),
            "problems": _problems(),
        }

    def token_resource(self) -> IResource:
        """The token service without a path below its resource, for the other addresses that container clients use."""
        dispatcher = Dispatcher(self._services)
        dispatcher.mount(Table(bearer.table.name, [evolve(route, path="/") for route in bearer.table.routes]))
        return dispatcher.resource()


def _problems() -> IResource:
    app = App()
    refuse_unrouted(app, ERRORS)

    async def explain(code: str) -> Response:
        return problem_page(code)

    @app.route("/<code>", methods=["GET"])
    async def handle(request: Request, code: str) -> None:
        await answer_with(request, ERRORS, lambda: explain(code))

    return SegmentResource(app)
