"""Publishers of repositories and packages, as callers add, see and remove them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pkgrepo.errors import AuthenticationRequired, Forbidden
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.oidc.publishers import (
    Stored,
    add_publisher,
    check_given,
    check_takes_publishers,
    for_package,
    needed_actions,
    package_of,
    remove_publisher,
    stored_in,
    that_cover,
)
from pkgrepo.repositories.configuration import PipelinePublisher, check_publisher


def listed(repository: Repository, package: str | None) -> list[Stored]:
    """The publishers of a repository, or those that publish a package."""
    found = stored_in(repository)
    return found if package is None else that_cover(found, package)


async def check_may_change(services: Services, identity: Identity, repository: Repository, package: str | None) -> None:
    """
    Check that the caller may change the publishers of a repository, or of one package.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: they may not edit it
    :raises Conflict: the repository takes no publishers
    """
    authorizer = services.access.authorizer
    if not await authorizer.person_may(identity, Action.EDIT, repository, package):
        if identity.anonymous:
            raise AuthenticationRequired
        raise Forbidden(await authorizer.explain(identity, Action.EDIT, repository, package))
    check_takes_publishers(repository)


async def prepare(
    services: Services, identity: Identity, repository: Repository, package: str | None, given: PipelinePublisher
) -> Callable[[Transaction, int], Stored]:
    """
    The write command that adds a publisher, and takes the time in milliseconds; see L{add_publisher}.

    The caller may change publishers here.

    :raises Invalid: it is not a valid one; :raises Forbidden: the caller may not do what it would
    """
    if package is not None:
        given = for_package(given, package)
    check_publisher(given, "")
    stored: Mapping[str, Any] = msgspec.to_builtins(given)
    check_given(services.pipelines.issuers, stored)
    for action in sorted(needed_actions(stored)):
        if not await services.access.authorizer.may(identity, action, repository, package):
            raise Forbidden(f"only those who have the action {str(action)!r} here give it to a pipeline")
    return lambda tx, now_ms: add_publisher(tx, repository.id, given, now_ms=now_ms)


def removal(repository: Repository, package: str | None, id: str) -> Callable[[Transaction, int], Stored]:
    """The write command that removes a publisher, and takes the time in milliseconds; see L{remove_publisher}."""

    def check(found: Stored) -> None:
        if package is not None and package_of(found) != package:
            raise Forbidden(
                f"the publisher {id} is not for {package!r} alone: editors of {repository.path} remove it there"
            )

    return lambda tx, now_ms: remove_publisher(tx, repository.id, id, now_ms=now_ms, check=check)
