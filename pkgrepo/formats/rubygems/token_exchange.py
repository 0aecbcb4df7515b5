"""
The exchange of identity tokens as RubyGems asks for it (trusted publishing).

It is ``POST api/v1/oidc/trusted_publisher/exchange_token``: a JSON object with the identity token, ``jwt``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.publishing.pipelines import RootExchange, exchange, taking
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import format_time

PATH: Final = b"api/v1/oidc/trusted_publisher/exchange_token"


async def answer_exchange(context: Context[object], request: Request) -> Response:
    """The exchange at the address of a repository."""
    return await _exchange(context.services, request, taking(context))


async def _exchange(services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
    text = (await read_object(request)).get("jwt")
    if not isinstance(text, str):
        raise Invalid("the body has no jwt", "/jwt")
    issued = await exchange(services, request, text, repositories)
    value = {
        "rubygems_api_key": issued.text,
        "name": "pipeline",
        "scopes": ["push_rubygem"],
        "expires_at": format_time(issued.expires_at),
    }
    return json_response(value, 201, headers=NO_STORE)


ROOT_EXCHANGES: Final = (RootExchange("POST", "api/v1", "/v1/oidc/trusted_publisher/exchange_token", _exchange),)
