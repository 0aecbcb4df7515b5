"""Write commands that begin deployments, if their users have room for them."""

from __future__ import annotations

from uuid import uuid4

from pkgrepo.errors import Conflict
from pkgrepo.formats.maven.deploy.limits import MOST_OPEN, OPEN_UPLOADS
from pkgrepo.formats.maven.deploy.sessions import Session
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Repository
from pkgrepo.model.deployments import Deployment
from pkgrepo.storage.catalog.packages import deployments

from .pushers import Pusher, Wish


def most_open(services: Services) -> int:
    """The most bytes that the open deployments of a user may take together."""
    return OPEN_UPLOADS * services.max_upload


def add_deployment(
    tx: Transaction, repository: Repository, pusher: Pusher, wish: Wish, *, most: int, now_ms: int
) -> Deployment:
    """Insert the row of a bundle, if its user has room for it. :raises Refusal: there is no room; see ``check_room``"""
    check_room(tx, repository, pusher, wish.size, most=most)
    return deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key="",
        name=wish.name,
        automatic=wish.automatic,
        user_id=pusher.identity.user_id,
        actor=pusher.actor.name,
        size=wish.size,
        meta=pusher.kept(),
        leased=True,
        now_ms=now_ms,
    )


def add_session(
    tx: Transaction, repository: Repository, pusher: Pusher, session: Session, *, most: int, now_ms: int
) -> Deployment:
    """
    Insert the row of a session.

    :raises Conflict: a session for the artifact is open; :raises Refusal: its user has no room, see ``check_room``
    """
    key = session.coordinates.package_key
    if deployments.has_open_session(tx, repository.id, key, now_ms):
        raise Conflict(f"a deploy session for {key} is open already")
    check_room(tx, repository, pusher, 0, most=most)
    return deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key=key,
        name=session.name,
        automatic=False,
        user_id=pusher.identity.user_id,
        actor=pusher.actor.name,
        size=0,
        meta=session.meta,
        leased=False,
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
