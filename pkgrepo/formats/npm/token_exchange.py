"""
The exchange of identity tokens as npm asks for it (trusted publishing).

It is ``POST -/npm/v1/oidc/token/exchange/package/NAME``, with the identity token in the Authorization field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from pkgrepo.errors import IdentityRefused
from pkgrepo.gateway.publishing.pipelines import RootExchange, exchange, taking
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import Repository
from pkgrepo.repositories.clock import format_time

from .names import package_key


async def answer_exchange(context: Context[object], request: Request, package: str) -> Response:
    """The exchange at the address of a repository, for the package with this key."""
    return await _exchange(context.services, request, taking(context), package)


async def _exchange_at_root(
    services: Services, request: Request, repositories: Iterable[Repository], name: str
) -> Response:
    return await _exchange(services, request, repositories, package_key(unquote(name)))


async def _exchange(services: Services, request: Request, repositories: Iterable[Repository], package: str) -> Response:
    """Npm prints the ``message`` with --loglevel=verbose."""
    scheme, _, text = (request.header(b"authorization") or b"").decode("latin-1").partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(401, "send the identity token in the Authorization field, as Bearer", "unauthorized")
    try:
        issued = await exchange(services, request, text.strip(), repositories, package)
    except IdentityRefused as error:
        return json_response({"message": str(error), "error": str(error)}, 422, headers=NO_STORE)
    expires = format_time(issued.expires_at)
    return json_response({"token": issued.text, "expires": expires}, 201, headers=NO_STORE)


ROOT_EXCHANGES: Final = (
    RootExchange("POST", "-", "/npm/v1/oidc/token/exchange/package/<path:name>", _exchange_at_root),
)
