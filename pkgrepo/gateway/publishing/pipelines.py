"""
The exchange of identity tokens (trusted publishing), at the addresses that the clients of formats build.

They build these from the host alone, or from the address of a repository: at the root of the server they are about all
repositories of the format, in a repository about that one. No credentials are needed: the responses are the same
whether there is such a repository or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden, Invalid
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response
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

    ``path`` is that below a repository, which is also the address at the root. ``render`` makes the response. Where
    clients can end a token before it expires, that is a DELETE with it there (``revocable``).
    """

    path: str
    render: Callable[[IssuedToken], Response]
    revocable: bool = False

    async def answer(self, context: Context[object], request: Request) -> Response:
        """The exchange at the address of a repository."""
        return await self._exchange(context.services, request, taking(context))

    async def revoke(self, context: Context[object], request: Request) -> Response:
        """
        Revoke the token of the caller, wherever it was issued.

        :raises AuthenticationFailed, AuthenticationRequired: it is none; :raises Forbidden: it is another credential
        """
        return await self._revoke(context.services, request, ())

    @property
    def roots(self) -> tuple[RootExchange, ...]:
        """The same at the root of the server, below its first two segments."""
        first, second, rest = self.path.split("/", 2)
        answers = {"POST": self._exchange, **({"DELETE": self._revoke} if self.revocable else {})}
        return tuple(
            RootExchange(method, f"{first}/{second}", f"/{second}/{rest}", each) for method, each in answers.items()
        )

    async def _revoke(self, services: Services, request: Request, _repositories: Iterable[Repository]) -> Response:
        identity = await services.access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        if identity.pipeline is None or identity.token_id is None:
            raise Forbidden("only a token that a pipeline got for its identity token is revoked here")
        await services.accounts.revoke_used(identity, actor_of(request, identity))
        return Response(204, headers=NO_STORE)

    async def _exchange(self, services: Services, request: Request, repositories: Iterable[Repository]) -> Response:
        text = (await read_object(request)).get("jwt")
        if not isinstance(text, str):
            raise Invalid("the body has no jwt", "/jwt")
        return self.render(await exchange(services, request, text, repositories))
