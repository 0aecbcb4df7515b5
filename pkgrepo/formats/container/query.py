"""Query parameters of a request."""

from __future__ import annotations

from pkgrepo.http.request import Request


def parameter(request: Request, name: str) -> str:
    """The first value of a query parameter; empty when it is absent."""
    values = request.args.get(name.encode("ascii")) if request.raw_query else None
    return values[0].decode("utf-8", "replace") if values else ""
