"""Ends circles of proxies: see L{pkgrepo.concurrency.proxy_loop}."""

from __future__ import annotations

from pkgrepo.concurrency.proxy_loop import is_circle
from pkgrepo.errors import UpstreamLoop


def refuse_circle(repository_id: int, route: str) -> None:
    """
    Check that the present request has not passed this repository before.

    It is called before an upstream is asked, and before waiting for another request's question to it.

    :raises UpstreamLoop: with ``route``
    """
    if is_circle(repository_id):
        raise UpstreamLoop(route)
