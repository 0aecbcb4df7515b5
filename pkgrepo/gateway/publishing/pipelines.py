"""
The exchange of identity tokens (trusted publishing) in the forms that clients know.

================================================  ========================================================
request                                           clients
================================================  ========================================================
``GET _/oidc/audience``                           uv, twine: the audience of the identity token
``POST _/oidc/mint-token``                        uv, twine
``POST -/npm/v1/oidc/token/exchange/package/P``   npm: the identity token is in the Authorization field
``POST api/v1/oidc/.../exchange_token``           RubyGems: a JSON object with ``jwt``
================================================  ========================================================

Clients build these from the host alone, or from the address of a repository: at the root of the server they are about
all repositories of the format, in a repository about that one. No credentials are needed: the responses are the same
whether there is such a repository or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pkgrepo.errors import IdentityRefused, Invalid
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import ANONYMOUS, Repository
from pkgrepo.oidc.pipelines import IssuedToken
from pkgrepo.repositories.clock import format_time

NPM_EXCHANGE: Final = b"-/npm/v1/oidc/token/exchange/package/"
GEM_EXCHANGE: Final = b"api/v1/oidc/trusted_publisher/exchange_token"
PYTHON_EXCHANGE: Final = b"_/oidc/"


async def answer_mint_in(context: Context[object], request: Request) -> Response:
    """The exchange of uv and twine at the address of a repository."""
    return await answer_mint(context.services, request, _taking(context))


async def answer_npm_in(context: Context[object], request: Request, package: str) -> Response:
    """The exchange of npm at the address of a repository."""
    return await answer_npm(context.services, request, _taking(context), package)


async def answer_gem_in(context: Context[object], request: Request) -> Response:
    """The exchange of RubyGems at the address of a repository."""
    return await answer_gem(context.services, request, _taking(context))


async def answer_audience_in(context: Context[object], _request: Request) -> Response:
    """See L{answer_audience}."""
    return await answer_audience(context.services)


def _taking(context: Context[object]) -> list[Repository]:
    return context.services.pipelines.behind(context.repository)


async def answer_audience(services: Services) -> Response:
    """The audience that a pipeline asks its issuer for. :raises IdentityRefused: nothing is exchanged here"""
    audience = services.pipelines.issuers.audience
    if not audience:
        raise IdentityRefused("this server exchanges no identity tokens", "not-enabled")
    return json_response({"audience": audience}, headers=NO_STORE)


async def answer_mint(services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
    """The exchange of uv and twine. Errors have the form that they print."""
    try:
        text = (await read_object(request)).get("token")
        if not isinstance(text, str):
            raise IdentityRefused("the body has no token", "invalid-payload")
        issued = await _exchange(services, request, text, repositories)
    except (IdentityRefused, Invalid) as error:
        code = getattr(error, "code", "invalid-payload")
        body = {"message": "Token request failed", "errors": [{"code": code, "description": str(error)}]}
        return json_response(body, 404 if code == "not-enabled" else 422, headers=NO_STORE)
    expires = int(issued.expires_at.timestamp())
    return json_response({"success": True, "token": issued.text, "expires": expires}, headers=NO_STORE)


async def answer_npm(
    services: Services, request: Request, repositories: Iterable[Repository], package: str
) -> Response:
    """The exchange of npm, for the package with this key. npm prints the ``message`` with --loglevel=verbose."""
    scheme, _, text = (request.header(b"authorization") or b"").decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(401, "send the identity token in the Authorization field, as Bearer", "unauthorized")
    try:
        issued = await _exchange(services, request, text.strip(), repositories, package)
    except IdentityRefused as error:
        return json_response({"message": str(error), "error": str(error)}, 422, headers=NO_STORE)
    expires = format_time(issued.expires_at)
    return json_response({"token": issued.text, "expires": expires}, 201, headers=NO_STORE)


async def answer_gem(services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
    """The exchange of RubyGems."""
    text = (await read_object(request)).get("jwt")
    if not isinstance(text, str):
        raise Invalid("the body has no jwt", "/jwt")
    issued = await _exchange(services, request, text, repositories)
    value = {
        "rubygems_api_key": issued.text,
        "name": "pipeline",
        "scopes": ["push_rubygem"],
        "expires_at": format_time(issued.expires_at),
    }
    return json_response(value, 201, headers=NO_STORE)


async def _exchange(
    services: Services, request: Request, text: str, repositories: Iterable[Repository], package: str | None = None
) -> IssuedToken:
    actor = actor_of(request, ANONYMOUS)
    return await services.pipelines.exchange(text, repositories, actor, package=package)
