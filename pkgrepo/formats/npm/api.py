"""What is below ``/-/``: everything that is not a package or a file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.gateway.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository

from .admission import admit_reader
from .changing import Changing
from .paths import split_name
from .reading import Reading
from .signatures import find_public_key
from .signing import keys_document

Handler = Callable[..., Awaitable[Answer]]

NO_STORE = (b"Cache-Control", b"no-store")


class Api:
    """The requests below ``/-/`` of one repository."""

    def __init__(self, services: Services, repository: Repository, reading: Reading, changing: Changing) -> None:
        self._services = services
        self._repository = repository
        self._reading = reading
        self._changing = changing

    async def answer(self, request: Request, parts: Sequence[str]) -> Answer:
        """The answer to a request for these decoded parts of a path."""
        verb = "GET" if request.method == b"HEAD" else request.method.decode("ascii")
        match [verb, *parts]:
            case ["GET", "ping"]:
                return json_answer({}, headers=(NO_STORE,))
            case ["GET", "whoami"]:
                return await self._whoami(request)
            case [_, "package", *rest]:
                return await self._package(request, verb, rest)
            case ["GET", "npm", "v1", "keys"]:
                return self._keys()
            case _:
                raise Refusal(404, "this registry has nothing at this address", "no_such_address")

    async def _whoami(self, request: Request) -> Answer:
        identity = await self._services.access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        return json_answer({"username": identity.username}, headers=(NO_STORE,))

    def _keys(self) -> Answer:
        key = self._services.catalog.look(find_public_key)
        if key is None:
            raise Refusal(404, "nothing was signed here yet", "no_keys")
        return json_answer(keys_document([key]), headers=((b"Cache-Control", b"no-cache"),))

    async def _package(self, request: Request, verb: str, parts: Sequence[str]) -> Answer:
        found = split_name(parts)
        if found is None:
            raise NotFound("package", "/".join(parts))
        name, rest = found
        match [verb, *rest]:
            case ["GET", "dist-tags"]:
                await admit_reader(self._services, request, self._repository, name)
                return self._reading.dist_tags(name)
            case ["PUT" | "POST", "dist-tags", tag]:
                identity = await self._services.access.admit(request, Action.WRITE, self._repository, name)
                return await self._changing.set_tag(request, name, tag, actor_of(request, identity))
            case ["DELETE", "dist-tags", tag]:
                identity = await self._services.access.admit(request, Action.WRITE, self._repository, name)
                return await self._changing.unset_tag(name, tag, actor_of(request, identity))
        raise Refusal(404, "this registry has nothing at this address", "no_such_address")
