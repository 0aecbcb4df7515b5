"""
The exchange of identity tokens (trusted publishing), at the addresses that the clients of formats build.

They build these from the host alone, or from the address of a repository: at the root of the server they are about all
repositories of the format, in a repository about that one. No credentials are needed: the responses are the same
whether there is such a repository or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.gateway.bodies import read_object
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


@frozen
class JwtExchange:
    """
    An exchange by a POST with a JSON object that has the identity token, ``jwt``; it is about no single package.

    ``path`` is that below a repository, which is also the address at the root. ``render`` makes the response.
    """

    path: str
    render: Callable[[IssuedToken], Response]

    async def answer(self, context: Context[object], request: Request) -> Response:
        """The exchange at the address of a repository."""
        return await self._exchange(context.services, request, taking(context))

    @property
    def roots(self) -> tuple[RootExchange, ...]:
        """The same at the root of the server, below its first two segments."""
        first, second, rest = self.path.split("/", 2)
        return (RootExchange("POST", f"{first}/{second}", f"/{second}/{rest}", self._exchange),)

    async def _exchange(self, services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
        text = (await read_object(request)).get("jwt")
        if not isinstance(text, str):
            raise Invalid("the body has no jwt", "/jwt")
        return self.render(await exchange(services, request, text, repositories))
