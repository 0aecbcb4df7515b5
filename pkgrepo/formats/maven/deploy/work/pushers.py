"""Who deploys, now or by an earlier request, and what they ask for."""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from pkgrepo.auth.login.identities import present_identity
from pkgrepo.errors import Forbidden
from pkgrepo.gateway.services import Services
from pkgrepo.model import Actor, Identity
from pkgrepo.model.deployments import Deployment

PUSHER: Final = "pusher"  # in the ``meta`` of a bundle


@frozen
class Wish:
    """What the client asks for: a name for people, and whether the deployment is published as soon as it is valid."""

    name: str
    automatic: bool
    size: int


@frozen
class Pusher:
    """Who deploys."""

    identity: Identity
    actor: Actor

    def kept(self) -> dict[str, Any]:
        """
        What is kept with a deployment to find them again; the user is kept in any case.

        Nothing for credentials that were requested with scopes, since their limits end with them.
        """
        if self.identity.scoped:
            return {}
        actor = self.actor
        return {PUSHER: {"token": actor.token_id, "address": actor.address, "request": actor.request_id}}


async def find_pusher(services: Services, deployment: Deployment) -> Pusher:
    """Who began a deployment, with the rights of now. :raises Forbidden: they may not deploy any more"""
    kept = deployment.meta.get(PUSHER)
    if kept is not None:
        identity: Identity | None = await services.catalog.look(
            present_identity, deployment.user_id, kept["token"], services.clock.now_ms() / 1000
        )
        if identity is not None:
            return Pusher(identity, Actor.of(identity, address=kept["address"], request_id=kept["request"]))
    raise Forbidden("the server was stopped, and the credentials of this deployment are not valid any more")
