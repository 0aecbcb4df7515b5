"""The exchange of identity tokens of pipelines: by the API, and at the addresses that package clients build."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from twisted.web.resource import IResource

from pkgrepo.gateway.publishing.pipelines import RootExchange
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import App, SegmentResource, answer_with, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PUBLIC
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ExpiresAt
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Actor
from pkgrepo.model.structs import meaning
from pkgrepo.oidc.pipelines import LIFETIME_S

table = Table("tokens")


class IdentityTokenBody(Body):
    """An identity token of a pipeline, and the repository (storage/name, or its id) that the token is to be for."""

    token: Annotated[str, meaning("The identity token of the pipeline.")]
    repository: Annotated[str, meaning("The repository that the token is to be for: its id, or storage/name.")]


class PipelineToken(Record):
    """A token for the packages and actions that publishers of the repository allow the pipeline."""

    token: Annotated[str, meaning("The token for the packages and actions that publishers allow.")]
    expires_in: Annotated[int, meaning("For how many seconds it is valid.")]
    expires_at: ExpiresAt


class IssuerRecord(Record):
    """An issuer whose pipelines can publish."""

    name: Annotated[str, meaning("The name for people.")]
    issuer: Annotated[str, meaning("The address of the issuer.")]
    audience: Annotated[str, meaning("What identity tokens must name.")]
    kind: Annotated[
        str, meaning("Whose claims the tokens have: github, gitlab or circleci; empty if that is not known.")
    ]


@table.command(
    "publisher issuers",
    columns="NAME: name | ISSUER: issuer | KIND: kind | AUDIENCE: audience",
    nothing="the settings name none",
)
@table.get("/auth/issuers", ACCOUNT_HOLDERS, "List the issuers of identity tokens of pipelines")
async def list_issuers(call: Call) -> list[IssuerRecord]:
    """Those of the setting auth.issuers, which publishers name."""
    return [
        IssuerRecord(name=each.name, issuer=each.url, audience=each.audiences[0], kind=each.kind)
        for each in call.shared.pipelines.issuers
    ]


@table.post("/auth/oidc", PUBLIC, "Exchange an identity token of a pipeline", audit="pipeline.token")
async def exchange_token(call: Call, body: IdentityTokenBody) -> PipelineToken:
    """
    For docker, Maven, conda, curl and others that have no exchange of their own; no credentials are needed.

    The issuer of the token is one of the setting auth.issuers, and the repository has a publisher that fits its claims.
    The new token is for what the publisher allows, and for 15 minutes. An identity token is exchanged once.
    """
    pipelines = call.shared.pipelines
    found = find_repository(call.registry, body.repository)
    repositories = [] if found is None else pipelines.behind(found)
    actor = Actor(name="anonymous", address=call.request.client_address, request_id=call.request.request_id)
    issued = await pipelines.exchange(body.token, repositories, actor)
    call.audited = True  # with what was issued, in the same transaction
    return PipelineToken(token=issued.text, expires_in=LIFETIME_S, expires_at=issued.expires_at)


def exchange_resource(services: ManagementServices, branch: str) -> IResource:
    """The resource at the root of the server, where pipelines get tokens for all repositories of some formats."""
    return _resource(
        {
            (each.method, each.path): _of_all(services.shared, format_.name, each)
            for format_ in services.formats.values()
            if branch in format_.exchanges
            for each in format_.root_exchanges
            if each.branch == branch
        }
    )


def _of_all(shared: Services, format_name: str, exchange: RootExchange) -> Callable[..., Awaitable[Response]]:
    async def answer(request: Request, **parts: str) -> Response:
        await shared.pipelines.refresh()
        return await exchange.answer(shared, request, shared.pipelines.of_format(format_name), **parts)

    return answer


def _resource(routes: dict[tuple[str, str], Callable[..., Awaitable[Response]]]) -> IResource:
    app = App()
    refuse_unrouted(app, ERRORS)

    def add(method: str, path: str, handler: Callable[..., Awaitable[Response]]) -> None:
        @app.route(path, methods=[method], endpoint=f"{method} {path}")
        async def handle(request: Request, **parts: Any) -> None:
            await answer_with(request, ERRORS, lambda: handler(request, **parts))

    for (method, path), handler in routes.items():
        add(method, path, handler)
    return SegmentResource(app)
