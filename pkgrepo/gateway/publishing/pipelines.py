"""
The exchange of identity tokens (trusted publishing), at the addresses that the clients of formats build.

They build these from the host alone, or from the address of a repository: at the root of the server they are about all
repositories of the format, in a repository about that one. No credentials are needed: the responses are the same
whether there is such a repository or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from attrs import frozen

from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import ANONYMOUS, Repository
from pkgrepo.oidc.pipelines import IssuedToken


@frozen
class RootExchange:
    """
    An address at the root of the server: ``path`` is behind the segments ``branch``, with parts in angle brackets.

    ``answer`` is given the hosted repositories of the format, and the parts of the path by name.
    """

    method: str
    branch: str
    path: str
    answer: Callable[..., Awaitable[Response]]


def taking(context: Context[object]) -> list[Repository]:
    """The repositories that an exchange at the address of a repository is about."""
    return context.services.pipelines.behind(context.repository)


async def exchange(
    services: Services, request: Request, text: str, repositories: Iterable[Repository], package: str | None = None
) -> IssuedToken:
    """The token for an identity token, for one package if a key is given. :raises IdentityRefused: it is refused"""
    actor = actor_of(request, ANONYMOUS)
    return await services.pipelines.exchange(text, repositories, actor, package=package)
