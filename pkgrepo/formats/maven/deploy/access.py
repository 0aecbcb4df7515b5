"""Who may deploy, and who may see and change a deployment."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.maven.push_rules import check_token
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository
from pkgrepo.model.deployments import Deployment
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.interrupted_deployments import FREE, release_interrupted

from .work.pushers import Pusher


class DeployAccess:
    """Checks callers, and finds the deployments that they may see."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def admit(self, request: Request) -> Pusher:
        """
        The caller, who may push to the repository; whether also to each package is checked when they are known.

        :raises AuthenticationRequired, Forbidden, ReadOnly, RepositoryInactive: see L{Access.require}
        :raises Refusal: the repository wants a token
        """
        access = self._services.access
        request.repository = self._repository.path
        identity = await access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        await check_token(self._services, identity, self._repository)
        await access.require(identity, Action.WRITE, self._repository)
        return Pusher(identity, actor_of(request, identity))

    async def find(self, uid: str) -> Deployment | None:
        """The deployment with this id as it is now, or None; one whose process was killed is released now."""
        catalog = self._services.catalog
        found: Deployment | None = await catalog.look(deployments.find_deployment, self._repository.id, uid)
        now_ms = self._services.clock.now_ms()
        if found is None or found.lease_ms in (None, FREE) or found.lease_ms >= now_ms:
            return found
        await catalog.write(release_interrupted, self._repository.storage_id, now_ms)
        return await catalog.look(deployments.find_deployment, self._repository.id, uid)

    async def open(self, request: Request, uid: str) -> tuple[Pusher, Deployment]:
        """
        The caller, and a deployment that is theirs or that they may change as maintainers of the repository.

        :raises NotFound: it does not exist; otherwise as in ``admit``
        """
        pusher = await self.admit(request)
        found = await self.find(uid)
        if found is None or not (
            found.user_id == pusher.identity.user_id
            or await self._services.access.may(pusher.identity, Action.EDIT, self._repository)
        ):
            raise NotFound("deployment", uid)
        return pusher, found
