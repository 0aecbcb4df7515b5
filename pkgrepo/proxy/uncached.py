"""Questions to upstreams whose answers are passed on and not kept, such as searches and audits."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.model import ReadLimits, Repository

from .configuration import proxy_config_of
from .upstream.instances import Upstreams

ABSENT: Final = (404, 405, 410)  # an upstream that does not know the question


@frozen
class UncachedQuestion:
    """
    A question of the kind ``what``, at a ``path`` (as on the wire, with a query if any) below the URL of each route.

    With a ``body``, which is JSON, it is a POST.
    """

    what: str
    path: str
    limits: ReadLimits
    body: bytes | None = None


async def ask_routes(upstreams: Upstreams, repository: Repository, question: UncachedQuestion) -> bytes:
    """
    The answer of the first route of a proxy that has one. After a failure the next is asked only if it is a replica,
    and never after a refusal.

    :raises NotFound: all routes answered, and none has it; :raises UpstreamFailed: some route failed, and none has it
    """
    failure: UpstreamFailed | None = None
    config = proxy_config_of(repository)
    headers = {"Accept": "application/json"}
    if question.body is not None:
        headers["Content-Type"] = "application/json"
    for route in config.routes:
        try:
            async with upstreams.of(repository.id, route).open(
                "GET" if question.body is None else "POST",
                question.path,
                headers,
                body=question.body,
                limits=question.limits,
                kind=question.what,
                decode=True,
                tries=1,  # the caller can do without an answer, and its client waits
            ) as response:
                if response.status == 200:
                    return await response.read()
                if response.status not in ABSENT:
                    raise UpstreamFailed(route.name, f"it answered {response.status}")
        except UpstreamFailed as error:
            if not config.replicas or isinstance(error, UpstreamDenied):
                raise
            failure = failure or error
    raise failure or NotFound(question.what, repository.path)
