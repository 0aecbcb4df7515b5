"""The repositories that a search looks into, as far as the caller may read them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository, RepositoryType

FORMAT = "maven"


@frozen
class SearchScope:
    """
    Repositories with packages of their own, in the order in which they win.

    ``shown`` is the repository that the caller asked, None for all. Without ``whole`` the caller may read only some of
    its packages.
    """

    repositories: Sequence[Repository]
    identity: Identity
    shown: Repository | None = None
    whole: bool = True

    @property
    def ids(self) -> list[int]:
        """The ids of the repositories, in order."""
        return [each.id for each in self.repositories]


async def scope_of(services: Services, request: Request, repository: Repository) -> SearchScope:
    """
    One repository, or the members of a virtual one.

    :raises AuthenticationRequired, RepositoryInactive: see L{Access.require}
    """
    identity = await services.access.identify(request)
    whole = await services.access.may(identity, Action.READ, repository)
    if not whole and identity.limits is None:
        await services.access.require(identity, Action.READ, repository)
    return SearchScope(_leaves(services, repository), identity, repository, whole)


async def scope_of_all(services: Services, request: Request) -> SearchScope:
    """Every repository that the caller may read as a whole, except hidden ones whose settings they may not change."""
    identity = await services.access.identify(request)
    await services.registry.refresh()
    every = [
        each
        for each in services.registry.all()
        if each.format == FORMAT and each.active and each.type is not RepositoryType.VIRTUAL
    ]
    readable = await services.access.may_each(identity, [(Action.READ, each, None) for each in every])
    found = [
        each
        for each, may in zip(every, readable, strict=True)
        if may and await services.access.may_list(identity, each)
    ]
    # Hosted ones first: what an upstream has under the name of an artifact of ours is not it.
    found.sort(key=lambda each: each.type is not RepositoryType.HOSTED)
    return SearchScope(found, identity)


def _leaves(services: Services, repository: Repository) -> list[Repository]:
    if repository.type is not RepositoryType.VIRTUAL:
        return [repository]
    leaves = [each for each in services.proxy.resolver.leaves(repository) if each.active]
    leaves.sort(key=lambda each: each.type is not RepositoryType.HOSTED)
    return leaves
