"""The exchange of identity tokens as RubyGems asks for it (trusted publishing)."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.rubygems import facts
from pkgrepo.gateway.publishing.pipelines import JwtExchange
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.oidc.pipelines import IssuedToken
from pkgrepo.repositories.clock import format_time


def _render(issued: IssuedToken) -> Response:
    value = {
        "rubygems_api_key": issued.text,
        "name": "pipeline",
        "scopes": ["push_rubygem"],
        "expires_at": format_time(issued.expires_at),
    }
    return json_response(value, 201, headers=NO_STORE)


EXCHANGE: Final = JwtExchange(facts.EXCHANGE, _render)
