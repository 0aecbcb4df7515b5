"""Who may deploy, and how many deployments at a time; who may see and change a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from attrs import frozen

from pkgrepo.auth.login.identities import present_identity
from pkgrepo.errors import AuthenticationRequired, Conflict, Forbidden, NotFound
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.deploy.problems import MOST_OPEN, OPEN_UPLOADS
from pkgrepo.formats.maven.paths import ArtifactFile, parse_text
from pkgrepo.formats.maven.push_rules import check_token
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Actor, Identity, Repository
from pkgrepo.model.deployments import Deployment
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import FREE, release_interrupted

PUSHER: Final = "pusher"  # in the ``meta`` of a bundle


@frozen
class Wish:
    """
    What the client asks for: a name for people, and whether the deployment is published as soon as it is valid.

    ``size`` is that of a bundle, as announced; ``package_key`` is that of a session, which has no bundle.
    """

    name: str
    automatic: bool = False
    size: int = 0
    package_key: str = ""


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


async def admit(context: MavenContext, request: Request) -> Pusher:
    """
    The caller, who may push to the repository; whether also to each package is checked when they are known.

    :raises AuthenticationRequired, Forbidden, ReadOnly, RepositoryInactive: see L{Access.require}
    :raises Refusal: the repository wants a token
    """
    repository = context.repository
    access = context.services.access
    request.repository = repository.path
    identity = await access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired
    await check_token(context.services, identity, repository)
    await access.require(identity, Action.WRITE, repository)
    return Pusher(identity, actor_of(request, identity))


async def find_deployment(context: MavenContext, uid: str) -> Deployment | None:
    """The deployment with this id as it is now, or None; one whose process was killed is released now."""
    repository = context.repository
    catalog = context.services.catalog
    found: Deployment | None = await catalog.look(deployments.find_deployment, repository.id, uid)
    now_ms = context.services.clock.now_ms()
    if found is None or found.lease_ms in (None, FREE) or found.lease_ms >= now_ms:
        return found
    await catalog.write(release_interrupted, repository.storage_id, now_ms)
    return await catalog.look(deployments.find_deployment, repository.id, uid)


async def open_deployment(context: MavenContext, request: Request, uid: str) -> tuple[Pusher, Deployment]:
    """
    The caller, and a deployment that is theirs or that they may change as maintainers of the repository.

    Theirs is what they may publish with the credentials of this request: a token for some packages is not for others.

    :raises NotFound: it does not exist; otherwise as in ``admit``
    """
    pusher = await admit(context, request)
    found = await find_deployment(context, uid)
    if found is None or not await _may_change(context, pusher.identity, found):
        raise NotFound("deployment", uid)
    return pusher, found


async def _may_change(context: MavenContext, identity: Identity, deployment: Deployment) -> bool:
    authorizer = context.services.access.authorizer
    if await authorizer.may(identity, Action.EDIT, context.repository):
        return True
    if deployment.user_id != identity.user_id:
        return False
    packages = await context.services.catalog.scan(_packages_of, deployment)
    return all(await authorizer.may_each(identity, [(Action.WRITE, context.repository, each) for each in packages]))


def _packages_of(r: Reader, deployment: Deployment) -> set[str]:
    """The keys of the packages that a deployment has, as far as they are known: those of a bundle once it was read."""
    listed = deployment.meta.get("components", ())
    found = {f"{each['group_id']}:{each['artifact_id']}" for each in listed}
    parsed = (parse_text(each.path) for each in deployments.staged_files(r, deployment.id))
    found |= {each.coordinates.package_key for each in parsed if isinstance(each, ArtifactFile)}
    return found | ({deployment.package_key} - {""})


def most_open(services: Services) -> int:
    """The most bytes that the open deployments of a user may take together."""
    return OPEN_UPLOADS * services.max_upload


def begin(
    tx: Transaction,
    repository: Repository,
    pusher: Pusher,
    wish: Wish,
    meta: Mapping[str, Any],
    *,
    most: int,
    now_ms: int,
) -> Deployment:
    """
    Insert the row of a deployment, if its user has room for it.

    :raises Conflict: a session for the artifact is open; :raises Refusal: there is no room, see ``check_room``
    """
    key = wish.package_key
    if key and deployments.has_open_session(tx, repository.id, key, now_ms):
        raise Conflict(f"a deploy session for {key} is open already")
    check_room(tx, repository, pusher, wish.size, most=most)
    return deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key=key,
        name=wish.name,
        automatic=wish.automatic,
        user_id=pusher.identity.user_id,
        actor=pusher.actor.name,
        size=wish.size,
        meta=meta,
        leased=not key,
        now_ms=now_ms,
    )


def check_room(
    tx: Transaction, repository: Repository, pusher: Pusher, size: int, *, most: int, another: bool = True
) -> None:
    """
    Check that the open deployments of a user may take ``size`` bytes more, of at most ``most``.

    With ``another`` also that they may have another one.

    :raises Refusal: there are too many, or too large ones
    """
    count, sizes = deployments.open_deployments(tx, repository.id, pusher.identity.user_id)
    if another and count >= MOST_OPEN:
        raise Refusal(409, f"you have {count} open deployments here; publish or drop some", "too_many_deployments")
    if sizes + size > most:
        sentence = f"your open deployments here would take more than {most} bytes; publish or drop some"
        raise Refusal(409, sentence, "too_many_deployments")
