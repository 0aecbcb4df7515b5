"""
The exchange of identity tokens as uv and twine ask for it (trusted publishing).

===========================  ============================================
``GET _/oidc/audience``      the audience that the identity token must name
``POST _/oidc/mint-token``   a JSON object with the identity token, ``token``
===========================  ============================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pkgrepo.errors import IdentityRefused, Invalid
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.publishing.pipelines import RootExchange, exchange, taking
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.model import Repository


async def answer_audience(context: Context[object], request: Request) -> Response:
    """The audience that a pipeline asks its issuer for. :raises IdentityRefused: nothing is exchanged here"""
    return await _audience(context.services, request, ())


async def answer_mint(context: Context[object], request: Request) -> Response:
    """The exchange at the address of a repository. Errors have the form that the clients print."""
    return await _mint(context.services, request, taking(context))


async def _audience(services: Services, _request: Request, _repositories: Iterable[Repository]) -> Response:
    audience = services.pipelines.issuers.audience
    if not audience:
        raise IdentityRefused("this server exchanges no identity tokens", "not-enabled")
    return json_response({"audience": audience}, headers=NO_STORE)


async def _mint(services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
    try:
        text = (await read_object(request)).get("token")
        if not isinstance(text, str):
            raise IdentityRefused("the body has no token", "invalid-payload")
        issued = await exchange(services, request, text, repositories)
    except (IdentityRefused, Invalid) as error:
        code = getattr(error, "code", "invalid-payload")
        body = {"message": "Token request failed", "errors": [{"code": code, "description": str(error)}]}
        return json_response(body, 404 if code == "not-enabled" else 422, headers=NO_STORE)
    expires = int(issued.expires_at.timestamp())
    return json_response({"success": True, "token": issued.text, "expires": expires}, headers=NO_STORE)


ROOT_EXCHANGES: Final = (
    RootExchange("GET", "_", "/oidc/audience", _audience),
    RootExchange("POST", "_", "/oidc/mint-token", _mint),
)
